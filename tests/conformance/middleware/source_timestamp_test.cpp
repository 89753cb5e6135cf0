// The source time stamp that the host chooses: readers find exactly that, of that message alone.
#include <cstring>

#include "fixture.h"
#include "peer.h"

namespace perflab::conformance {
namespace {

class SourceTimestamp : public Conformance {
 protected:
  void SetUp() override {
    if (!plugin_.capabilities().source_timestamps) GTEST_SKIP() << "the plug-in has no source time stamps";
  }
  // Some of now, with every kind of nanoseconds: on the wire they are fractions of 2^32.
  static std::vector<std::int64_t> stamps() {
    constexpr std::int64_t kSecond = 1'000'000'000;
    const std::int64_t second = wall_ns() / kSecond * kSecond;
    std::vector<std::int64_t> list{second, second + 1, second + 2, second + kSecond - 1,
                                   second + kSecond / 2};
    for (std::int64_t i = 0; i < 400; ++i) list.push_back(second + i * 1'999'993 % kSecond);
    return list;
  }
  static std::vector<std::int64_t> stamps_of(const std::vector<Taken>& taken) {
    std::vector<std::int64_t> list;
    for (const Taken& one : taken) list.push_back(one.source_timestamp_ns);
    return list;
  }
};

TEST_F(SourceTimestamp, IsTheOneThatWasSaidToTheNanosecond) {
  Writer w = writer();
  Reader a = reader();
  Reader b = reader();
  ASSERT_TRUE(matched(w, a, 2));
  ASSERT_TRUE(matched(w, b, 2));
  const std::vector<std::int64_t> said = stamps();
  for (std::size_t i = 0; i < said.size(); ++i) {
    w.stamp_next(said[i]);
    write(w, i);
  }
  for (Reader* const r : {&a, &b}) {
    const auto taken = take_until(*r, said.size());
    EXPECT_EQ(numbers(taken), range(0, said.size()));
    EXPECT_EQ(stamps_of(taken), said);
  }
}

TEST_F(SourceTimestamp, HoldsForTheNextMessageAndNoOther) {
  Writer w = writer();
  Writer other = writer(keep_all(), {}, "rt/other");
  Reader r = reader();
  ASSERT_TRUE(matched(w, r));
  const std::int64_t before = wall_ns();
  const std::int64_t said = before - 3'600'000'000'001;
  w.stamp_next(said - 5);
  other.stamp_next(said - 7);
  w.stamp_next(said);  // the later one holds
  write(w, 0);
  write(w, 1);
  const auto taken = take_until(r, 2);
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].source_timestamp_ns, said);
  EXPECT_GE(taken[1].source_timestamp_ns, before);
  EXPECT_LE(taken[1].source_timestamp_ns, wall_ns());
}

TEST_F(SourceTimestamp, HoldsForLargeMessagesInParts) {
  Writer w = writer();
  Reader r = reader();
  ASSERT_TRUE(matched(w, r));
  const auto bytes = make_message(3, 300'000);
  const std::vector<perflab_bytes> parts{{bytes.data(), 100}, {bytes.data() + 100, bytes.size() - 100}};
  const std::int64_t said = wall_ns() / 1000 * 1000 + 123;
  perflab_error error{};
  w.stamp_next(said);
  ASSERT_EQ(w.write(parts, error), PERFLAB_OK) << error.text;
  EXPECT_EQ(stamps_of(take_until(r, 1)), std::vector<std::int64_t>{said});
}

TEST_F(SourceTimestamp, HoldsForMessagesThatAreRelated) {
  if (!plugin_.capabilities().related_samples) GTEST_SKIP() << "the plug-in has no related samples";
  Writer w = writer();
  Reader r = reader();
  ASSERT_TRUE(matched(w, r));
  const auto bytes = make_message(0, 100);
  const perflab_bytes part{bytes.data(), bytes.size()};
  const perflab_sample_identity related{r.identity(), 5};
  const std::int64_t said = wall_ns() + 1;
  perflab_error error{};
  std::int64_t sequence = 0;
  w.stamp_next(said);
  ASSERT_EQ(w.write_related({&part, 1}, &related, &sequence, error), PERFLAB_OK) << error.text;
  ASSERT_EQ(w.write_related({&part, 1}, &related, &sequence, error), PERFLAB_OK) << error.text;
  const auto taken = take_until(r, 2);
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].source_timestamp_ns, said);
  EXPECT_NE(taken[1].source_timestamp_ns, said);
  EXPECT_EQ(taken[0].related.sequence, 5);
}

TEST_F(SourceTimestamp, HoldsForLoanedMessages) {
  constexpr std::size_t kSize = 1000;
  const middleware::EndpointSettings settings{
      .topic = kTopic, .type = kType, .fixed_size = kSize, .loans = true, .qos = keep_many()};
  PERFLAB_CREATE_OR_REFUSE(w, participant().create_writer(settings), "loan");
  Reader r = participant().create_reader(settings);
  ASSERT_TRUE(matched(w, r));
  const auto bytes = make_message(0, kSize);
  const std::int64_t said = wall_ns() + 1;
  perflab_error error{};
  for (int i = 0; i < 2; ++i) {
    void* message = nullptr;
    ASSERT_EQ(w.loan(message, error), PERFLAB_OK) << error.text;
    std::memcpy(message, bytes.data(), kSize);
    if (i == 0) w.stamp_next(said);
    ASSERT_EQ(w.write_loaned(message, error), PERFLAB_OK) << error.text;
  }
  const auto taken = take_until(r, 2);
  ASSERT_EQ(taken.size(), 2u);
  EXPECT_EQ(taken[0].source_timestamp_ns, said);
  EXPECT_NE(taken[1].source_timestamp_ns, said);
}

TEST_F(SourceTimestamp, ArrivesFromAnotherProcessToTheNanosecond) {
  if (!plugin_.capabilities().across_processes) GTEST_SKIP() << "the plug-in stays within one process";
  Reader r = reader();
  Peer peer(subject().plugin, domain_.id());
  ASSERT_EQ(peer.ask(std::string("writer x ") + kTopic + " " + kType + " keep_all " + usual_reliability() + " volatile 1"),
            "ok");
  ASSERT_EQ(peer.ask("wait_matched x 1"), "ok");
  ASSERT_TRUE(eventually([&] { return r.matched_writers() == 1; }));
  std::vector<std::int64_t> said = stamps();
  said.resize(105);
  std::vector<Taken> taken;
  for (std::size_t i = 0; i < said.size(); ++i) {
    const std::string size = i % 10 == 0 ? "100000" : "100";
    ASSERT_EQ(peer.ask("write_stamped x " + std::to_string(i) + " " + size + " " + std::to_string(said[i])),
              "wrote 1");
    while (auto one = take(r)) taken.push_back(std::move(*one));
  }
  for (Taken& one : take_until(r, said.size() - taken.size())) taken.push_back(std::move(one));
  EXPECT_EQ(numbers(taken), range(0, said.size()));
  EXPECT_EQ(stamps_of(taken), said);
}

}  // namespace
}  // namespace perflab::conformance
