// The record file of a perflab-node (docs/formats.md, section 4): append-only JSON lines, each written whole.
#pragma once

#include <mutex>
#include <nlohmann/json_fwd.hpp>
#include <string>

#include "graph/live.h"
#include "measure/counter.h"
#include "measure/resources.h"

namespace perflab::node {

class RecordFile {
 public:
  // Creates the file; throws runtime::Error (kFailed) naming it if that cannot be done.
  explicit RecordFile(const std::string& path);
  ~RecordFile();
  RecordFile(const RecordFile&) = delete;
  RecordFile& operator=(const RecordFile&) = delete;

  // Appends one line. Where the disk is full, the part that fitted is taken back, so that what was complete
  // stays readable, and the reason is kept in error(). May be called from any thread.
  void write(const nlohmann::json& record);
  // The same for a record that is text already, without its line end.
  void write_line(std::string line);
  // The last failure of a write; empty if there was none.
  [[nodiscard]] std::string error() const;
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  int file_ = -1;
  long long good_bytes_ = 0;
  mutable std::mutex mutex_;
  std::string error_;
};

nlohmann::json histogram_record(const measure::Histogram& histogram);
nlohmann::json resource_record(const measure::ResourceSample& sample);
// What the process used so far; without `when` and the roles of threads.
nlohmann::json cost_record(const measure::CpuTimes& times, const measure::ProcessCounter& cycles,
                           const measure::ProcessCounter& instructions);
// The checkpoint of everything that the graph has recorded, as one line. `hiccup` may be null.
std::string checkpoint_line(const graph::LiveGraph& live, const measure::Histogram* hiccup, Nanoseconds at_ns,
                            bool final);

}  // namespace perflab::node
