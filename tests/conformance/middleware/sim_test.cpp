// The simulator does in real time what its options say, and reports what it did.
#include <algorithm>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>

#include "fixture.h"
#include "peer.h"

namespace perflab::conformance {
namespace {

using Options = std::vector<std::pair<std::string, std::string>>;

class Sim : public Conformance {
 protected:
  nlohmann::json injected() { return nlohmann::json::parse(participant().describe()).at("injected"); }
  nlohmann::json edge(const char* topic = kTopic) {
    const nlohmann::json all = injected();
    for (const auto& one : all.at("per_edge")) {
      if (one.at("topic") == topic) return one;
    }
    ADD_FAILURE() << "no edge on " << topic;
    return {};
  }
  // Sends `count` messages under these options and takes what arrives.
  std::vector<std::uint64_t> exchange(const Options& options, std::uint64_t count, std::uint64_t expected) {
    open_with(options);
    Writer w = writer();
    Reader r = reader();
    EXPECT_TRUE(matched(w, r));
    for (std::uint64_t number = 1; number <= count; ++number) write(w, number);
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

TEST_F(Sim, MalformedOptionsAreRefusedByName) {
  expect_bad_option("delay", "5");  // no unit
  expect_bad_option("delay", "-1ms");
  expect_bad_option("jitter", "fast");
  expect_bad_option("loss", "1.5");
  expect_bad_option("loss", "10%");
  expect_bad_option("loss_every", "0");
  expect_bad_option("reorder_every", "1");
  expect_bad_option("duplicate_every", "x");
  expect_bad_option("seed", "1.5");
  expect_bad_option("topic", "");
}

TEST_F(Sim, EffectiveOptionsAreDescribed) {
  open_with({{"delay", "1.5ms"}, {"loss", "0.25"}, {"reorder_every", "7"}});
  const auto options = nlohmann::json::parse(participant().describe()).at("options");
  EXPECT_EQ(options.at("delay_ns"), 1'500'000);
  EXPECT_EQ(options.at("loss"), 0.25);
  EXPECT_EQ(options.at("reorder_every"), 7);
  EXPECT_TRUE(options.at("loss_every").is_null());
}

TEST_F(Sim, LosesEveryTenthAndCountsThem) {
  const auto got = exchange({{"loss_every", "10"}}, 1000, 900);
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

TEST_F(Sim, ReordersEveryFifthAndFlushesTheLast) {
  const auto got = exchange({{"reorder_every", "5"}}, 100, 100);
  std::vector<std::uint64_t> expected = range(1, 101);
  for (std::size_t number = 5; number < 100; number += 5) std::swap(expected[number - 1], expected[number]);
  EXPECT_EQ(got, expected);
  EXPECT_EQ(report_.at("reordered"), 19) << "the hundredth has no successor";
  EXPECT_EQ(report_.at("delivered"), 100);
}

TEST_F(Sim, DoublesEveryFourth) {
  const auto got = exchange({{"duplicate_every", "4"}}, 100, 125);
  EXPECT_EQ(got.size(), 125u);
  std::map<std::uint64_t, int> times;
  for (const std::uint64_t number : got) ++times[number];
  for (std::uint64_t number = 1; number <= 100; ++number) EXPECT_EQ(times[number], number % 4 == 0 ? 2 : 1);
  EXPECT_EQ(report_.at("delivered"), 100);
  EXPECT_EQ(report_.at("duplicated"), 25);
}

TEST_F(Sim, SameSeedLosesTheSameMessagesInEveryRun) {
  const auto first = exchange({{"loss", "0.3"}, {"seed", "42"}}, 500, 300);
  close_participant();
  EXPECT_EQ(exchange({{"loss", "0.3"}, {"seed", "42"}}, 500, 300), first);
  close_participant();
  EXPECT_NE(exchange({{"loss", "0.3"}, {"seed", "43"}}, 500, 300), first);
}

TEST_F(Sim, DelayIsInjectedAndMeasuredByItself) {
  open_with({{"delay", "5ms"}, {"jitter", "2ms"}});
  Writer w = writer();
  Reader r = reader();
  ASSERT_TRUE(matched(w, r));
  for (std::uint64_t number = 0; number < 50; ++number) {
    const std::int64_t before = now_ns();
    write(w, number);
    const auto taken = take_until(r, 1);
    ASSERT_EQ(taken.size(), 1u);
    EXPECT_GE(taken[0].reception_ns - before, 5'000'000);
  }
  const auto delay = edge().at("delay_ns");
  EXPECT_EQ(delay.at("count"), 50);
  EXPECT_GE(delay.at("min").get<std::int64_t>(), 5'000'000);
  EXPECT_GE(delay.at("mean").get<double>(), delay.at("min").get<double>());
  EXPECT_GE(delay.at("max").get<double>(), delay.at("mean").get<double>());
  EXPECT_EQ(injected().at("delay_ns"), delay) << "the only edge";
}

TEST_F(Sim, DelayHoldsAcrossProcesses) {
  open_with({{"delay", "3ms"}, {"loss_every", "5"}});
  Reader r = reader();
  Peer peer(subject().plugin, domain_.id());
  ASSERT_EQ(peer.ask(std::string("writer x ") + kTopic + " " + kType + " keep_all reliable volatile 1"),
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

TEST_F(Sim, DisturbsOnlyTheNamedTopic) {
  open_with({{"loss", "1"}, {"topic", "/lossy"}});
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

TEST_F(Sim, MatchesOnlyAfterTheMatchDelay) {
  open_with({{"match_delay", "300ms"}});
  const std::int64_t before = now_ns();
  Writer w = writer();
  Reader r = reader();
  std::uint64_t number = 0;
  while (w.matched_readers() == 0 && now_ns() - before < 20'000'000'000) {
    write(w, number++);
    std::this_thread::sleep_for(1ms);
  }
  EXPECT_GE(now_ns() - before, 300'000'000);
  write(w, 1'000'000);
  // What was written before the match does not come, what was written after it does.
  const auto got = numbers(take_until(r, 1));
  ASSERT_FALSE(got.empty());
  EXPECT_GE(got.front(), number - 1);
}

TEST_F(Sim, ReliableWriterIsHeldBackByAReaderThatTakesNothing) {
  open_with({{"max_blocking_time", "50ms"}});
  Writer w = writer();
  Reader r = reader();
  ASSERT_TRUE(matched(w, r));
  const auto bytes = make_message(1, 12);
  const perflab_bytes part{bytes.data(), bytes.size()};
  perflab_error error{};
  std::uint64_t sent = 0;
  perflab_status status = PERFLAB_OK;
  while ((status = w.write({&part, 1}, error)) == PERFLAB_OK && sent < 100'000) ++sent;
  EXPECT_EQ(status, PERFLAB_FAILED);
  EXPECT_NE(std::string(error.text).find("max_blocking_time"), std::string::npos) << error.text;
  EXPECT_EQ(sent, 16'384u);
  EXPECT_EQ(take_until(r, sent).size(), sent) << "what was accepted is not lost";
  EXPECT_EQ(write(w, bytes), PERFLAB_OK) << "there is room again";
}

TEST_F(Sim, SlowReaderInAnotherProcessHoldsTheWriterBackWithoutLoss) {
  participant();
  Peer peer(subject().plugin, domain_.id());
  Writer w = writer();
  ASSERT_EQ(peer.ask(std::string("reader x ") + kTopic + " " + kType + " keep_all reliable volatile 1"),
            "ok");
  ASSERT_EQ(peer.ask("wait_matched x 1"), "ok");
  constexpr std::uint64_t kCount = 20'000;  // more than one window
  peer.tell("take x " + std::to_string(kCount) + " 2000");
  for (std::uint64_t number = 0; number < kCount; ++number) ASSERT_EQ(write(w, number, 2000), PERFLAB_OK);
  EXPECT_EQ(peer.answer(), "took 20000 intact 20000 ordered 1 first 0 last 19999");
}

TEST_F(Sim, NothingIsLeftOfAKilledProcess) {
  const auto sockets = [] {
    std::ifstream list("/proc/net/unix");
    std::size_t count = 0;
    for (std::string line; std::getline(list, line);)
      count += line.find("@perflab-sim.") != std::string::npos;
    return count;
  };
  participant();
  const std::string name = "." + std::to_string(domain_.id()) + ".1";
  const auto named = [&] {
    std::ifstream list("/proc/net/unix");
    for (std::string line; std::getline(list, line);) {
      if (line.find("@perflab-sim.") != std::string::npos && line.ends_with(name)) return true;
    }
    return false;
  };
  Peer peer(subject().plugin, domain_.id());
  EXPECT_GT(sockets(), 0u);
  EXPECT_TRUE(named());
  peer.kill();
  EXPECT_TRUE(eventually([&] { return !named(); }));
}

}  // namespace
}  // namespace perflab::conformance
