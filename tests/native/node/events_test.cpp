// Events outside the measured path are kept or counted, from any thread and at any time.
#include "program/events.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <thread>

#include "no_memory.h"

namespace perflab::node {
namespace {

using nlohmann::json;

class Events : public testing::Test {
 protected:
  static perflab_event found() {
    perflab_event event{};
    event.kind = PERFLAB_WRITER_FOUND;
    event.topic = "rt/a_topic_with_a_name_that_fits_into_no_small_string";
    event.count = 1;
    return event;
  }
  // How many events are in the file, and how many it reports as omitted.
  std::pair<std::uint64_t, std::uint64_t> kept_and_left_out(EventLog& log) {
    log.flush(file_, messages_);
    log.finish(file_, messages_, 1);
    std::uint64_t kept = 0;
    std::uint64_t left_out = 0;
    std::ifstream lines(path_);
    for (std::string line; std::getline(lines, line);) {
      const json record = json::parse(line);
      if (record["code"] == "events_dropped") {
        left_out += record["count"].get<std::uint64_t>();
      } else {
        ++kept;
      }
    }
    return {kept, left_out};
  }

  const std::filesystem::path path_ =
      std::filesystem::temp_directory_path() / ("perflab-events-" + std::to_string(getpid()) + ".jsonl");
  RecordFile file_{path_.string()};
  measure::MessageEventQueue messages_;
  void TearDown() override { std::filesystem::remove(path_); }
};

TEST_F(Events, ThoseLeftOutAreCountedExactlyWhoeverReportsThem) {
  constexpr std::size_t kMaximum = 1000;
  constexpr std::size_t kEach = 2000;
  EventLog log(kMaximum);
  std::atomic<int> running = 3;
  std::vector<std::thread> reporters;
  for (int t = 0; t < 2; ++t) {
    reporters.emplace_back([&] {
      for (std::size_t i = 0; i < kEach; ++i) log.on_event(found());
      --running;
    });
  }
  reporters.emplace_back([&] {
    for (std::size_t i = 0; i < kEach; ++i) messages_.push({.sequence = i});
    --running;
  });
  while (running > 0) log.flush(file_, messages_);
  for (std::thread& reporter : reporters) reporter.join();
  const auto [kept, left_out] = kept_and_left_out(log);
  EXPECT_EQ(kept, kMaximum);
  EXPECT_EQ(left_out, 3 * kEach - kMaximum);
}

TEST_F(Events, OneForWhichThereIsNoMemoryIsCounted) {
  EventLog log;
  log.on_event(found());
  {
    const test::NoMemory none;
    log.on_event(found());
    log.on_write_failed(1, "a reliable reader did not acknowledge within max_blocking_time");
    log.on_failure(2, "the wait-set is gone, and with it everything that waited for it");
  }
  log.on_event(found());
  EXPECT_EQ(log.failure(), "the wait-set is gone, and with it everything that waited for it");
  const auto [kept, left_out] = kept_and_left_out(log);
  EXPECT_EQ(kept, 2u);
  EXPECT_EQ(left_out, 3u);
}

}  // namespace
}  // namespace perflab::node
