// Evaluates content filters by the host, and counts the results per call site.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <nlohmann/json.hpp>

#include "middleware/middleware.h"

namespace perflab::middleware::support {

class FilterCounts {
 public:
  // Thread-safe.
  bool wants(const perflab_filter& filter, const void* data, std::size_t size) noexcept {
    const perflab_bytes whole{data, size};
    const bool wanted = filter.wants(filter.context, &whole, 1);
    (wanted ? passed_ : left_out_).fetch_add(1, std::memory_order_relaxed);
    return wanted;
  }
  [[nodiscard]] nlohmann::json json() const {
    return {{"passed", passed_.load(std::memory_order_relaxed)}, {"left_out", left_out_.load(std::memory_order_relaxed)}};
  }

 private:
  std::atomic<std::uint64_t> passed_{0};
  std::atomic<std::uint64_t> left_out_{0};
};

}  // namespace perflab::middleware::support
