// Who communicates with whom.
#include "fixture.h"

namespace perflab::conformance {
namespace {

TEST_F(Conformance, MatchedCountsRiseAndFallOnBothSides) {
  Recorder of_writer, of_reader;
  std::optional<Writer> w = writer(keep_all(), of_writer.listener());
  EXPECT_EQ(w->matched_readers(), 0u);
  std::optional<Reader> a = reader(keep_all(), of_reader.listener());
  ASSERT_TRUE(matched(*w, *a));
  std::optional<Reader> b = reader();
  ASSERT_TRUE(matched(*w, *b, 2));
  b.reset();
  EXPECT_TRUE(eventually([&] { return w->matched_readers() == 1; }));
  EXPECT_TRUE(eventually([&] { return of_writer.total(PERFLAB_UNMATCHED) == 1; }));
  EXPECT_EQ(of_writer.total(PERFLAB_MATCHED), 2);
  const std::string writer_identity = to_hex(w->identity());
  w.reset();
  EXPECT_TRUE(eventually([&] { return a->matched_writers() == 0; }));

  EXPECT_TRUE(eventually([&] { return of_reader.total(PERFLAB_MATCHED) == 1; }));
  EXPECT_TRUE(eventually([&] { return of_reader.total(PERFLAB_UNMATCHED) == 1; }));
  const auto event = of_reader.find(PERFLAB_MATCHED);
  ASSERT_TRUE(event);
  EXPECT_EQ(to_hex(event->peer), writer_identity);
  EXPECT_EQ(event->topic, kTopic);
  EXPECT_EQ(event->type, kType);
  EXPECT_LE(event->at_ns, now_ns());
}

TEST_F(Conformance, OtherTopicDoesNotMatch) {
  Writer w = writer();
  Reader same = reader();
  Reader other = reader(keep_all(), {}, "rt/other");
  ASSERT_TRUE(matched(w, same));
  EXPECT_EQ(other.matched_writers(), 0u);
  write(w, 1);
  EXPECT_EQ(take_until(same, 1).size(), 1u);
  EXPECT_FALSE(take(other));
}

TEST_F(Conformance, OtherTypeDoesNotMatch) {
  Writer w = writer();
  std::optional<Reader> other;
  try {
    other.emplace(reader(keep_all(), {}, kTopic, "perflab_msgs::msg::dds_::Other_"));
  } catch (const Error&) {
    return;  // refused at once, which is as good
  }
  Reader same = reader();
  ASSERT_TRUE(matched(w, same));
  write(w, 1);
  EXPECT_EQ(take_until(same, 1).size(), 1u);
  EXPECT_EQ(other->matched_writers(), 0u);
  EXPECT_FALSE(take(*other));
}

class Incompatible : public Conformance {
 protected:
  // No match, and both sides receive an event with the reason.
  void expect_incompatible(const perflab_qos& offered, const perflab_qos& requested, const char* policy) {
    Recorder of_writer, of_reader;
    PERFLAB_CREATE_OR_REFUSE(w, writer(offered, of_writer.listener()), policy);
    PERFLAB_CREATE_OR_REFUSE(r, reader(requested, of_reader.listener()), policy);
    EXPECT_TRUE(eventually([&] { return of_writer.has(PERFLAB_INCOMPATIBLE_QOS); }));
    EXPECT_TRUE(eventually([&] { return of_reader.has(PERFLAB_INCOMPATIBLE_QOS); }));
    EXPECT_EQ(of_writer.find(PERFLAB_INCOMPATIBLE_QOS)->policy, policy);
    EXPECT_EQ(of_reader.find(PERFLAB_INCOMPATIBLE_QOS)->policy, policy);
    EXPECT_EQ(w.matched_readers(), 0u);
    EXPECT_EQ(r.matched_writers(), 0u);
    write(w, 1);
    EXPECT_TRUE(take_until_quiet(r, 100ms).empty());
  }
};

TEST_F(Incompatible, BestEffortWriterAndReliableReader) {
  perflab_qos offered = keep_all();
  offered.reliability = PERFLAB_BEST_EFFORT;
  expect_incompatible(offered, reliable(keep_all()), "reliability");
}

TEST_F(Incompatible, VolatileWriterAndTransientLocalReader) {
  perflab_qos requested = keep_all();
  requested.durability = PERFLAB_TRANSIENT_LOCAL;
  expect_incompatible(keep_all(), requested, "durability");
}

TEST_F(Incompatible, WriterWithLongerDeadlineThanItsReader) {
  perflab_qos offered = keep_all();
  offered.deadline_ns = 2'000'000'000;
  perflab_qos requested = keep_all();
  requested.deadline_ns = 1'000'000'000;
  expect_incompatible(offered, requested, "deadline");
}

TEST_F(Incompatible, AutomaticWriterAndManualReader) {
  perflab_qos requested = keep_all();
  requested.liveliness = PERFLAB_MANUAL_BY_TOPIC;
  expect_incompatible(keep_all(), requested, "liveliness");
}

TEST_F(Conformance, ReliableWriterServesBestEffortReader) {
  perflab_qos requested = keep_all();
  requested.reliability = PERFLAB_BEST_EFFORT;
  PERFLAB_CREATE_OR_REFUSE(w, writer(reliable(keep_all())), "reliability");
  PERFLAB_CREATE_OR_REFUSE(r, reader(requested), "reliability");
  ASSERT_TRUE(matched(w, r));
  std::uint64_t sent = 0;
  EXPECT_TRUE(eventually([&] {
    write(w, sent++);
    return take(r).has_value();
  }));
}

}  // namespace
}  // namespace perflab::conformance
