// Quality of service: who may meet, and what comes of it.
#include <deque>

#include "lab.h"
#include "middleware/policies.h"

namespace perflab::runtime::conformance {
namespace {

class Qos : public Lab {
 protected:
  struct Pair {
    perflab_qos offered;
    perflab_qos requested;
    Publisher* publisher = nullptr;
    Inbox* inbox = nullptr;
    Subscription* subscription = nullptr;

    const char* policy() const { return middleware::incompatible_policy(offered, requested); }
  };

  static perflab_qos make(perflab_reliability reliability, perflab_durability durability) {
    perflab_qos qos = keep_last(100);
    qos.reliability = reliability;
    qos.durability = durability;
    return qos;
  }

  static bool is_given(const perflab_qos& qos) {
    const Abilities abilities = subject().abilities();
    return (abilities.reliable || qos.reliability == PERFLAB_BEST_EFFORT) &&
           (abilities.durable || qos.durability == PERFLAB_VOLATILE);
  }

  // Each pair on a topic of its own, but for what the subject refuses.
  void expect_semantics(std::deque<Pair>& pairs) {
    std::erase_if(pairs, [](const Pair& pair) { return !is_given(pair.offered) || !is_given(pair.requested); });
    const Node on = node(ExecutorKind::kSingleThreaded);
    for (std::size_t i = 0; i < pairs.size(); ++i) {
      Pair& pair = pairs[i];
      const std::string topic = "/topic_" + std::to_string(i);
      pair.publisher = &publisher(topic, kSmall, pair.offered);
      pair.inbox = &inbox(kSmall);
      pair.subscription = &runtime().create_subscription(
          on.executor, endpoint(on, topic, kSmall, pair.requested), *pair.inbox);
    }
    at(10ms, [&] {
      for (Pair& pair : pairs) {
        for (std::uint64_t i = 0; i < 20; ++i) EXPECT_TRUE(send(*pair.publisher, kSmall, i));
      }
    });
    for (Pair& pair : pairs) {
      if (pair.policy() != nullptr) continue;
      EXPECT_TRUE(
          eventually([&] { return pair.publisher->matched() == 1 && pair.subscription->matched() == 1; }));
    }
    start();
    for (const Pair& pair : pairs) {
      if (pair.policy() != nullptr) continue;
      const bool lossless = pair.requested.reliability == PERFLAB_RELIABLE;
      EXPECT_TRUE(eventually([&] { return pair.inbox->count() >= (lossless ? 20u : 1u); }))
          << pair.inbox->count();
    }
    for (const Pair& pair : pairs) {
      if (pair.policy() == nullptr || !abilities().tells_events) continue;
      EXPECT_TRUE(eventually([&] { return sink_.has(PERFLAB_INCOMPATIBLE_QOS, pair.policy()); }))
          << pair.policy();
    }
    runtime().stop();
    for (const Pair& pair : pairs) {
      EXPECT_TRUE(pair.inbox->all_intact());
      if (pair.policy() == nullptr) {
        if (pair.requested.reliability == PERFLAB_RELIABLE) {
          EXPECT_EQ(pair.inbox->numbers(), range(0, 20));
        }
      } else {
        EXPECT_EQ(pair.publisher->matched(), 0u) << pair.policy();
        EXPECT_EQ(pair.inbox->count(), 0u) << pair.policy();
      }
    }
  }
};

constexpr auto kReliabilities = {PERFLAB_BEST_EFFORT, PERFLAB_RELIABLE};
constexpr auto kDurabilities = {PERFLAB_VOLATILE, PERFLAB_TRANSIENT_LOCAL};

TEST_F(Qos, OffersMeetRequestsThatAreNoStricter) {
  open();
  std::deque<Pair> pairs;
  for (const auto offered : kReliabilities) {
    for (const auto requested : kReliabilities) {
      for (const auto kept : kDurabilities) {
        for (const auto wanted : kDurabilities)
          pairs.push_back({make(offered, kept), make(requested, wanted)});
      }
    }
  }
  expect_semantics(pairs);
}

TEST_F(Qos, OffersMeetRequestsThatAreNoStricterWithinTheProcess) {
  if (!subject().abilities().intra_process) return;
  open({.intra_process = true});
  std::deque<Pair> pairs;
  for (const auto offered : kReliabilities) {
    for (const auto requested : kReliabilities)
      pairs.push_back({make(offered, PERFLAB_VOLATILE), make(requested, PERFLAB_VOLATILE)});
  }
  expect_semantics(pairs);
}

TEST_F(Qos, AHistoryWithoutABoundLosesNothing) {
  constexpr std::uint64_t kMessages = 1'000;
  if (!subject().abilities().reliable) GTEST_SKIP() << "it keeps what a socket holds";
  open();
  Inbox& inbox = subscribe(node(ExecutorKind::kSingleThreaded), "/a", kSmall, keep_all());
  Publisher& writer = publisher("/a", kSmall, keep_all());
  at(10ms, [&] {
    for (std::uint64_t i = 0; i < kMessages; ++i) EXPECT_TRUE(send(writer, kSmall, i));
  });
  ASSERT_TRUE(matched());
  start();
  EXPECT_TRUE(eventually([&] { return inbox.count() >= kMessages; })) << inbox.count();
  runtime().stop();
  EXPECT_EQ(inbox.numbers(), range(0, kMessages));
}

}  // namespace
}  // namespace perflab::runtime::conformance
