// Delivery of messages within a process, by the rules of rclcpp's IntraProcessManager.
#include "runtime/dds/intra_process.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <set>
#include <string>

#include "../rows.h"
#include "middleware/policies.h"
#include "middleware/types.h"

namespace perflab::runtime {
namespace {

class TestTaker final : public Taker {
 public:
  void accept(MessageRef message) noexcept override { got.push_back(std::move(message)); }
  std::vector<MessageRef> got;
};

MessageRef make_message() {
  MessageRef message = Message::make(100);
  std::memset(message->bytes().data(), 7, 100);
  message->sequence = 3;
  message->related.sequence = 4;
  message->writer.bytes[0] = 5;
  return message;
}

struct Rule {
  std::size_t sharing;
  std::size_t owning;
  bool keep;              // the middleware needs it as well
  std::size_t copies;     // of each message
  std::size_t originals;  // takers that got the message itself
  bool sharing_alike;     // sharing takers got the same one
};

class HandingOut : public testing::TestWithParam<Rule> {};

TEST_P(HandingOut, FollowsTheRule) {
  const Rule rule = GetParam();
  std::deque<TestTaker> sharing(rule.sharing);
  std::deque<TestTaker> owning(rule.owning);
  Takers takers;
  for (TestTaker& taker : sharing) takers.sharing.push_back(&taker);
  for (TestTaker& taker : owning) takers.owning.push_back(&taker);
  EXPECT_EQ(takers.count(), rule.sharing + rule.owning);
  EXPECT_EQ(takers.copies(rule.keep), rule.copies);

  MessageRef message = make_message();
  Message* const original = message.get();
  const HandedOut result = hand_out(std::move(message), takers, rule.keep);
  EXPECT_TRUE(result.complete);

  std::set<Message*> distinct;
  std::size_t originals = 0;
  for (const std::deque<TestTaker>* takers_of_kind : {&sharing, &owning}) {
    for (const TestTaker& taker : *takers_of_kind) {
      ASSERT_EQ(taker.got.size(), 1u);
      const Message& got = *taker.got.front();
      distinct.insert(taker.got.front().get());
      originals += taker.got.front().get() == original ? 1 : 0;
      EXPECT_EQ(got.bytes().size(), 100u);
      EXPECT_TRUE(std::ranges::all_of(got.bytes(), [](std::uint8_t byte) { return byte == 7; }));
      EXPECT_EQ(got.sequence, 3);
      EXPECT_EQ(got.related.sequence, 4);
      EXPECT_EQ(got.writer.bytes[0], 5);
    }
  }
  if (result.kept) distinct.insert(result.kept.get());
  EXPECT_EQ(distinct.size(), rule.copies + 1);
  EXPECT_EQ(originals, rule.originals);
  // An owner's message is not shared.
  for (const TestTaker& taker : owning) {
    for (const TestTaker& other : sharing) EXPECT_NE(taker.got.front().get(), other.got.front().get());
    EXPECT_NE(taker.got.front().get(), result.kept.get());
  }
  for (const TestTaker& taker : sharing) {
    EXPECT_EQ(taker.got.front().get() == sharing.front().got.front().get(),
              rule.sharing_alike || &taker == &sharing.front());
  }
  if (rule.keep) {
    ASSERT_TRUE(result.kept);
    EXPECT_EQ(result.kept->bytes().size(), 100u);
  }
}

INSTANTIATE_TEST_SUITE_P(, HandingOut,
                         testing::Values(Rule{1, 0, false, 0, 1, true},  // the only one gets it
                                         Rule{3, 0, false, 0, 3, true},  // all share it
                                         Rule{0, 1, false, 0, 1, true},  //
                                         Rule{0, 3, false, 2, 1, true},  // each but the last gets a copy
                                         Rule{1, 1, false, 1, 1, true},  // one that shares counts as an owner
                                         Rule{1, 3, false, 3, 1, true},  //
                                         Rule{2, 1, false, 1, 1, true},  // several share one copy
                                         Rule{4, 3, false, 3, 1, true},  //
                                         Rule{1, 0, true, 0, 1, true},  // the middleware reads what all share
                                         Rule{3, 0, true, 0, 3, true},  //
                                         Rule{0, 1, true, 1, 1,
                                              true},  // ... or a copy, if the message is given away
                                         Rule{1, 1, true, 1, 1, true},  // which it shares
                                         Rule{2, 2, true, 2, 1, true}),
                         [](const auto& info) {
                           const Rule& rule = info.param;
                           return std::to_string(rule.sharing) + "_sharing_" + std::to_string(rule.owning) +
                                  "_owning" + (rule.keep ? "_and_the_middleware" : "");
                         });

TEST(Message, LivesAsLongAsSomebodyRefersToIt) {
  MessageRef a = make_message();
  MessageRef b = a;
  EXPECT_EQ(a.get(), b.get());
  a = {};
  EXPECT_FALSE(a);
  EXPECT_EQ(b->bytes()[99], 7);
  const MessageRef c = std::move(b);
  EXPECT_FALSE(b);  // NOLINT(bugprone-use-after-move): that it is empty is what is tested
  EXPECT_EQ(c->bytes()[99], 7);
}

TEST(Message, AlignsItsBodyAsCdrCounts) {
  for (const std::size_t size : {4u, 5u, 100u, 4097u}) {
    const MessageRef message = Message::make(size);
    EXPECT_EQ((reinterpret_cast<std::uintptr_t>(message->bytes().data()) + 4) % 8, 0u);
  }
}

Ring::Entry numbered(std::int64_t number) {
  MessageRef message = Message::make(8);
  message->sequence = number;
  return {std::move(message), number * 10};
}

TEST(Ring, DropsTheOldestWhenItIsFull) {
  Ring ring(3);
  EXPECT_TRUE(ring.empty());
  for (std::int64_t i = 0; i < 3; ++i) EXPECT_TRUE(ring.push(numbered(i)));
  for (std::int64_t i = 3; i < 5; ++i) EXPECT_FALSE(ring.push(numbered(i)));
  for (std::int64_t i = 2; i < 5; ++i) {
    Ring::Entry entry;
    EXPECT_EQ(ring.pop(entry), i < 4 ? Ring::Popped::kMore : Ring::Popped::kLast);
    EXPECT_EQ(entry.message->sequence, i);
    EXPECT_EQ(entry.arrived_ns, i * 10);
  }
  EXPECT_TRUE(ring.empty());
  Ring::Entry entry;
  EXPECT_EQ(ring.pop(entry), Ring::Popped::kNothing);
}

struct Stricter {
  const char* name;
  void (*strengthen)(perflab_qos&);
  const char* policy;  // a policy that does not match the offered one; null: defaults
};
class IncompatiblePolicy : public testing::TestWithParam<Stricter> {};

TEST_P(IncompatiblePolicy, IsAsDdsComparesOfferedWithRequested) {
  perflab_qos weak = middleware::default_qos();
  weak.reliability = PERFLAB_BEST_EFFORT;
  perflab_qos strong = weak;
  GetParam().strengthen(strong);
  EXPECT_STREQ(middleware::incompatible_policy(weak, strong), GetParam().policy);
  EXPECT_STREQ(middleware::incompatible_policy(strong, weak), nullptr);
  EXPECT_STREQ(middleware::incompatible_policy(strong, strong), nullptr);
}

INSTANTIATE_TEST_SUITE_P(
    , IncompatiblePolicy,
    rows::of<Stricter>(
        {{"None", [](perflab_qos&) {}, nullptr},
         {"Reliability", [](perflab_qos& qos) { qos.reliability = PERFLAB_RELIABLE; }, "reliability"},
         {"Durability", [](perflab_qos& qos) { qos.durability = PERFLAB_TRANSIENT_LOCAL; }, "durability"},
         {"Deadline", [](perflab_qos& qos) { qos.deadline_ns = 5; }, "deadline"},
         {"Liveliness", [](perflab_qos& qos) { qos.liveliness = PERFLAB_MANUAL_BY_TOPIC; }, "liveliness"},
         {"Lease", [](perflab_qos& qos) { qos.lease_duration_ns = 5; }, "liveliness"},
         {"DestinationOrder", [](perflab_qos& qos) { qos.destination_order = PERFLAB_BY_SOURCE; }, "destination_order"},
         {"AccessScope", [](perflab_qos& qos) { qos.access_scope = PERFLAB_SCOPE_TOPIC; }, "presentation"},
         {"Coherent", [](perflab_qos& qos) { qos.coherent = true; }, "presentation"},
         {"Ordered", [](perflab_qos& qos) { qos.ordered = true; }, "presentation"},
         {"History", [](perflab_qos& qos) { qos.history = PERFLAB_KEEP_ALL; }, nullptr}}),
    rows::by_name);

}  // namespace
}  // namespace perflab::runtime
