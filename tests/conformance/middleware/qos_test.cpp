// Quality of service: honoured, or refused by name.
#include "fixture.h"

namespace perflab::conformance {
namespace {

perflab_qos keep_last(std::int32_t depth) {
  perflab_qos qos = usual_qos();
  qos.depth = depth;
  return qos;
}

perflab_qos transient_local(std::int32_t depth) {
  perflab_qos qos = keep_last(depth);
  qos.durability = PERFLAB_TRANSIENT_LOCAL;
  return qos;
}

TEST_F(Conformance, KeepLastDropsTheOldest) {
  for (const std::int32_t depth : {1, 3}) {
    Writer w = writer();
    PERFLAB_CREATE_OR_REFUSE(r, reader(keep_last(depth)), "history");
    Reader complete = reader();
    ASSERT_TRUE(matched(w, r, 2));
    ASSERT_TRUE(matched(w, complete, 2));
    for (std::uint64_t number = 0; number < 10; ++number) write(w, number);
    EXPECT_EQ(take_until(complete, 10).size(), 10u);
    // All have been received once the last one can be taken.
    std::vector<std::uint64_t> got;
    EXPECT_TRUE(eventually([&] {
      got = numbers(take_until_quiet(r, 50ms));
      return !got.empty();
    }));
    EXPECT_EQ(got, range(10 - static_cast<std::uint64_t>(depth), 10));
  }
}

TEST_F(Conformance, LateJoinerGetsTheHistoryOfATransientLocalWriter) {
  PERFLAB_CREATE_OR_REFUSE(w, writer(transient_local(5)), "durability");
  for (std::uint64_t number = 0; number < 12; ++number) write(w, number);
  perflab_qos requested = keep_all();
  requested.durability = PERFLAB_TRANSIENT_LOCAL;
  Reader late = reader(requested);
  EXPECT_EQ(numbers(take_until(late, 5)), range(7, 12));
  EXPECT_TRUE(take_until_quiet(late, 100ms).empty());
  ASSERT_TRUE(matched(w, late));
  write(w, 12);
  EXPECT_EQ(numbers(take_until(late, 1)), range(12, 13));
}

TEST_F(Conformance, LateVolatileReaderGetsNoHistory) {
  PERFLAB_CREATE_OR_REFUSE(w, writer(transient_local(5)), "durability");
  for (std::uint64_t number = 0; number < 5; ++number) write(w, number);
  Reader late = reader();
  ASSERT_TRUE(matched(w, late));
  EXPECT_TRUE(take_until_quiet(late, 100ms).empty());
  write(w, 5);
  EXPECT_EQ(numbers(take_until(late, 1)), range(5, 6));
}

TEST_F(Conformance, VolatileWriterHasNoHistory) {
  Writer w = writer();
  for (std::uint64_t number = 0; number < 5; ++number) write(w, number);
  Reader late = reader();
  ASSERT_TRUE(matched(w, late));
  EXPECT_TRUE(take_until_quiet(late, 100ms).empty());
}

TEST_F(Conformance, MissedDeadlineIsReportedOnBothSides) {
  perflab_qos qos = keep_all();
  qos.deadline_ns = 100'000'000;
  Recorder of_writer, of_reader;
  PERFLAB_CREATE_OR_REFUSE(w, writer(qos, of_writer.listener()), "deadline");
  PERFLAB_CREATE_OR_REFUSE(r, reader(qos, of_reader.listener()), "deadline");
  ASSERT_TRUE(matched(w, r));
  write(w, 1);
  EXPECT_EQ(take_until(r, 1).size(), 1u);
  EXPECT_TRUE(eventually([&] { return of_writer.total(PERFLAB_DEADLINE_MISSED) >= 1; }));
  EXPECT_TRUE(eventually([&] { return of_reader.total(PERFLAB_DEADLINE_MISSED) >= 1; }));
}

TEST_F(Conformance, DeadlineThatIsMetIsNotReported) {
  perflab_qos qos = keep_all();
  qos.deadline_ns = 20'000'000'000;
  Recorder of_writer, of_reader;
  PERFLAB_CREATE_OR_REFUSE(w, writer(qos, of_writer.listener()), "deadline");
  PERFLAB_CREATE_OR_REFUSE(r, reader(qos, of_reader.listener()), "deadline");
  ASSERT_TRUE(matched(w, r));
  for (std::uint64_t number = 0; number < 5; ++number) write(w, number);
  EXPECT_EQ(take_until(r, 5).size(), 5u);
  EXPECT_FALSE(of_writer.has(PERFLAB_DEADLINE_MISSED));
  EXPECT_FALSE(of_reader.has(PERFLAB_DEADLINE_MISSED));
}

TEST_F(Conformance, ExpiredMessagesAreNotTaken) {
  perflab_qos qos = keep_all();
  qos.lifespan_ns = 200'000'000;
  PERFLAB_CREATE_OR_REFUSE(w, writer(qos), "lifespan");
  Reader r = reader();
  ASSERT_TRUE(matched(w, r));
  write(w, 1);
  write(w, 2);
  std::this_thread::sleep_for(400ms);
  EXPECT_FALSE(take(r));
  EXPECT_TRUE(eventually([&] {  // one that is fresh enough on a machine that may pause
    write(w, 3);
    const auto one = take(r);
    return one && one->number() == 3;
  }));
}

TEST_F(Conformance, ManualLivelinessIsLostWithoutMessagesAndComesBackWithOne) {
  perflab_qos qos = keep_all();
  qos.liveliness = PERFLAB_MANUAL_BY_TOPIC;
  qos.lease_duration_ns = 200'000'000;
  Recorder of_writer, of_reader;
  PERFLAB_CREATE_OR_REFUSE(w, writer(qos, of_writer.listener()), "liveliness");
  PERFLAB_CREATE_OR_REFUSE(r, reader(qos, of_reader.listener()), "liveliness");
  ASSERT_TRUE(matched(w, r));
  write(w, 1);
  EXPECT_TRUE(eventually([&] { return of_writer.total(PERFLAB_LIVELINESS_LOST) >= 1; }));
  EXPECT_TRUE(eventually([&] { return of_reader.total(PERFLAB_LIVELINESS_CHANGED) == 0; }))
      << "became alive and not alive: the counts cancel out";
  const std::size_t changes = of_reader.events().size();
  write(w, 2);
  EXPECT_TRUE(eventually([&] { return of_reader.events().size() > changes; }));
  EXPECT_EQ(take_until(r, 2).size(), 2u);
}

TEST_F(Conformance, AutomaticLivelinessIsNotLostWithoutMessages) {
  perflab_qos qos = keep_all();
  qos.lease_duration_ns = 500'000'000;
  Recorder of_writer, of_reader;
  PERFLAB_CREATE_OR_REFUSE(w, writer(qos, of_writer.listener()), "liveliness");
  PERFLAB_CREATE_OR_REFUSE(r, reader(qos, of_reader.listener()), "liveliness");
  ASSERT_TRUE(matched(w, r));
  EXPECT_TRUE(eventually([&] { return of_reader.total(PERFLAB_LIVELINESS_CHANGED) == 1; }));
  wait_for_a_lost_lease(participant(), qos.lease_duration_ns);
  EXPECT_EQ(of_reader.total(PERFLAB_LIVELINESS_CHANGED), 1);
  EXPECT_FALSE(of_writer.has(PERFLAB_LIVELINESS_LOST));
}

}  // namespace
}  // namespace perflab::conformance
