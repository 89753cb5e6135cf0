// Over any plug-in: the disturbance does in real time what its options say, and reports what it did.
#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "fixture.h"
#include "peer.h"

namespace perflab::conformance {
namespace {

using Options = std::vector<std::pair<std::string, std::string>>;

class Disturbed : public Conformance {
 protected:
  nlohmann::json injected() { return nlohmann::json::parse(participant().describe()).at("injected"); }
  std::uint64_t offered() {
    std::uint64_t sum = 0;
    const nlohmann::json all = injected();
    for (const auto& one : all.at("per_edge")) sum += one.at("offered").get<std::uint64_t>();
    return sum;
  }
  // It is there once its first message has come.
  nlohmann::json edge(const char* topic = kTopic) {
    nlohmann::json found;
    const bool there = eventually([&] {
      const nlohmann::json all = injected();
      for (const auto& one : all.at("per_edge")) {
        if (one.at("topic") == topic) found = one;
      }
      return !found.is_null();
    });
    EXPECT_TRUE(there) << "no edge on " << topic;
    return found;
  }
  // Sends `count` messages under these options and takes what arrives.
  std::vector<std::uint64_t> exchange(const Options& options, std::uint64_t count, std::uint64_t expected) {
    open_with(options);
    Writer w = writer();
    Reader r = reader();
    EXPECT_TRUE(matched(w, r));
    for (std::uint64_t number = 1; number <= count; ++number) {
      write(w, number);
      // No more under way than what is not reliable can hold.
      const bool waits = number % 200 == 0;
      EXPECT_TRUE(!waits || eventually([&] { return offered() >= number - 100; }));
    }
    auto got = take_until(r, expected);
    for (Taken& more : take_until_quiet(r, 120ms)) got.push_back(std::move(more));
    // The report is complete when the last delivery has been counted.
    report_ = edge();
    return numbers(got);
  }
  void expect_bad_option(const char* key, const char* value) {
    try {
      open_with({{key, value}});
      FAIL() << key << "=" << value << " was accepted";
    } catch (const Error& refusal) {
      EXPECT_EQ(refusal.kind(), Error::Kind::kBadInput);
      EXPECT_NE(std::string(refusal.what()).find(key), std::string::npos) << refusal.what();
    }
  }

  nlohmann::json report_;
};

TEST_F(Disturbed, MalformedOptionsAreRefusedByName) {
  expect_bad_option("disturb.delay", "5");  // no unit
  expect_bad_option("disturb.delay", "-1ms");
  expect_bad_option("disturb.jitter", "fast");
  expect_bad_option("disturb.loss", "1.5");
  expect_bad_option("disturb.loss", "10%");
  expect_bad_option("disturb.loss_every", "0");
  expect_bad_option("disturb.reorder_every", "1");
  expect_bad_option("disturb.duplicate_every", "x");
  expect_bad_option("disturb.seed", "1.5");
  expect_bad_option("disturb.topic", "");
  expect_bad_option("disturb.stall", "1ms");  // in which period?
  expect_bad_option("disturb.stall_every", "1s");  // how long?
  expect_bad_option("disturb.delay", "3601s");
  expect_bad_option("disturb.no_such_option", "1");
}

TEST_F(Disturbed, EffectiveOptionsAreDescribed) {
  open_with({{"disturb.delay", "1.5ms"}, {"disturb.loss", "0.25"}, {"disturb.reorder_every", "7"}});
  const auto options = nlohmann::json::parse(participant().describe()).at("disturb");
  EXPECT_EQ(options.at("delay_ns"), 1'500'000);
  EXPECT_EQ(options.at("loss"), 0.25);
  EXPECT_EQ(options.at("reorder_every"), 7);
  EXPECT_TRUE(options.at("loss_every").is_null());
}

TEST_F(Disturbed, OptionsOfThePlugInBelowStayItsOwn) {
  try {
    open_with({{"disturb.delay", "1ms"}, {"no_such_option", "1"}});
    FAIL() << "accepted";
  } catch (const Error& refusal) {
    EXPECT_EQ(refusal.kind(), Error::Kind::kBadInput);
    EXPECT_NE(std::string(refusal.what()).find(plugin_.name()), std::string::npos) << refusal.what();
    EXPECT_NE(std::string(refusal.what()).find("no_such_option"), std::string::npos) << refusal.what();
  }
}

TEST_F(Disturbed, WhatItCannotHoldIsRefusedByName) {
  ParticipantSettings given = settings();
  given.options.emplace_back("disturb.delay", "1ms");
  given.ignore_local_endpoints = true;
  try {
    open_with(given);
    FAIL() << "accepted";
  } catch (const Error& refusal) {
    EXPECT_EQ(refusal.kind(), Error::Kind::kUnsupported);
    EXPECT_NE(std::string(refusal.what()).find("--ipc off"), std::string::npos) << refusal.what();
  }
  open_with({{"disturb.delay", "1ms"}});
  for (const bool is_writer : {true, false}) {
    const middleware::EndpointSettings loaned{
        .topic = kTopic, .type = kType, .fixed_size = 100, .loans = true, .qos = keep_all()};
    try {
      if (is_writer) {
        participant().create_writer(loaned);
      } else {
        participant().create_reader(loaned);
      }
      FAIL() << "accepted";
    } catch (const Error& refusal) {
      EXPECT_EQ(refusal.kind(), Error::Kind::kUnsupported);
      EXPECT_NE(std::string(refusal.what()).find("loaned"), std::string::npos) << refusal.what();
    }
  }
}

TEST_F(Disturbed, LosesEveryTenthAndCountsThem) {
  const auto got = exchange({{"disturb.loss_every", "10"}}, 1000, 900);
  std::vector<std::uint64_t> expected;
  for (std::uint64_t number = 1; number <= 1000; ++number) {
    if (number % 10 != 0) expected.push_back(number);
  }
  EXPECT_EQ(got, expected);
  EXPECT_EQ(report_.at("offered"), 1000);
  EXPECT_EQ(report_.at("delivered"), 900);
  EXPECT_EQ(report_.at("lost"), 100);
  EXPECT_EQ(report_.at("reordered"), 0);
  EXPECT_EQ(report_.at("duplicated"), 0);
}

TEST_F(Disturbed, ReordersEveryFifthAndFlushesTheLast) {
  const auto got = exchange({{"disturb.reorder_every", "5"}}, 100, 100);
  std::vector<std::uint64_t> expected = range(1, 101);
  for (std::size_t number = 5; number < 100; number += 5) std::swap(expected[number - 1], expected[number]);
  EXPECT_EQ(got, expected);
  EXPECT_EQ(report_.at("reordered"), 19) << "the hundredth has no successor";
  EXPECT_EQ(report_.at("delivered"), 100);
}

TEST_F(Disturbed, DoublesEveryFourth) {
  const auto got = exchange({{"disturb.duplicate_every", "4"}}, 100, 125);
  EXPECT_EQ(got.size(), 125u);
  std::map<std::uint64_t, int> times;
  for (const std::uint64_t number : got) ++times[number];
  for (std::uint64_t number = 1; number <= 100; ++number) EXPECT_EQ(times[number], number % 4 == 0 ? 2 : 1);
  EXPECT_EQ(report_.at("delivered"), 100);
  EXPECT_EQ(report_.at("duplicated"), 25);
}

TEST_F(Disturbed, SameSeedLosesTheSameMessagesInEveryRun) {
  const auto first = exchange({{"disturb.loss", "0.3"}, {"disturb.seed", "42"}}, 500, 300);
  close_participant();
  EXPECT_EQ(exchange({{"disturb.loss", "0.3"}, {"disturb.seed", "42"}}, 500, 300), first);
  close_participant();
  EXPECT_NE(exchange({{"disturb.loss", "0.3"}, {"disturb.seed", "43"}}, 500, 300), first);
}

TEST_F(Disturbed, DelayIsInjectedAndMeasuredByItself) {
  open_with({{"disturb.delay", "5ms"}, {"disturb.jitter", "2ms"}});
  Writer w = writer();
  Reader r = reader();
  ASSERT_TRUE(matched(w, r));
  for (std::uint64_t number = 0; number < 50; ++number) {
    const std::int64_t before = now_ns();
    write(w, number);
    const auto taken = take_until(r, 1);
    ASSERT_EQ(taken.size(), 1u);
    const bool known = plugin_.capabilities().reception_timestamps;
    EXPECT_GE((known ? taken[0].reception_ns : taken[0].taken_ns) - before, 5'000'000);
  }
  const auto delay = edge().at("delay_ns");
  EXPECT_EQ(delay.at("count"), 50);
  EXPECT_GE(delay.at("min").get<std::int64_t>(), 5'000'000);
  EXPECT_GE(delay.at("mean").get<double>(), delay.at("min").get<double>());
  EXPECT_GE(delay.at("max").get<double>(), delay.at("mean").get<double>());
  EXPECT_EQ(injected().at("delay_ns"), delay) << "the only edge";
}

TEST_F(Disturbed, NothingArrivesDuringAStallAndAllOfItAtItsEnd) {
  open_with({{"disturb.stall_every", "200ms"}, {"disturb.stall", "150ms"}});
  Writer w = writer();
  Reader r = reader();
  ASSERT_TRUE(matched(w, r));
  // Until some have been in one: a quick machine sends many between two of them.
  std::uint64_t number = 0;
  for (; number < 1'000'000 && edge().at("stalled") < 3; ++number) {
    // Its clock is that of the machine, so that the stalls of all processes are the same.
    const std::int64_t sent_ns = now_ns();
    write(w, number);
    const auto taken = take_until(r, 1);
    ASSERT_EQ(numbers(taken), range(number, number + 1));
    const std::int64_t into_ns = sent_ns % 200'000'000;
    if (into_ns < 150'000'000) {
      EXPECT_GE(taken[0].taken_ns - sent_ns, 150'000'000 - into_ns);
    }
  }
  EXPECT_EQ(edge().at("delivered"), number);
  EXPECT_EQ(edge().at("stalled"), 3);
}

TEST_F(Disturbed, DeadlinesCountFromWhatIsDelivered) {
  if (may_refuse("deadline")) GTEST_SKIP() << "the plug-in watches no deadline";
  open_with({{"disturb.loss", "1"}, {"disturb.topic", kTopic}});
  perflab_qos qos = keep_all();
  qos.deadline_ns = 50'000'000;
  Recorder of_lost, of_other;
  Writer w = writer(qos);
  Reader lost = reader(qos, of_lost.listener());
  Writer other_writer = writer(qos, {}, "rt/other");
  Reader other = reader(qos, of_other.listener(), "rt/other");
  ASSERT_TRUE(matched(w, lost));
  ASSERT_TRUE(matched(other_writer, other));
  write(other_writer, 1);
  write(w, 1);
  EXPECT_TRUE(eventually([&] { return of_other.total(PERFLAB_DEADLINE_MISSED) >= 2; }));
  EXPECT_FALSE(of_lost.has(PERFLAB_DEADLINE_MISSED)) << "the first message that is delivered begins it";
  EXPECT_EQ(numbers(take_until(other, 1)), range(1, 2));
}

TEST_F(Disturbed, LifespanGoesOnWhileAMessageIsHeldBack) {
  perflab_qos qos = keep_all();
  qos.lifespan_ns = 100'000'000;
  open_with({{"disturb.delay", "300ms"}, {"disturb.topic", kTopic}});
  PERFLAB_CREATE_OR_REFUSE(w, writer(qos), "lifespan");
  Reader r = reader();
  ASSERT_TRUE(matched(w, r));
  write(w, 1);
  EXPECT_TRUE(eventually([&] { return edge().at("expired") == 1; }));
  EXPECT_FALSE(take(r));
  EXPECT_EQ(edge().at("delivered"), 0);
}

TEST_F(Disturbed, KeepAllLosesNothingOfMoreThanItHolds) {
  open_with({{"disturb.delay", "500ms"}});  // by then all are there
  PERFLAB_CREATE_OR_REFUSE(w, writer(reliable(keep_all())), "reliability");
  PERFLAB_CREATE_OR_REFUSE(r, reader(reliable(keep_all())), "reliability");
  ASSERT_TRUE(matched(w, r));
  constexpr std::uint64_t kCount = 20'000;  // 16384 are held at most
  std::vector<std::uint64_t> got;
  std::thread takes([&] { got = numbers(take_until(r, kCount)); });
  for (std::uint64_t number = 0; number < kCount; ++number) write(w, number);
  takes.join();
  EXPECT_EQ(got, range(0, kCount));
}

TEST_F(Disturbed, CallbacksOfOneReaderNeverComeConcurrently) {
  open_with({{"disturb.jitter", "200us"}});
  Recorder recorder;
  std::atomic<std::uint64_t> taken{0};
  std::optional<Reader> r;
  recorder.on_each_data = [&] {
    while (r && take(*r)) ++taken;
  };
  r.emplace(reader(keep_all(), recorder.listener()));
  std::vector<Writer> writers;
  for (int i = 0; i < 3; ++i) writers.push_back(writer());
  for (Writer& w : writers) ASSERT_TRUE(eventually([&] { return w.matched_readers() == 1; }));
  ASSERT_TRUE(eventually([&] { return r->matched_writers() == 3; }));
  std::vector<std::thread> threads;
  for (Writer& w : writers) {
    threads.emplace_back([&w] {
      for (std::uint64_t number = 0; number < 100; ++number) write(w, number);
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_TRUE(eventually([&] { return taken == 300; }));
  r->close();  // before what its callbacks look at
  EXPECT_FALSE(recorder.ever_concurrent());
}

TEST_F(Disturbed, AReaderMayGoWhileMessagesAreOnTheirWayAndItsDeadlineIsWatched) {
  open_with({{"disturb.delay", "100us"}, {"disturb.jitter", "300us"}, {"disturb.reorder_every", "3"}});
  perflab_qos qos = keep_all();
  if (!may_refuse("deadline")) qos.deadline_ns = 1'000'000;
  Writer w = writer(qos);
  for (int i = 0; i < 30; ++i) {
    Recorder recorder;
    std::optional<Reader> r;
    r.emplace(reader(qos, recorder.listener()));
    ASSERT_TRUE(eventually([&] { return w.matched_readers() == 1; }));
    for (std::uint64_t number = 0; number < 50; ++number) write(w, number);
    ASSERT_TRUE(eventually([&] { return recorder.data_calls() > 0; }));
    r.reset();
    const std::uint64_t calls = recorder.data_calls();
    std::this_thread::sleep_for(1ms);
    ASSERT_EQ(recorder.data_calls(), calls) << "called after its end";
    ASSERT_TRUE(eventually([&] { return w.matched_readers() == 0; }));
  }
}

TEST_F(Disturbed, DelayHoldsAcrossProcesses) {
  if (!plugin_.capabilities().across_processes) GTEST_SKIP() << "the plug-in stays within one process";
  open_with({{"disturb.delay", "3ms"}, {"disturb.loss_every", "5"}});
  Reader r = reader();
  Peer peer(subject().plugin, domain_.id());
  ASSERT_EQ(peer.ask(std::string("writer x ") + kTopic + " " + kType + " keep_all " + usual_reliability() + " volatile 1"),
            "ok");
  ASSERT_EQ(peer.ask("wait_matched x 1"), "ok");
  ASSERT_TRUE(eventually([&] { return r.matched_writers() == 1; }));
  ASSERT_EQ(peer.ask("write x 1 100 100"), "wrote 100");
  EXPECT_EQ(take_until(r, 80).size(), 80u);
  EXPECT_TRUE(take_until_quiet(r, 100ms).empty());
  EXPECT_EQ(edge().at("lost"), 20);
  EXPECT_EQ(edge().at("writer"), peer.ask("identity x"));
  EXPECT_EQ(edge().at("reader"), to_hex(r.identity()));
  EXPECT_GE(edge().at("delay_ns").at("min").get<std::int64_t>(), 3'000'000);
}

TEST_F(Disturbed, DisturbsOnlyTheNamedTopic) {
  open_with({{"disturb.loss", "1"}, {"disturb.topic", "/lossy"}});
  Writer lossy_writer = writer(keep_all(), {}, "rt/lossy");
  Reader lossy = reader(keep_all(), {}, "rt/lossy");
  Writer clean_writer = writer(keep_all(), {}, "rt/clean");
  Reader clean = reader(keep_all(), {}, "rt/clean");
  ASSERT_TRUE(matched(lossy_writer, lossy));
  ASSERT_TRUE(matched(clean_writer, clean));
  for (std::uint64_t number = 0; number < 20; ++number) {
    write(lossy_writer, number);
    write(clean_writer, number);
  }
  EXPECT_EQ(numbers(take_until(clean, 20)), range(0, 20));
  EXPECT_TRUE(take_until_quiet(lossy, 50ms).empty());
  EXPECT_EQ(edge("rt/lossy").at("lost"), 20);
  EXPECT_EQ(edge("rt/clean").at("lost"), 0);
}

}  // namespace
}  // namespace perflab::conformance
