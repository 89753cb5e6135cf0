// The C interface over double/traceview/view.h.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <string>
#include <vector>

#include "perflab_trace.h"
#include "traceview/arrow.h"

extern "C" const char* perflab_trace_facts_in_c(const perflab_trace* trace);

namespace {

class TraceLibrary : public testing::Test {
 protected:
  ~TraceLibrary() override {
    if (batch_.release != nullptr) batch_.release(&batch_);
    if (stream_.release != nullptr) stream_.release(&stream_);
    perflab_trace_close(trace_);
  }
  perflab_trace* open(const char* path) {
    const char* const paths[] = {path};
    trace_ = perflab_trace_open(paths, 1, 3, nullptr, 0, error_.data(), error_.size());
    return trace_;
  }
  void close() {
    perflab_trace_close(trace_);
    trace_ = nullptr;
  }
  int table(const char* name) {
    return perflab_trace_table(trace_, name, &stream_, error_.data(), error_.size());
  }
  void read() {
    ASSERT_EQ(stream_.get_next(&stream_, &batch_), 0);
    ASSERT_NE(batch_.release, nullptr);
  }
  template <typename T>
  T value(std::size_t column, std::size_t row) const {
    return static_cast<const T*>(batch_.children[column]->buffers[1])[row];
  }

  perflab_trace* trace_ = nullptr;
  ArrowArrayStream stream_{};
  ArrowArray batch_{};
  std::array<char, 200> error_{};
};

TEST_F(TraceLibrary, FactsAreTheViews) {
  ASSERT_NE(open("small"), nullptr);
  EXPECT_STREQ(perflab_trace_facts(trace_), R"({"paths": ["small"], "threads": 3, "scheduler": {"events": 5}})");
  EXPECT_EQ(perflab_trace_facts_in_c(trace_), perflab_trace_facts(trace_));
}

TEST_F(TraceLibrary, WhatCannotBeOpenedIsOneLine) {
  EXPECT_EQ(open("a/missing"), nullptr);
  EXPECT_STREQ(error_.data(), "a/missing: no such trace");
}

TEST_F(TraceLibrary, ErrorsAreCutToSizeBetweenCharacters) {
  const char* const paths[] = {"\xc3\xbc\xc3\xbc/missing"};  // two characters of two bytes
  std::array<char, 4> small{};
  EXPECT_EQ(perflab_trace_open(paths, 1, 0, nullptr, 0, small.data(), small.size()), nullptr);
  EXPECT_STREQ(small.data(), "\xc3\xbc");
  EXPECT_EQ(perflab_trace_open(paths, 1, 0, nullptr, 0, nullptr, 0), nullptr);
}

TEST_F(TraceLibrary, UnknownTablesAreRefusedWithTheirNames) {
  ASSERT_NE(open("small"), nullptr);
  EXPECT_EQ(table("take"), -1);
  EXPECT_EQ(std::string(error_.data()).rfind("no table take; there are hosts, processes, threads", 0), 0u);
  EXPECT_EQ(stream_.release, nullptr);
}

TEST_F(TraceLibrary, ShortTablesAreJson) {
  open("small");
  const auto rows = [&](const char* name) {
    const char* json = perflab_trace_rows(trace_, name, error_.data(), error_.size());
    return std::string(json == nullptr ? error_.data() : json);
  };
  EXPECT_EQ(rows("hosts"), "{\"name\":[\"größe\",null,\"cut \xef\xbf\xbd\"]}");
  EXPECT_EQ(rows("threads"),
            R"({"events":[18446744073709551615,18446744073709551615,18446744073709551615],"first_ns":[0,1,2],)"
            R"("host":[0,0,0],"last_ns":[1152921504606846976,1152921504606846976,1152921504606846976],)"
            R"("name":["main","main",""],"process":[0,null,0],"tid":[100,101,102]})");
  EXPECT_NE(rows("thread_states").find(R"("end_state":["sleeping",null],"inferred":[false,false])"), std::string::npos);
  EXPECT_EQ(rows("nodes"), R"({"handle":[],"name":[],"process":[],"valid_from_ns":[],"valid_to_ns":[]})");
  EXPECT_TRUE(rows("nothing").starts_with("no table nothing; there are hosts, "));
}

TEST_F(TraceLibrary, CountsRowsThatAreAlike) {
  open("small");
  const auto count = [&](const char* question) {
    const char* json = perflab_trace_count(trace_, question, error_.data(), error_.size());
    return std::string(json == nullptr ? error_.data() : json);
  };
  EXPECT_EQ(count(R"({"table": "callback_instances"})"), "[[20]]");
  EXPECT_EQ(count(R"({"table": "nodes"})"), "[]");
  EXPECT_EQ(count(R"({"table": "callback_instances", "by": ["thread"], "counted": [["end_ns"], ["end_ns", "intra_process"]],
                      "least": ["start_ns"]})"),
            "[[0,7,7,6,0],[1,7,6,6,1000],[2,6,6,6,2000]]");
  EXPECT_EQ(count(R"({"table": "callback_instances", "by": ["take"], "counted": [["take"]]})"), "[[null,20,0]]");
  EXPECT_EQ(count(R"({"table": "takes", "by": ["match", "subscription"], "begin_ns": 2, "end_ns": 4,
                      "instants": ["rmw_ns", "rcl_ns"]})"),
            R"([["no_timestamp",2,1],["unknown_subscription",3,1]])");
  EXPECT_EQ(count(R"({"table": "callback_instances", "instants": ["due_ns"], "begin_ns": 0})"), "[]");
  EXPECT_EQ(count(R"({"table": "takes", "by": ["nothing"]})"), "table takes has no column nothing");
  EXPECT_EQ(count(R"({"table": "takes", "by": ["rmw_ns"]})"), "rows cannot be grouped by the column rmw_ns");
  EXPECT_EQ(count(R"({"table": "takes", "least": ["thread"]})"), "the column thread is no instant");
  EXPECT_TRUE(count("{}").starts_with("what to count: "));
}

TEST_F(TraceLibrary, WhatIsNotKeptIsNotCounted) {
  const char* const paths[] = {"small"};
  const char* const wanted[] = {"takes.match", "takes.publication?"};
  trace_ = perflab_trace_open(paths, 1, 3, wanted, 2, error_.data(), error_.size());
  ASSERT_NE(trace_, nullptr);
  const auto count = [&](const char* question) {
    const char* json = perflab_trace_count(trace_, question, error_.data(), error_.size());
    return std::string(json == nullptr ? error_.data() : json);
  };
  EXPECT_EQ(count(R"({"table": "takes", "counted": [["publication"]]})"), "[[6,1]]");
  EXPECT_EQ(count(R"({"table": "takes", "by": ["publication"]})"), "the column publication is not kept");
  EXPECT_EQ(count(R"({"table": "takes", "counted": [["rmw_ns"]]})"), "the column rmw_ns is not kept");
}

TEST_F(TraceLibrary, TablesOutliveTheTrace) {
  ASSERT_NE(open("small"), nullptr);
  ASSERT_EQ(table("threads"), 0);
  close();
  read();
  EXPECT_EQ(batch_.length, 3);
  EXPECT_EQ(value<std::int32_t>(2, 2), 102);
}

TEST_F(TraceLibrary, SplitsWhatIsKnownAndOnlyThat) {
  ASSERT_NE(open("small"), nullptr);
  //                                          known, unknown, no row, no row, ends before it begins, known
  const std::vector<std::int32_t> threads = {0, 2, -1, 3, 1, 1};
  const std::vector<std::int64_t> begins = {5, 5, 5, 5, 9, 5};
  const std::vector<std::int64_t> ends = {8, 8, 8, 8, 8, 5};
  ASSERT_EQ(perflab_trace_split(trace_, threads.data(), begins.data(), ends.data(), threads.size(), &stream_,
                                error_.data(), error_.size()),
            0);
  close();
  read();
  ASSERT_EQ(batch_.length, 6);
  for (int column = 0; column < 5; ++column) {
    EXPECT_EQ(batch_.children[column]->null_count, 4);
    EXPECT_EQ(*static_cast<const std::uint8_t*>(batch_.children[column]->buffers[0]) & 0x3f, 0b100001);
  }
  EXPECT_EQ(value<std::int64_t>(0, 0), 3);
  EXPECT_EQ(value<std::int64_t>(0, 5), 0);
  EXPECT_EQ(value<std::uint32_t>(4, 5), 1u);
}

TEST_F(TraceLibrary, HoldsNameTheStretchesOfTheCaller) {
  ASSERT_NE(open("small"), nullptr);
  const std::vector<std::int32_t> threads = {-1, 0, 9, 1};
  const std::vector<std::int64_t> begins = {0, 10, 0, 20};
  const std::vector<std::int64_t> ends = {1, 13, 1, 24};
  ASSERT_EQ(perflab_trace_holds(trace_, threads.data(), begins.data(), ends.data(), threads.size(), &stream_,
                                error_.data(), error_.size()),
            0);
  read();
  ASSERT_EQ(batch_.length, 2);
  EXPECT_EQ(value<std::uint32_t>(0, 0), 1u);
  EXPECT_EQ(value<std::uint32_t>(0, 1), 3u);
  EXPECT_EQ(value<std::int64_t>(4, 1), 4);
}

TEST_F(TraceLibrary, WithoutSchedulerEventsNothingIsKnown) {
  ASSERT_NE(open("silent"), nullptr);
  const std::int32_t thread = 0;
  const std::int64_t begin = 0;
  const std::int64_t end = 1;
  ASSERT_EQ(perflab_trace_holds(trace_, &thread, &begin, &end, 1, &stream_, error_.data(), error_.size()), 0);
  read();
  EXPECT_EQ(batch_.length, 0);
  batch_.release(&batch_);
  stream_.release(&stream_);
  ASSERT_EQ(perflab_trace_split(trace_, &thread, &begin, &end, 1, &stream_, error_.data(), error_.size()), 0);
  read();
  EXPECT_EQ(batch_.length, 1);
  EXPECT_EQ(batch_.children[0]->null_count, 1);
}

TEST_F(TraceLibrary, NoStretchesAreNoRows) {
  ASSERT_NE(open("small"), nullptr);
  ASSERT_EQ(perflab_trace_split(trace_, nullptr, nullptr, nullptr, 0, &stream_, error_.data(), error_.size()),
            0);
  read();
  EXPECT_EQ(batch_.length, 0);
}

}  // namespace
