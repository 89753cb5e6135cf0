// Waiting, and being called.
#include "fixture.h"

namespace perflab::conformance {
namespace {

class Waiting : public Conformance {
 protected:
  // What one wait() says.
  struct Outcome {
    perflab_status status;
    std::vector<std::uint64_t> ready;
  };
  static Outcome wait(WaitSet& set, std::chrono::nanoseconds timeout = kPatience, std::size_t capacity = 8) {
    std::vector<std::uint64_t> ready(capacity);
    std::size_t count = 0;
    perflab_error error{};
    const perflab_status status = set.wait(timeout.count(), ready, count, error);
    EXPECT_GE(status, 0) << error.text;
    ready.resize(status == PERFLAB_OK ? count : 0);
    return {status, ready};
  }
  // A reader that has `count` messages to take.
  Reader filled(Writer& w, std::uint64_t count = 1, const char* topic = kTopic) {
    Reader r = reader(keep_all(), {}, topic);
    EXPECT_TRUE(eventually([&] { return r.matched_writers() == 1 && w.matched_readers() == 1; }));
    for (std::uint64_t i = 0; i < count; ++i) write(w, i);
    return r;
  }
};

using Ready = std::vector<std::uint64_t>;

TEST_F(Waiting, TimesOutWithNothing) {
  Reader r = reader();
  WaitSet set = participant().create_waitset();
  set.attach(r, 7);
  EXPECT_EQ(wait(set, 0ns).status, PERFLAB_TIMEOUT);
  const std::int64_t before = now_ns();
  EXPECT_EQ(wait(set, 30ms).status, PERFLAB_TIMEOUT);
  EXPECT_GE(now_ns() - before, 29'000'000);
}

TEST_F(Waiting, TimesOutWithoutReaders) {
  WaitSet set = participant().create_waitset();
  EXPECT_EQ(wait(set, 10ms).status, PERFLAB_TIMEOUT);
}

TEST_F(Waiting, TellsTheCookieOfTheReaderWithData) {
  Writer w = writer();
  Reader quiet = reader(keep_all(), {}, "rt/quiet");
  WaitSet set = participant().create_waitset();
  Reader r = reader();
  set.attach(quiet, 1);
  set.attach(r, 0xfedcba9876543210u);
  ASSERT_TRUE(matched(w, r));
  write(w, 1);
  const Outcome outcome = wait(set);
  EXPECT_EQ(outcome.status, PERFLAB_OK);
  EXPECT_EQ(outcome.ready, Ready{0xfedcba9876543210u});
}

TEST_F(Waiting, IsLevelTriggered) {
  Writer w = writer();
  Reader r = filled(w, 2);
  WaitSet set = participant().create_waitset();
  set.attach(r, 5);  // data that came before counts as well
  EXPECT_EQ(wait(set).ready, Ready{5});
  EXPECT_EQ(wait(set, 0ns).ready, Ready{5});
  EXPECT_TRUE(eventually([&] { return take(r).has_value(); }));
  EXPECT_EQ(wait(set).ready, Ready{5});
  EXPECT_TRUE(eventually([&] { return take(r).has_value(); }));
  EXPECT_EQ(wait(set, 10ms).status, PERFLAB_TIMEOUT);
}

TEST_F(Waiting, ReportsInOrderOfAttachmentAndWhatDidNotFitNext) {
  std::vector<Writer> writers;
  std::vector<Reader> readers;
  WaitSet set = participant().create_waitset();
  for (std::uint64_t i = 0; i < 5; ++i) {
    const std::string topic = "rt/order" + std::to_string(i);
    writers.push_back(writer(keep_all(), {}, topic.c_str()));
    readers.push_back(filled(writers.back(), 1, topic.c_str()));
  }
  for (std::size_t i : {3u, 0u, 4u, 1u, 2u}) set.attach(readers[i], i);
  // Until each has its message.
  EXPECT_TRUE(eventually([&] { return wait(set, 0ns).ready.size() == 5; }));
  EXPECT_EQ(wait(set).ready, (Ready{3, 0, 4, 1, 2}));
  EXPECT_EQ(wait(set, kPatience, 2).ready, (Ready{3, 0}));
  EXPECT_EQ(wait(set, kPatience, 2).ready, (Ready{4, 1}));
  EXPECT_EQ(wait(set, kPatience, 2).ready, (Ready{2, 3}));
  EXPECT_EQ(wait(set, kPatience, 1).ready, (Ready{0}));
}

TEST_F(Waiting, WakeIsSticky) {
  Reader r = reader();
  WaitSet set = participant().create_waitset();
  set.attach(r, 1);
  set.wake();
  set.wake();
  const Outcome outcome = wait(set);
  EXPECT_EQ(outcome.status, PERFLAB_OK);
  EXPECT_TRUE(outcome.ready.empty());
  EXPECT_EQ(wait(set, 10ms).status, PERFLAB_TIMEOUT);
}

TEST_F(Waiting, WakeEndsAWaitFromAnotherThread) {
  WaitSet set = participant().create_waitset();
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    set.wake();
  });
  EXPECT_EQ(wait(set, std::chrono::nanoseconds(PERFLAB_DURATION_INFINITE)).status, PERFLAB_OK);
  other.join();
}

TEST_F(Waiting, WakeDoesNotHideData) {
  Writer w = writer();
  Reader r = filled(w);
  WaitSet set = participant().create_waitset();
  set.attach(r, 3);
  EXPECT_EQ(wait(set).ready, Ready{3});
  set.wake();
  EXPECT_EQ(wait(set).ready, Ready{3});
}

TEST_F(Waiting, DataEndsAWait) {
  Writer w = writer();
  Reader r = reader();
  WaitSet set = participant().create_waitset();
  set.attach(r, 1);
  ASSERT_TRUE(matched(w, r));
  std::thread other([&] {
    std::this_thread::sleep_for(20ms);
    write(w, 1);
  });
  EXPECT_EQ(wait(set, std::chrono::nanoseconds(PERFLAB_DURATION_INFINITE)).ready, Ready{1});
  other.join();
}

TEST_F(Waiting, NoMessageIsMissedBetweenWaits) {
  constexpr std::uint64_t kCount = 2000;
  Writer w = writer();
  Reader r = reader();
  WaitSet set = participant().create_waitset();
  set.attach(r, 1);
  ASSERT_TRUE(matched(w, r));
  // No more under way than what is not reliable can hold.
  constexpr std::uint64_t kUnderWay = 200;
  std::atomic<std::uint64_t> taken{0};
  std::thread other([&] {
    for (std::uint64_t number = 0; number < kCount; ++number) {
      while (number - taken > kUnderWay && taken < kCount) std::this_thread::yield();
      write(w, number);
    }
  });
  std::vector<std::uint64_t> got;
  while (got.size() < kCount && wait(set).status == PERFLAB_OK) {
    for (; auto one = take(r); ++taken) got.push_back(one->number());
  }
  taken = kCount;
  other.join();
  EXPECT_EQ(got, range(0, kCount));
}

TEST_F(Waiting, ReaderBelongsToOneWaitSet) {
  Reader r = reader();
  WaitSet a = participant().create_waitset();
  WaitSet b = participant().create_waitset();
  a.attach(r, 1);
  EXPECT_THROW(a.attach(r, 2), Error);
  EXPECT_THROW(b.attach(r, 1), Error);
}

TEST_F(Waiting, DestroyedReaderAndWaitSetLetGo) {
  Writer w = writer();
  std::optional<WaitSet> set = participant().create_waitset();
  {
    Reader gone = filled(w);
    set->attach(gone, 1);
    EXPECT_EQ(wait(*set).ready, Ready{1});
  }
  EXPECT_EQ(wait(*set, 10ms).status, PERFLAB_TIMEOUT);
  Reader r = filled(w);
  set->attach(r, 2);
  EXPECT_EQ(wait(*set).ready, Ready{2});
  set.reset();
  WaitSet next = participant().create_waitset();
  next.attach(r, 3);
  EXPECT_EQ(wait(next).ready, Ready{3});
}

class Called : public Conformance {
 protected:
  void SetUp() override {
    if (!plugin_.capabilities().data_ready_callbacks) GTEST_SKIP() << "the plug-in has no data callbacks";
  }
};

TEST_F(Called, TakingInsideOnDataGetsEveryMessage) {
  constexpr std::uint64_t kCount = 1000;
  Recorder recorder;
  std::atomic<Reader*> inside{nullptr};
  std::mutex mutex;
  std::vector<std::uint64_t> got;
  recorder.on_each_data = [&] {
    Reader* const r = inside;
    if (r == nullptr) return;
    while (auto one = take(*r)) {
      const std::lock_guard lock(mutex);
      got.push_back(one->number());
    }
  };
  Writer w = writer();
  Reader r = reader(keep_all(), recorder.listener());
  inside = &r;
  ASSERT_TRUE(matched(w, r));
  const auto has_got = [&](std::size_t count) {
    return eventually([&] {
      const std::lock_guard lock(mutex);
      return got.size() >= count;
    });
  };
  for (std::uint64_t number = 0; number < kCount; ++number) {
    write(w, number);
    // No more under way than what is not reliable can hold.
    const bool waits = number % 200 == 199;
    ASSERT_TRUE(!waits || has_got(number - 100));
  }
  EXPECT_TRUE(has_got(kCount));
  EXPECT_EQ(got, range(0, kCount));
  EXPECT_GE(recorder.data_calls(), 1u);
  EXPECT_FALSE(recorder.ever_concurrent());
}

TEST_F(Called, OnDataOfOneReaderIsNeverConcurrent) {
  Recorder recorder;
  recorder.on_each_data = [] { std::this_thread::yield(); };
  Writer a = writer();
  Writer b = writer();
  Reader r = reader(keep_all(), recorder.listener());
  ASSERT_TRUE(matched(a, r, 1, 2));
  ASSERT_TRUE(matched(b, r, 1, 2));
  std::thread other([&] {
    for (std::uint64_t number = 0; number < 200; ++number) write(b, 1000 + number);
  });
  for (std::uint64_t number = 0; number < 200; ++number) write(a, number);
  other.join();
  EXPECT_EQ(take_until(r, 400).size(), 400u);
  EXPECT_FALSE(recorder.ever_concurrent());
}

TEST_F(Called, WritingInsideOnDataWorks) {
  Recorder recorder;
  std::atomic<Reader*> inside{nullptr};
  Writer back = writer(keep_all(), {}, "rt/back");
  recorder.on_each_data = [&] {
    Reader* const r = inside;
    while (r != nullptr) {
      const auto one = take(*r);
      if (!one) return;
      write(back, one->bytes);
    }
  };
  Writer there = writer(keep_all(), {}, "rt/there");
  Reader middle = reader(keep_all(), recorder.listener(), "rt/there");
  Reader end = reader(keep_all(), {}, "rt/back");
  inside = &middle;
  ASSERT_TRUE(matched(there, middle));
  ASSERT_TRUE(matched(back, end));
  for (std::uint64_t number = 0; number < 200; ++number) write(there, number);
  EXPECT_EQ(numbers(take_until(end, 200)), range(0, 200));
}

TEST_F(Called, WakeInsideOnDataEndsAWait) {
  WaitSet set = participant().create_waitset();
  Recorder recorder;
  recorder.on_each_data = [&] { set.wake(); };
  Writer w = writer();
  Reader r = reader(keep_all(), recorder.listener());
  ASSERT_TRUE(matched(w, r));
  write(w, 1);
  std::uint64_t ready[1];
  std::size_t count = 0;
  perflab_error error{};
  EXPECT_EQ(set.wait(std::chrono::nanoseconds(kPatience).count(), ready, count, error), PERFLAB_OK);
}

TEST_F(Called, NoCallbackComesAfterDestruction) {
  Writer w = writer();
  std::atomic<bool> stop{false};
  std::thread other([&] {
    for (std::uint64_t number = 0; !stop; ++number) {
      write(w, number);
      std::this_thread::sleep_for(50us);
    }
  });
  for (int i = 0; i < 20; ++i) {
    std::atomic<bool> destroyed{false};
    std::atomic<bool> late{false};
    Recorder recorder;
    recorder.on_each_data = [&] {
      if (destroyed) late = true;
    };
    {
      Reader r = reader(usual_qos(), recorder.listener());
      EXPECT_TRUE(eventually([&] { return recorder.data_calls() > 0; }));
    }
    destroyed = true;
    std::this_thread::sleep_for(2ms);
    EXPECT_FALSE(late);
  }
  stop = true;
  other.join();
}

}  // namespace
}  // namespace perflab::conformance
