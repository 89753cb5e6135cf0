// What is written arrives: bytes, order, identity, times.
#include <algorithm>
#include <set>

#include "fixture.h"

namespace perflab::conformance {
namespace {

class MessageSize : public Conformance, public testing::WithParamInterface<std::size_t> {};

TEST_P(MessageSize, BytesArriveUnchanged) {
  Writer w = writer();
  Reader r = reader();
  ASSERT_TRUE(matched(w, r));
  for (std::uint64_t number = 0; number < 3; ++number) {
    if (!written(w, number, GetParam())) GTEST_SKIP() << "the plug-in refuses messages of this size";
  }
  const auto taken = take_until(r, 3);
  EXPECT_EQ(numbers(taken), range(0, 3));
  for (const Taken& one : taken) EXPECT_TRUE(intact(one.bytes, GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Bytes, MessageSize,
                         testing::Values(12, 36, 37, 1000, 1500, 65'000, 65'536, 100'001, 1'000'000,
                                         8'000'000));

TEST_F(Conformance, PartsArriveAsOneMessage) {
  Writer w = writer();
  Reader r = reader();
  ASSERT_TRUE(matched(w, r));
  for (const std::size_t size : {std::size_t{100}, std::size_t{300'000}}) {
    for (const std::size_t count : {std::size_t{2}, std::size_t{3}, std::size_t{40}}) {
      const auto bytes = make_message(count, size);
      std::vector<perflab_bytes> parts;
      for (std::size_t i = 0; i < count; ++i) {
        const std::size_t first = size * i / count;
        parts.push_back({bytes.data() + first, size * (i + 1) / count - first});
      }
      parts.insert(parts.begin() + 1, perflab_bytes{nullptr, 0});
      perflab_error error{};
      ASSERT_EQ(w.write(parts, error), PERFLAB_OK) << error.text;
      const auto taken = take_until(r, 1);
      ASSERT_EQ(taken.size(), 1u);
      EXPECT_EQ(taken[0].bytes, bytes);
    }
  }
}

TEST_F(Conformance, BytesMayBeReusedAfterWrite) {
  Writer w = writer();
  Reader r = reader();
  ASSERT_TRUE(matched(w, r));
  auto bytes = make_message(1, 100'000);
  write(w, bytes);
  std::fill(bytes.begin(), bytes.end(), std::uint8_t{0xee});
  const auto taken = take_until(r, 1);
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_TRUE(intact(taken[0].bytes, 100'000));
}

TEST_F(Conformance, ReliableMessagesArriveInOrderWithoutLoss) {
  constexpr std::uint64_t kCount = 5000;
  PERFLAB_CREATE_OR_REFUSE(w, writer(reliable(keep_all())), "reliability");
  PERFLAB_CREATE_OR_REFUSE(r, reader(reliable(keep_all())), "reliability");
  ASSERT_TRUE(matched(w, r));
  std::vector<std::uint64_t> got;
  for (std::uint64_t number = 0; number < kCount; ++number) {
    write(w, number, 36 + number % 200);
    while (auto one = take(r)) got.push_back(one->number());
  }
  for (const Taken& one : take_until(r, kCount - got.size())) got.push_back(one.number());
  EXPECT_EQ(got, range(0, kCount));
}

TEST_F(Conformance, ReliableMessagesWaitForAReaderThatTakesLate) {
  constexpr std::uint64_t kCount = 3000;
  PERFLAB_CREATE_OR_REFUSE(w, writer(reliable(keep_all())), "reliability");
  PERFLAB_CREATE_OR_REFUSE(r, reader(reliable(keep_all())), "reliability");
  ASSERT_TRUE(matched(w, r));
  for (std::uint64_t number = 0; number < kCount; ++number) write(w, number);
  EXPECT_EQ(numbers(take_until(r, kCount)), range(0, kCount));
}

TEST_F(Conformance, BestEffortMessagesArrive) {
  perflab_qos qos = keep_all();
  qos.reliability = PERFLAB_BEST_EFFORT;
  PERFLAB_CREATE_OR_REFUSE(w, writer(qos), "reliability");
  PERFLAB_CREATE_OR_REFUSE(r, reader(qos), "reliability");
  ASSERT_TRUE(matched(w, r));
  std::uint64_t sent = 0;
  EXPECT_TRUE(eventually([&] {
    write(w, sent++);
    return take(r).has_value();
  }));
}

TEST_F(Conformance, EveryReaderGetsEveryMessage) {
  Writer w = writer();
  Reader a = reader();
  Reader b = reader();
  ASSERT_TRUE(matched(w, a, 2));
  ASSERT_TRUE(matched(w, b, 2));
  for (std::uint64_t number = 0; number < 100; ++number) write(w, number);
  EXPECT_EQ(numbers(take_until(a, 100)), range(0, 100));
  EXPECT_EQ(numbers(take_until(b, 100)), range(0, 100));
}

TEST_F(Conformance, MessageIsTakenOnce) {
  Writer w = writer();
  Reader r = reader();
  ASSERT_TRUE(matched(w, r));
  write(w, 1);
  EXPECT_EQ(take_until(r, 1).size(), 1u);
  EXPECT_TRUE(take_until_quiet(r, 50ms).empty());
}

TEST_F(Conformance, TakeOfNothingLeavesTheSampleAlone) {
  Reader r = reader();
  perflab_sample sample;
  std::fill_n(reinterpret_cast<unsigned char*>(&sample), sizeof sample, static_cast<unsigned char>(0x5a));
  perflab_error error{};
  EXPECT_EQ(r.take(sample, error), PERFLAB_NO_DATA);
  const auto* const bytes = reinterpret_cast<const unsigned char*>(&sample);
  EXPECT_TRUE(std::all_of(bytes, bytes + sizeof sample, [](unsigned char c) { return c == 0x5a; }));
}

TEST_F(Conformance, SamplesStayValidUntilTheyAreReturned) {
  Writer w = writer();
  Reader r = reader();
  ASSERT_TRUE(matched(w, r));
  constexpr std::size_t kHeld = 20;
  for (std::uint64_t number = 0; number < kHeld; ++number) write(w, number, 5000);
  std::vector<perflab_sample> held;
  perflab_error error{};
  EXPECT_TRUE(eventually([&] {
    perflab_sample sample;
    while (r.take(sample, error) == PERFLAB_OK) held.push_back(sample);
    return held.size() == kHeld;
  }));
  for (std::uint64_t number = 0; number < 30; ++number) write(w, 1000 + number, 5000);
  take_until(r, 30);
  for (std::size_t i = 0; i < held.size(); ++i) {
    EXPECT_EQ(number_of({held[i].data, held[i].size}), i);
    EXPECT_TRUE(intact({held[i].data, held[i].size}, 5000));
  }
  for (perflab_sample& sample : held) r.return_sample(sample);
}

TEST_F(Conformance, SampleCarriesTheIdentityOfItsWriter) {
  Writer a = writer();
  Writer b = writer();
  Reader r = reader();
  Reader other = reader();
  const std::vector<perflab_identity> all{a.identity(), b.identity(), r.identity(), other.identity()};
  std::set<std::string> distinct;
  for (const perflab_identity& identity : all) distinct.insert(to_hex(identity));
  EXPECT_EQ(distinct.size(), 4u);
  EXPECT_FALSE(distinct.contains(std::string(32, '0')));

  ASSERT_TRUE(matched(a, r, 2, 2));
  ASSERT_TRUE(matched(b, r, 2, 2));
  for (std::uint64_t number = 0; number < 50; ++number) {
    write(a, number);
    write(b, 1000 + number);
  }
  const auto taken = take_until(r, 100);
  ASSERT_EQ(taken.size(), 100u);
  for (const Taken& one : taken) {
    EXPECT_EQ(to_hex(one.writer), to_hex(one.number() < 1000 ? a.identity() : b.identity()));
  }
}

TEST_F(Conformance, IdentityIsKnownAfterTheWriterHasLeft) {
  Reader r = reader();
  WaitSet set = participant().create_waitset();
  set.attach(r, 1);
  std::string expected;
  {
    Writer w = writer();
    expected = to_hex(w.identity());
    ASSERT_TRUE(matched(w, r));
    write(w, 1);
    // A message that is still on its way may be lost with its writer.
    std::uint64_t ready[1];
    std::size_t count = 0;
    perflab_error error{};
    ASSERT_EQ(set.wait(30'000'000'000, ready, count, error), PERFLAB_OK);
    ASSERT_EQ(count, 1u);
  }
  const auto taken = take_until(r, 1);
  ASSERT_EQ(taken.size(), 1u);
  EXPECT_EQ(to_hex(taken[0].writer), expected);
}

TEST_F(Conformance, SourceTimestampIsTheWallClockOfTheWriteForAllReaders) {
  Writer w = writer();
  Reader a = reader();
  Reader b = reader();
  ASSERT_TRUE(matched(w, a, 2));
  ASSERT_TRUE(matched(w, b, 2));
  constexpr std::uint64_t kCount = 20;
  std::vector<std::int64_t> before, after;
  for (std::uint64_t number = 0; number < kCount; ++number) {
    before.push_back(wall_ns());
    write(w, number);
    after.push_back(wall_ns());
  }
  const auto of_a = take_until(a, kCount);
  const auto of_b = take_until(b, kCount);
  ASSERT_EQ(of_a.size(), kCount);
  ASSERT_EQ(of_b.size(), kCount);
  for (std::size_t i = 0; i < kCount; ++i) {
    if (!plugin_.capabilities().source_timestamps) {
      EXPECT_EQ(of_a[i].source_timestamp_ns, PERFLAB_TIME_UNKNOWN);
      continue;
    }
    EXPECT_GE(of_a[i].source_timestamp_ns, before[i]);
    EXPECT_LE(of_a[i].source_timestamp_ns, after[i]);
    EXPECT_EQ(of_a[i].source_timestamp_ns, of_b[i].source_timestamp_ns);
  }
}

TEST_F(Conformance, ReceptionLiesBetweenWriteAndTakeOrIsUnknown) {
  Writer w = writer();
  Reader r = reader();
  ASSERT_TRUE(matched(w, r));
  const std::int64_t before = now_ns();
  for (std::uint64_t number = 0; number < 20; ++number) write(w, number);
  for (const Taken& one : take_until(r, 20)) {
    if (one.reception_ns == PERFLAB_TIME_UNKNOWN) continue;
    EXPECT_TRUE(plugin_.capabilities().reception_timestamps);
    EXPECT_GE(one.reception_ns, before);
    EXPECT_LE(one.reception_ns, one.taken_ns);
  }
}

}  // namespace
}  // namespace perflab::conformance
