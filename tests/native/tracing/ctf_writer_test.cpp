// Output is read back by perflab's own reader; babeltrace2 reads the recorder's traces in tests/python/trace.
#include "tracing/ctf_writer.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>

#include "ctf/coverage.h"
#include "ctf/merge.h"
#include "ctf/stream.h"
#include "ctf/trace.h"

namespace perflab::tracing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kEvent =
    "event {\n\tname = \"tick\";\n\tid = 3;\n\tstream_id = 0;\n\tfields := struct {\n\t\tuint64_t "
    "_n;\n\t};\n};\n";

class Writer : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (fs::temp_directory_path() / "perflab-ctf-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder = pattern;
    settings.folder = folder + "/t";
    settings.uuid = random_uuid();
    settings.metadata = ctf_preamble(settings.uuid, "\tdomain = \"kernel\";\n", "", 5, "") + kEvent;
    settings.cpus = {0, 4};
    settings.packet_bytes = 4096;
  }
  void TearDown() override { fs::remove_all(folder); }

  static void tick(CtfWriter& writer, std::size_t stream, std::int64_t time_ns, std::uint64_t n) {
    writer.event(stream, 3, time_ns, [n](CtfBytes& bytes) { bytes.put(n); });
  }

  // Times and numbers read from a CPU's stream.
  struct Read {
    std::vector<std::int64_t> times;
    std::vector<std::uint64_t> numbers;
    ctf::Ledger ledger;
    std::uint64_t discarded = 0;
  };
  Read read(unsigned cpu) const {
    const fs::path path = settings.folder;
    const auto set = ctf::TraceSet::open(std::span(&path, 1));
    Read result;
    result.ledger = set.ledger();
    const ctf::Trace& trace = *set.traces().at(0);
    for (std::size_t i = 0; i < trace.streams.size(); ++i) {
      if (trace.streams[i].cpu != cpu) continue;
      result.discarded = trace.streams[i].discarded_events;
      ctf::StreamReader reader(trace, i);
      const auto slot = trace.layouts.at(0).payload_field("n")->slot;
      for (ctf::Event event; reader.next(event);) {
        result.times.push_back(event.time_ns);
        result.numbers.push_back(event.slots[slot]);
      }
      for (const auto& entry : reader.ledger()) result.ledger.push_back(entry);
    }
    return result;
  }

  // For a CPU with this last event; the last of all was at 300.
  std::optional<ctf::LedgerEntry> missing_end(unsigned cpu, std::int64_t last_ns) const {
    const fs::path path = settings.folder;
    const auto set = ctf::TraceSet::open(std::span(&path, 1));
    const ctf::Trace& trace = *set.traces().at(0);
    const auto stream = std::ranges::find(trace.streams, cpu, &ctf::Stream::cpu);
    return ctf::missing_end(trace, *stream, {.first_ns = {}, .last_ns = last_ns}, 300);
  }

  std::string folder;
  CtfSettings settings;
};

TEST_F(Writer, WhatIsWrittenIsRead) {
  CtfWriter writer(settings);
  std::vector<std::int64_t> times;
  std::int64_t time = 10'000'000'000;
  for (std::uint64_t n = 0; n < 5000; ++n) {
    time += n % 7 == 0 ? 5'000'000'000 : static_cast<std::int64_t>(n % 3);  // beyond 32 bits, and equal ones
    times.push_back(time);
    tick(writer, 1, time, n);
  }
  writer.finish(0);
  const Read got = read(4);
  EXPECT_EQ(got.times, times);
  EXPECT_EQ(got.numbers.back(), 4999U);
  EXPECT_TRUE(got.ledger.empty()) << got.ledger[0].message;
  EXPECT_EQ(writer.events(), 5000U);
}

TEST_F(Writer, ALossIsBetweenTheEventsAroundIt) {
  CtfWriter writer(settings);
  tick(writer, 0, 100, 1);
  writer.lost(0, 100, 250, 17);
  tick(writer, 0, 250, 2);
  tick(writer, 0, 300, 3);
  writer.finish(0);
  const Read got = read(0);
  EXPECT_EQ(got.times, (std::vector<std::int64_t>{100, 250, 300}));
  ASSERT_EQ(got.ledger.size(), 1U);
  EXPECT_EQ(got.ledger[0].loss, ctf::Loss::discarded_events);
  EXPECT_EQ(got.ledger[0].count, 17U);
  EXPECT_EQ(got.ledger[0].begin_ns, 100);
  EXPECT_EQ(got.ledger[0].end_ns, 250);
}

TEST_F(Writer, WhatWasFlushedIsThereWithoutAnEnd) {
  auto* const writer = new CtfWriter(settings);
  tick(*writer, 0, 100, 1);
  writer->flush();
  tick(*writer, 0, 200, 2);
  delete writer;  // as if killed
  const Read got = read(0);
  EXPECT_EQ(got.numbers, (std::vector<std::uint64_t>{1}));
  EXPECT_TRUE(got.ledger.empty());
}

TEST_F(Writer, AStreamWithoutItsLastPacketEndsBeforeTheOthers) {
  CtfWriter writer(settings);
  tick(writer, 0, 100, 1);
  tick(writer, 1, 150, 2);
  writer.flush();
  const fs::path silent = settings.folder + "/scheduler_0";
  const auto without_last = fs::file_size(silent);
  EXPECT_FALSE(missing_end(0, 100)) << "nobody says that it has ended";
  tick(writer, 1, 300, 3);
  writer.finish(500);
  EXPECT_FALSE(missing_end(0, 100)) << "it was silent, and recorded";
  EXPECT_FALSE(missing_end(4, 300));
  fs::resize_file(silent, without_last);
  const auto entry = missing_end(0, 100);
  ASSERT_TRUE(entry);
  EXPECT_EQ(entry->begin_ns, 100);
  EXPECT_FALSE(missing_end(4, 300));
}

TEST_F(Writer, TheFlightRecorderKeepsTheLastPackets) {
  settings.flight_recorder_bytes = 16384;
  CtfWriter writer(settings);
  for (std::uint64_t n = 0; n < 20'000; ++n) tick(writer, n % 2, 1000 + static_cast<std::int64_t>(n), n);
  EXPECT_EQ(fs::file_size(settings.folder + "/scheduler_0"), 0U);
  std::int64_t restated_ns = 0;
  writer.on_finish([&](std::int64_t begin_ns) {
    restated_ns = begin_ns;
    tick(writer, 0, begin_ns, 77'777);
  });
  writer.finish(0);
  const Read got = read(0);
  EXPECT_TRUE(got.ledger.empty()) << got.ledger[0].message;
  ASSERT_GT(got.numbers.size(), 100U);
  EXPECT_LT(got.numbers.size(), 1500U);
  EXPECT_EQ(got.numbers.front(), 77'777U);
  EXPECT_EQ(got.numbers.back(), 19'998U);
  EXPECT_EQ(got.times[1], restated_ns) << "before that the stream is not known";
  for (std::size_t i = 2; i < got.numbers.size(); ++i) ASSERT_EQ(got.numbers[i], got.numbers[i - 1] + 2);
  EXPECT_LT(fs::file_size(settings.folder + "/scheduler_0") + fs::file_size(settings.folder + "/scheduler_4"),
            24'000U);
}

TEST_F(Writer, AnotherTraceIsNotWrittenOver) {
  CtfWriter first(settings);
  EXPECT_THROW(CtfWriter second(settings), CtfOutputError);
}

TEST_F(Writer, ReplacedMetadataIsRead) {
  CtfWriter writer(settings);
  tick(writer, 0, 100, 1);
  writer.replace_metadata(ctf_preamble(settings.uuid, "\tscheduler_filter = \"x\";\n", "", 5, "") + kEvent);
  writer.finish(0);
  const fs::path path = settings.folder;
  const auto set = ctf::TraceSet::open(std::span(&path, 1));
  EXPECT_EQ(set.traces().at(0)->metadata.environment_text("scheduler_filter"), "x");
  EXPECT_EQ(read(0).numbers.size(), 1U);
}

}  // namespace
}  // namespace perflab::tracing
