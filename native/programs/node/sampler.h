// The thread that samples this process's resources at a fixed period and writes them to the record file.
#pragma once

#include <condition_variable>
#include <mutex>
#include <thread>

#include "measure/resources.h"
#include "programs/node/records.h"

namespace perflab::node {

class Sampler {
 public:
  Sampler(const measure::Clock& clock, Nanoseconds period_ns, RecordFile& file);
  ~Sampler();
  Sampler(const Sampler&) = delete;
  Sampler& operator=(const Sampler&) = delete;

  // Takes a last sample and ends the thread. Idempotent.
  void stop();

 private:
  void run();

  measure::ResourceSampler resources_;
  const measure::Clock& clock_;
  Nanoseconds period_ns_;
  RecordFile& file_;
  std::mutex mutex_;
  std::condition_variable wake_;
  bool registered_ = false;
  bool stopping_ = false;
  std::thread thread_;
};

}  // namespace perflab::node
