// What it costs to record one message, beside the limit of 40 ns: the edge's record (sequence,
// classification, latency and response) and the publisher's (publish_delay and publish_call). Clock readings
// are reported apart: they belong to the clock, not to the recording.
//
// Prints one JSON object: medians over batches, ns per message, and the number of allocations.
#include <algorithm>
#include <cstdio>
#include <random>
#include <vector>

#include "measure/allocations.h"
#include "measure/recorders.h"

namespace {

using perflab::Nanoseconds;
namespace measure = perflab::measure;

constexpr int kBatches = 301;
constexpr std::size_t kMessages = 20'000;  // per batch
constexpr double kLimitNs = 40.0;

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

// Runs `batch` many times; the median cost of one message.
template <typename Batch>
double cost_per_message(const measure::Clock& clock, Batch batch) {
  std::vector<double> costs;
  for (int i = 0; i < kBatches; ++i) {
    const Nanoseconds begin = clock.now();
    batch();
    costs.push_back(static_cast<double>(clock.now() - begin) / static_cast<double>(kMessages));
  }
  return median(costs);
}

}  // namespace

int main() {
  const measure::MonotonicClock clock;
  measure::MessageEventQueue events;
  measure::RecorderMemory memory(1, 1);
  measure::EdgeRecorder edge(memory, events, 0, {}, 1000.0);
  measure::PublisherRecorder publisher(memory, 1'000'000);

  // Latencies as they come in practice: a log-normal body around 30 us. One histogram bucket would be too
  // kind to the caches.
  std::mt19937_64 random(1);
  std::lognormal_distribution<double> latency(10.3, 0.5);
  std::vector<Nanoseconds> latencies(kMessages);
  for (Nanoseconds& value : latencies) value = static_cast<Nanoseconds>(latency(random));

  std::uint64_t sequence = 0;
  Nanoseconds now = 1;
  const std::uint64_t allocations_before = measure::allocations_of_this_thread();
  const double received = cost_per_message(clock, [&] {
    for (const Nanoseconds value : latencies) {
      now += 1'000'000;
      edge.record_callback({now, now + 50, sequence++}, now + value, perflab::kUnknownTime);
    }
  });
  sequence = 0;
  const double sent = cost_per_message(clock, [&] {
    for (const Nanoseconds value : latencies) {
      now += 1'000'000;
      publisher.record_sent({now, now + value / 8, sequence++}, now + value / 4);
    }
  });
  const double reading = cost_per_message(clock, [&] {
    for (std::size_t i = 0; i < kMessages; ++i) static_cast<void>(clock.now());
  });
  // The vector of batch results allocates; its share is known and taken out.
  std::vector<double> reference;
  const std::uint64_t allocations_all = measure::allocations_of_this_thread() - allocations_before;
  std::uint64_t growth = measure::allocations_of_this_thread();
  for (int i = 0; i < kBatches; ++i) reference.push_back(0.0);
  growth = measure::allocations_of_this_thread() - growth + 1;  // and the copy that median() takes
  const std::uint64_t allocations = allocations_all - 3 * growth;

  std::printf(
      "{\"benchmark\": \"record_cost\", \"edge_ns\": %.2f, \"publisher_ns\": %.2f, \"clock_reading_ns\": "
      "%.2f, "
      "\"limit_ns\": %.0f, \"ratio_to_limit\": %.3f, \"allocations\": %llu, \"messages\": %zu}\n",
      received, sent, reading, kLimitNs, std::max(received, sent) / kLimitNs,
      static_cast<unsigned long long>(allocations), kMessages * kBatches);
  return std::max(received, sent) <= kLimitNs && allocations == 0 ? 0 : 1;
}
