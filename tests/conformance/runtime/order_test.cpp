// The executors that promise an order: `priority` and `let`.
#include "lab.h"

namespace perflab::runtime::conformance {
namespace {

// Who ran, in turn.
class Course {
 public:
  void add(const std::string& who) {
    const std::lock_guard lock(mutex_);
    names_.push_back(who);
  }
  std::size_t count() const { return names().size(); }
  std::vector<std::string> names() const {
    const std::lock_guard lock(mutex_);
    return names_;
  }

 private:
  mutable std::mutex mutex_;
  std::vector<std::string> names_;
};
using Names = std::vector<std::string>;

class Ordered : public Lab {
 protected:
  // Messages within the process where the runtime has that: they are there when publish() returns. In virtual
  // time they are there after a while.
  bool open_with(ExecutorKind kind) {
    const std::vector<ExecutorKind> known = subject().executors();
    if (std::ranges::count(known, kind) == 0) return false;
    // Otherwise nobody could say when a message has become ready.
    if (real_time() && !abilities().intra_process) return false;
    open({.intra_process = abilities().intra_process});
    try {
      on_ = node_on(executor(kind, 1, {}, {}, period_));
      return true;
    } catch (const Error& error) {
      EXPECT_TRUE(subject().may_lack(kind)) << error.what();
      return false;
    }
  }
  Node with(int priority) const {
    Node node = on_;
    node.priority = priority;
    return node;
  }
  Guarded waitable(const std::string& name, int priority = 0) {
    const Guarded made = Lab::waitable(with(priority));
    made.answers->on_each = [this, name](Nanoseconds) { course_.add(name); };
    return made;
  }
  Inbox& subscribe(const std::string& name, int priority = 0, int depth = 10) {
    Inbox& made = Lab::subscribe(with(priority), "/" + name, kSmall, keep_last(depth));
    made.on_each = [this, name](const Received& received) {
      course_.add(name + std::to_string(received.number));
    };
    return made;
  }
  // One callback that makes others ready, and ends when all of them are. Before all others, also where the machine was so
  // busy that other timers were due by then.
  void first(std::function<void()> what) {
    Ticks& once = timer(with(1'000), 1h, 1, 1, false, {}, 5ms - 1h);
    once.on_each = [this, what = std::move(what)](Nanoseconds) {
      course_.add("first");
      what();
      if (!real_time()) runtime().work(5'000'000);
    };
  }

  // Those that rclcpp leaves out included.
  static std::uint64_t ticked(const Ticks& ticks) { return ticks.count() + ticks.skipped(); }

  Nanoseconds period_ = 0;
  Node on_{};
  Course course_;
};

class Priority : public Ordered {
 protected:
  void SetUp() override {
    if (!open_with(ExecutorKind::kPriority)) GTEST_SKIP() << "there is no such executor, or no delivery within the process";
  }
};

TEST_F(Priority, WhatIsReadyAtOnceRunsByPriority) {
  const Guarded low = waitable("low", -1);
  const Guarded high = waitable("high", 30);
  subscribe("message", 10);
  Publisher& writer = publisher("/message", kSmall);
  Ticks& tick = timer(with(20), 1h, 1, 1, false, {}, 8ms - 1h);
  tick.on_each = [this](Nanoseconds) { course_.add("tick"); };
  first([&] {
    low.endpoint->trigger(1);
    EXPECT_TRUE(send(writer, kSmall, 7));
    high.endpoint->trigger(2);
    hold(0ms, [&] { return now() >= base() + 8'000'000; });
  });
  ASSERT_TRUE(matched());
  start();
  EXPECT_TRUE(eventually([&] { return course_.count() == 5; }));
  runtime().stop();
  EXPECT_EQ(course_.names(), (Names{"first", "high", "tick", "message7", "low"}));
}

TEST_F(Priority, WhatBecomesReadyMeanwhileGoesBeforeWhatWaitsWithLess) {
  const Guarded low = waitable("low", 1);
  const Guarded high = waitable("high", 2);
  const Guarded middle = waitable("middle", 1);
  middle.answers->on_each = [&](Nanoseconds) {
    course_.add("middle");
    high.endpoint->trigger(3);
    if (!real_time()) runtime().work(1'000'000);
  };
  first([&] {
    middle.endpoint->trigger(1);
    if (real_time()) hold(0ms, [before = now(), this] { return now() > before; });
    low.endpoint->trigger(2);
  });
  start();
  EXPECT_TRUE(eventually([&] { return course_.count() == 4; }));
  runtime().stop();
  Names names = course_.names();
  ASSERT_EQ(names.size(), 4u);
  // Which of two with the same priority goes first is not said where the runtime sees both at once.
  const auto at = std::ranges::find(names, "middle");
  ASSERT_NE(at, names.end());
  ASSERT_NE(at + 1, names.end());
  EXPECT_EQ(*(at + 1), "high");
}

// A load of lower priority that never ends holds up each tick by the callback that runs when it is due, and what has less
// still does not run.
TEST_F(Priority, UnderOverloadATickWaitsForOneCallbackOfLowerPriorityAtMost) {
  constexpr std::uint64_t kTicks = 30;
  const Guarded load = waitable("load", 0);
  const Guarded starved = waitable("starved", -1);
  Ticks& urgent = timer(with(1), 5ms, 1, kTicks);
  std::atomic<bool> over{false};
  std::atomic<std::size_t> starved_before{0};
  load.answers->on_each = [&](Nanoseconds) {
    runtime().work(700'000);
    if (ticked(urgent) < kTicks) {
      load.endpoint->trigger(1);
    } else {
      over = true;
    }
  };
  starved.answers->on_each = [&](Nanoseconds) { starved_before += over ? 0 : 1; };
  first([&] {
    load.endpoint->trigger(1);
    starved.endpoint->trigger(1);
  });
  start();
  EXPECT_TRUE(eventually([&] { return starved.answers->executed() == 1; }));
  runtime().stop();
  EXPECT_EQ(starved_before, 0u);
  ASSERT_EQ(ticked(urgent), kTicks);
  const auto spans = load.answers->all();
  Nanoseconds since = base();
  for (const Ticks::Tick& tick : urgent.all()) {
    if (tick.skipped > 0) continue;
    // Ticks that are due together come together.
    const Nanoseconds from = std::max(tick.due_ns, since);
    const auto between = std::ranges::count_if(
        spans, [&](const auto& span) { return span.end_ns > from && span.end_ns <= tick.begin_ns; });
    EXPECT_LE(between, 1) << "callbacks before the tick due at " << tick.due_ns - base();
    since = tick.end_ns;
  }
}

class Let : public Ordered {
 protected:
  void SetUp() override {
    if (!open_with(ExecutorKind::kLet)) GTEST_SKIP() << "there is no such executor, or no delivery within the process";
  }
};

TEST_F(Let, WhatIsReadyAtOnceRunsInTheOrderOfCreation) {
  std::function<void()> trigger;
  first([&] { trigger(); });
  Ticks& tick = timer(on_, 1h, 1, 1, false, {}, 8ms - 1h);
  tick.on_each = [this](Nanoseconds) { course_.add("tick"); };
  const Guarded one = waitable("one");
  subscribe("message");
  const Guarded two = waitable("two");
  Publisher& writer = publisher("/message", kSmall);
  trigger = [&] {
    two.endpoint->trigger(1);
    EXPECT_TRUE(send(writer, kSmall, 7));
    one.endpoint->trigger(2);
    hold(0ms, [&] { return now() >= base() + 8'000'000; });
  };
  ASSERT_TRUE(matched());
  start();
  EXPECT_TRUE(eventually([&] { return course_.count() == 5; }));
  runtime().stop();
  EXPECT_EQ(course_.names(), (Names{"first", "tick", "one", "message7", "two"}));
}

// The queue of /b has room for one message: that of the first callback is taken before the second callback sends another.
TEST_F(Let, CallbacksSeeWhatWasThereWhenTheirActivationBegan) {
  Inbox& a = subscribe("a");
  subscribe("b", 0, 1);
  const Guarded self = waitable("self");
  Publisher& to_a = publisher_of(on_, "/a", kSmall);
  Publisher& to_b = publisher_of(on_, "/b", kSmall, keep_last(1));
  a.on_each = [&](const Received&) {
    course_.add("a");
    EXPECT_TRUE(send(to_b, kSmall, 2));
    self.endpoint->trigger(2);  // it has been triggered, and that has been taken
    if (!real_time()) runtime().work(5'000'000);
  };
  first([&] {
    EXPECT_TRUE(send(to_a, kSmall, 0));
    EXPECT_TRUE(send(to_b, kSmall, 1));
    self.endpoint->trigger(1);
  });
  ASSERT_TRUE(matched());
  start();
  EXPECT_TRUE(eventually([&] { return course_.count() == 6; }));
  runtime().stop();
  EXPECT_EQ(course_.names(), (Names{"first", "a", "b1", "self", "b2", "self"}));
  EXPECT_EQ(self.answers->coalesced(), std::vector<Nanoseconds>{});
}

class LetWithPeriod : public Ordered {
 protected:
  LetWithPeriod() { period_ = 10'000'000; }
  void SetUp() override {
    if (!open_with(ExecutorKind::kLet)) GTEST_SKIP() << "there is no such executor, or no delivery within the process";
  }
};

// The timer was created first, so its tick begins each activation, after all has been taken.
TEST_F(LetWithPeriod, MessagesAreThoseThatWereThereWhenThePeriodBegan) {
  Ticks& ticks = timer(on_, 10ms, 1, 30);
  Inbox& inbox = Lab::subscribe(on_, "/a", kSmall, keep_last(1'000));
  inbox.on_each = [this](const Received&) { runtime().work(3'000'000); };
  Publisher& writer = publisher("/a", kSmall);
  std::atomic<std::uint64_t> sent{0};
  Ticks& sender = timer(source(), 17ms, 1, 17);
  sender.on_each = [&](Nanoseconds) { EXPECT_TRUE(send(writer, kSmall, sent++)); };
  ASSERT_TRUE(matched());
  start();
  EXPECT_TRUE(timers_done());
  EXPECT_TRUE(eventually([&] { return inbox.count() == sent; }));
  runtime().stop();
  EXPECT_GT(sent, 0u);
  EXPECT_EQ(inbox.numbers(), range(0, sent));
  std::vector<Nanoseconds> begins;
  for (const Ticks::Tick& tick : ticks.all()) {
    if (tick.skipped == 0) begins.push_back(tick.begin_ns);
  }
  for (const Received& one : inbox.messages()) {
    const auto after = std::ranges::upper_bound(begins, one.begin_ns);
    if (after == begins.begin()) continue;
    const Nanoseconds begin = *std::prev(after);
    if (abilities().tells_arrivals) {
      EXPECT_LE(one.arrived_ns, begin) << "message " << one.number;
    }
    // A thread wakes up a moment after the period has begun.
    if (!real_time()) {
      EXPECT_EQ((begin - base()) % period_, 0) << "message " << one.number;
    }
  }
  for (const Nanoseconds begin : begins) EXPECT_GE(begin, base() + period_);
}

TEST_F(LetWithPeriod, BetweenTwoPeriodsOneMessageOfASubscriptionIsTaken) {
  Inbox& inbox = Lab::subscribe(on_, "/a", kSmall, keep_last(1'000));
  Publisher& writer = publisher("/a", kSmall);
  at(1ms, [&] {
    for (std::uint64_t i = 0; i < 10; ++i) EXPECT_TRUE(send(writer, kSmall, i));
  });
  ASSERT_TRUE(matched());
  start();
  EXPECT_TRUE(eventually([&] { return inbox.count() == 10; }));
  runtime().stop();
  EXPECT_EQ(inbox.numbers(), range(0, 10));
  const std::vector<Received> messages = inbox.messages();
  for (std::size_t i = 1; i < messages.size(); ++i) {
    EXPECT_GT((messages[i].begin_ns - base()) / period_, (messages[i - 1].begin_ns - base()) / period_) << i;
  }
}

}  // namespace
}  // namespace perflab::runtime::conformance
