#include "traceview/perfetto.h"

#include <gtest/gtest.h>

#include <limits>
#include <map>
#include <set>
#include <stdexcept>

#include "../../rows.h"
#include "support.h"

namespace perflab::traceview {
namespace {

// A message by the contents of its fields: numbers, or bytes.
struct Message {
  std::multimap<std::uint32_t, std::uint64_t> numbers;
  std::multimap<std::uint32_t, std::string_view> bytes;

  explicit Message(std::string_view raw) {
    std::size_t at = 0;
    const auto varint = [&] {
      std::uint64_t value = 0;
      for (int shift = 0;; shift += 7) {
        const auto byte = static_cast<unsigned char>(raw.at(at++));
        value |= std::uint64_t{byte & 0x7fu} << shift;
        if (byte < 0x80) return value;
      }
    };
    while (at < raw.size()) {
      const std::uint64_t tag = varint();
      const auto field = static_cast<std::uint32_t>(tag >> 3);
      switch (tag & 7) {
        case 0:
          numbers.emplace(field, varint());
          break;
        case 1:
          numbers.emplace(field, 0);
          at += 8;
          break;
        case 2: {
          const std::uint64_t size = varint();
          if (at + size > raw.size()) throw std::runtime_error("a message is longer than what holds it");
          bytes.emplace(field, raw.substr(at, size));
          at += size;
          break;
        }
        default:
          throw std::runtime_error("an unknown wire type");
      }
    }
    if (at != raw.size()) throw std::runtime_error("a field is cut");
  }
  [[nodiscard]] std::uint64_t number(std::uint32_t field) const { return numbers.find(field)->second; }
  [[nodiscard]] std::string text(std::uint32_t field) const { return std::string(bytes.find(field)->second); }
};

struct Written {
  std::string raw;
  ExportCounts counts;

  explicit Written(const MadeTables& made) {
    counts = write_perfetto(made.tables(), made.options, [this](std::string_view part) { raw += part; });
  }
  [[nodiscard]] std::uint64_t count(std::string_view name) const {
    for (const auto& [key, n] : counts) {
      if (key == name) return n;
    }
    throw std::out_of_range("no such count");
  }
  template <typename F>
  void packets(F&& f) const {
    const Message trace(raw);
    for (const auto& [field, packet] : trace.bytes) {
      if (field != 1) throw std::runtime_error("not a packet");
      f(Message(packet));
    }
  }
  // Time and type (begin 1, end 2, instant 3) of all events of tracks, in file order.
  [[nodiscard]] std::vector<std::pair<std::uint64_t, std::uint64_t>> events() const {
    std::vector<std::pair<std::uint64_t, std::uint64_t>> out;
    packets([&out](const Message& packet) {
      const auto event = packet.bytes.find(11);
      if (event != packet.bytes.end()) out.emplace_back(packet.number(8), Message(event->second).number(9));
    });
    return out;
  }
};

using Events = std::vector<std::pair<std::uint64_t, std::uint64_t>>;

TEST(Perfetto, SlicesOfATrackNestAndEndInnermostFirst) {
  MadeTables made;
  const auto main = made.thread(made.process(7, "demo"), 7, "demo");
  const auto callback = made.callback("callback");
  made.instance(callback, main, 10, 100);
  made.instance(callback, main, 20, 100);
  made.instance(callback, main, 100, 100);
  made.instance(callback, main, 100, 120);
  EXPECT_EQ(Written(made).events(),
            (Events{{10, 1}, {20, 1}, {100, 2}, {100, 2}, {100, 1}, {100, 1}, {100, 2}, {120, 2}}));
}

TEST(Perfetto, WhatEndsAfterWhatIsAroundItIsAnInstantAndCounted) {
  MadeTables made;
  const auto main = made.thread(made.process(7, "demo"), 7, "demo");
  const auto callback = made.callback("callback");
  made.instance(callback, main, 10, 100);
  made.instance(callback, main, 50, 150);
  const Written written(made);
  EXPECT_EQ(written.events(), (Events{{10, 1}, {50, 3}, {100, 2}}));
  EXPECT_EQ(written.count("crossing"), 1u);
}

TEST(Perfetto, WhatHasNoEndTakesInNothing) {
  MadeTables made;
  const auto main = made.thread(made.process(7, "demo"), 7, "demo");
  const auto callback = made.callback("callback");
  made.instance(callback, main, 10, std::nullopt);
  made.instance(callback, main, 20, 30);
  made.instance(callback, main, 40, std::nullopt);
  EXPECT_EQ(Written(made).events(), (Events{{10, 3}, {20, 1}, {30, 2}, {40, 1}}));
  made.instance(callback, main, 5, 50);  // encloses the last: its end must not be taken for that one's
  EXPECT_EQ(Written(made).events(), (Events{{5, 1}, {10, 3}, {20, 1}, {30, 2}, {40, 3}, {50, 2}}));
}

TEST(Perfetto, EveryNumberIsThatOfOneProcessAndOneThread) {
  MadeTables made;
  const auto one = made.process(7, "one"), two = made.process(7, "two", 1);
  made.thread(one, 7, "main");
  made.thread(two, 7, "main", 1);
  made.thread(two, 8, "worker", 1);
  made.thread(one, 8, "worker");
  made.thread(one, 8, "worker that came later");
  std::set<std::uint64_t> tids, pids;
  std::vector<std::pair<std::uint64_t, std::uint64_t>> threads;
  Written(made).packets([&](const Message& packet) {
    const auto found = packet.bytes.find(60);
    if (found == packet.bytes.end()) return;
    const Message track(found->second);
    if (track.bytes.contains(3)) pids.insert(Message(track.bytes.find(3)->second).number(1));
    if (!track.bytes.contains(4)) return;
    const Message thread(track.bytes.find(4)->second);
    threads.emplace_back(thread.number(1), thread.number(2));
    tids.insert(thread.number(2));
  });
  EXPECT_EQ(pids, (std::set<std::uint64_t>{7, 10'000'007}));
  EXPECT_EQ(threads,
            (Events{{7, 7}, {10'000'007, 10'000'007}, {10'000'007, 10'000'008}, {7, 8}, {7, 20'000'008}}));
  EXPECT_EQ(tids.size(), threads.size());
}

// The switches of a CPU, with the state in which each leaves its thread.
std::vector<std::array<std::uint64_t, 3>> switches(const Written& written) {
  std::vector<std::array<std::uint64_t, 3>> out;
  const auto packed = [](std::string_view raw) {
    std::vector<std::uint64_t> values{0};
    int shift = 0;
    for (const char c : raw) {
      values.back() |= std::uint64_t{static_cast<unsigned char>(c) & 0x7fu} << shift;
      shift += 7;
      if ((static_cast<unsigned char>(c) & 0x80) == 0) values.push_back(0), shift = 0;
    }
    values.pop_back();
    return values;
  };
  written.packets([&](const Message& packet) {
    const auto bundle = packet.bytes.find(1);
    if (bundle == packet.bytes.end() || !Message(bundle->second).bytes.contains(4)) return;
    const Message compact(Message(bundle->second).bytes.find(4)->second);
    const auto times = packed(compact.text(1)), states = packed(compact.text(2)),
               pids = packed(compact.text(3));
    std::uint64_t time = 0;
    for (std::size_t i = 0; i < times.size(); ++i) out.push_back({time += times[i], states[i], pids[i]});
  });
  return out;
}

TEST(Perfetto, AStateIsSaidOnlyWhereItLastsUntilTheThreadRunsAgain) {
  MadeTables made;
  const auto main = made.thread(made.process(7, "demo"), 7, "demo");
  made.state(main, ThreadState::running, 100, 200, 0, EndState::sleeping);
  made.state(main, ThreadState::blocked, 200, 300, std::nullopt);
  made.state(main, ThreadState::running, 300, 400, 0, EndState::sleeping);
  made.state(main, ThreadState::blocked, 400, 450, std::nullopt);  // unknown afterwards
  made.state(main, ThreadState::running, 500, 600, 0, EndState::preempted);
  made.state(main, ThreadState::preempted, 600, 700, 0);
  using Switch = std::array<std::uint64_t, 3>;
  EXPECT_EQ(switches(Written(made)), (std::vector<Switch>{{100, 0, 0},
                                                          {100, 0, 7},
                                                          {200, 1, 0},
                                                          {300, 0, 7},
                                                          {400, 0x8000, 0},
                                                          {500, 0, 7},
                                                          {600, 0x100, 0}}));
}

TEST(Perfetto, ManySwitchesAreSeveralBundlesOfWhichEachBeginsAnew) {
  MadeTables made;
  const auto main = made.thread(made.process(7, "demo"), 7, "demo");
  constexpr std::int64_t kRuns = 10'000;
  for (std::int64_t i = 1; i <= kRuns; ++i) {
    made.state(main, ThreadState::running, 10 * i, 10 * i + 5, 0, EndState::sleeping);
    made.state(main, ThreadState::blocked, 10 * i + 5, 10 * i + 10, std::nullopt);
  }
  const auto found = switches(Written(made));
  ASSERT_EQ(found.size(), 2 * kRuns + 1);
  for (std::size_t i = 1; i < found.size(); ++i) ASSERT_EQ(found[i][0], 10 + 5 * (i - 1));
}

TEST(Perfetto, ASymbolThatIsNoUtf8IsRepaired) {
  MadeTables made;
  const auto main = made.thread(made.process(7, "demo"), 7, "demo");
  const auto callback = made.callback("callback");
  made.callbacks.symbol = {};
  made.callbacks.symbol.push(std::string_view("f\xff("));
  made.instance(callback, main, 10, 20);
  const std::string raw = Written(made).raw;
  EXPECT_NE(raw.find("f\xef\xbf\xbd("), std::string::npos);
  EXPECT_EQ(raw.find("f\xff("), std::string::npos);
}

// Times of broken packets may be anything: what cannot be represented is omitted.
TEST(Perfetto, TimesAtTheEndsOfTheRangeAreWritten) {
  constexpr auto kLeast = std::numeric_limits<std::int64_t>::min() + 1, kMost = -kLeast;
  MadeTables made;
  const auto main = made.thread(made.process(7, "demo"), 7, "demo");
  made.instance(made.callback("callback"), main, kMost, kMost);
  made.callback_instances.due_ns = {};
  made.callback_instances.due_ns.push(kLeast);
  made.state(main, ThreadState::running, kLeast, -5, 0, EndState::sleeping);
  made.state(main, ThreadState::running, kMost - 5, kMost, 0, EndState::sleeping);
  made.options.begin_ns = kMost;
  made.options.epoch_offset_ns = kMost;
  const Written written(made);
  EXPECT_EQ(written.count("callbacks"), 1u);
  EXPECT_EQ(written.count("switches"), 5u);
  EXPECT_NE(written.raw.find("due_ns"), std::string::npos);
  EXPECT_EQ(written.raw.find("late_ns"), std::string::npos);
}

TEST(ExportOptions, AreReadAndAllOfThemMayBeMissing) {
  EXPECT_TRUE(parse_export_options("{}").callbacks.empty());
  const ExportOptions options = parse_export_options(
      R"({"begin_ns": 5, "end_ns": null, "callbacks": ["a"], "gaps": [[1, 2]], "not_taken": [[3, 4]], "wall": true, "marks": [[6, "m"]],
          "losses": [{"begin_ns": null, "end_ns": 9, "track": "t", "text": "x"}]})");
  EXPECT_EQ(options.begin_ns, 5);
  EXPECT_EQ(options.end_ns, std::nullopt);
  EXPECT_EQ(options.losses.at(0).span.begin_ns, std::nullopt);
  EXPECT_EQ(options.losses.at(0).span.end_ns, 9);
  EXPECT_EQ(options.marks.at(0).text, "m");
  EXPECT_TRUE(options.wall);
}

class BadExportOptions : public testing::TestWithParam<const char*> {};

TEST_P(BadExportOptions, AreRefused) {
  EXPECT_THROW((void)parse_export_options(GetParam()), std::invalid_argument);
}

INSTANTIATE_TEST_SUITE_P(, BadExportOptions,
                         testing::Values("", "[", R"({"callbacks": 1})", R"({"gaps": [1]})",
                                         R"({"losses": [{}]})", R"({"wall": "no"})"),
                         rows::by_itself);

}  // namespace
}  // namespace perflab::traceview
