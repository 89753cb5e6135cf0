// The record file of a perflab-node (docs/formats.md, section 4): append-only JSON lines, each written whole.
#pragma once

#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "base/line_file.h"
#include "graph/live.h"
#include "measure/allocation_counts.h"
#include "measure/counter.h"
#include "measure/resources.h"
#include "program/hiccup.h"

namespace perflab::node {

class RecordFile {
 public:
  // Creates the file; throws Failed, which names it.
  explicit RecordFile(const std::string& path) : file_(path) {}

  // Appends one line. If the disk is full, removes the incomplete line, so that the file stays readable, and
  // keeps the reason in error(). Thread-safe.
  void write(const nlohmann::json& record);
  // A record written piece by piece, so that it is never in memory as a whole; other records wait until it is
  // complete. A record left incomplete by an exception is removed.
  class Line {
   public:
    explicit Line(RecordFile& file);
    ~Line();
    Line(const Line&) = delete;
    Line& operator=(const Line&) = delete;
    Line& operator<<(std::string_view text);

   private:
    void append(std::string_view text) noexcept;

    RecordFile& file_;
    const std::lock_guard<std::mutex> lock_;
    const int exceptions_;
    std::string piece_;
    bool failed_ = false;  // further output would not form a line
  };
  // The last failure of a write; empty if there was none.
  [[nodiscard]] std::string error() const;
  [[nodiscard]] const std::string& path() const noexcept { return file_.path(); }

 private:
  LineFile file_;
  mutable std::mutex mutex_;
};

// The call sites that allocated most, from the library that counts allocations, with function names of the
// callers.
nlohmann::json allocation_sites_record(measure::AllocationSites sites, Nanoseconds at_ns);

nlohmann::json histogram_record(const measure::Histogram& histogram);
nlohmann::json resource_record(const measure::ResourceSample& sample);
// The resources used by the process so far, without `when` and the roles of threads.
nlohmann::json cost_record(const measure::CpuTimes& times, const measure::ProcessCounter& cycles,
                           const measure::ProcessCounter& instructions,
                           const measure::ProcessCounter& cache_misses);
// Writes the checkpoint of everything that the graph has recorded. `hiccup` may be null.
void write_checkpoint_record(RecordFile& file, const graph::LiveGraph& live, const Hiccup* hiccup,
                             Nanoseconds at_ns, bool final);

// Writes the new history of throttles (docs/formats.md, section 4).
class ThrottleWriter {
 public:
  void write(RecordFile& file, const graph::LiveGraph& live, Nanoseconds at_ns);

 private:
  std::vector<std::size_t> written_;  // steps written, in the order of LiveGraph::throttles
};

// Writes the rows of loops (docs/formats.md, section 4), each once it is complete. A row that is incomplete
// when first visited is written as it is, and again once it is complete, or at the end.
class LoopWriter {
 public:
  void write(RecordFile& file, const graph::LiveGraph& live, Nanoseconds at_ns);

 private:
  struct Written {
    std::size_t next = 0;           // first row not written yet
    std::vector<std::size_t> open;  // rows written incomplete
  };
  std::vector<Written> written_;  // in the order of LiveGraph::loops
};

}  // namespace perflab::node
