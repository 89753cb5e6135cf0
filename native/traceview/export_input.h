// Input of the exports: the tables of a view, and options of the caller (docs/formats.md, exports).
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "traceview/tables.h"

namespace perflab::traceview {

struct ExportTables {
  const Hosts* hosts = nullptr;
  const Processes* processes = nullptr;
  const Threads* threads = nullptr;
  const Callbacks* callbacks = nullptr;
  const CallbackInstances* callback_instances = nullptr;
  const Publications* publications = nullptr;
  const Takes* takes = nullptr;
  const IntraDeliveries* intra_deliveries = nullptr;
  const Phases* phases = nullptr;
  const FunctionCalls* function_calls = nullptr;
  const ThreadStates* thread_states = nullptr;
  const WakeUps* wake_ups = nullptr;
};

// The tables of a View, which must outlive them. Throws std::logic_error if the view lacks one of them.
template <typename AnyView>
[[nodiscard]] ExportTables export_tables(const AnyView& view) {
  ExportTables out;
  view.tables([&out](std::string_view, const auto& table) {
    using Table = std::remove_cvref_t<decltype(table)>;
    const auto take = [&table](auto& place) {
      if constexpr (std::is_same_v<std::remove_cvref_t<decltype(*place)>, Table>) place = &table;
    };
    take(out.hosts), take(out.processes), take(out.threads), take(out.callbacks),
        take(out.callback_instances);
    take(out.publications), take(out.takes), take(out.intra_deliveries), take(out.phases);
    take(out.function_calls), take(out.thread_states), take(out.wake_ups);
  });
  if (!out.hosts || !out.processes || !out.threads || !out.callbacks || !out.callback_instances ||
      !out.publications || !out.takes || !out.intra_deliveries || !out.phases || !out.function_calls ||
      !out.thread_states || !out.wake_ups) {
    throw std::logic_error("this view has not all of the tables that an export needs");
  }
  return out;
}

// A stretch of time; begin or end may be unknown.
struct ExportSpan {
  std::optional<std::int64_t> begin_ns, end_ns;
};

struct ExportLoss {
  ExportSpan span;
  std::string track;  // name of the track that shows it: "events lost: ros2_0"
  std::string text;   // "12 events discarded by the tracer"
};

struct ExportMark {
  std::int64_t time_ns;
  std::string text;
};

// Names are indexed by the rows of their tables.
struct ExportOptions {
  std::optional<std::int64_t> begin_ns, end_ns;  // of the trace
  std::optional<std::int64_t> epoch_offset_ns;
  std::vector<std::string> processes, threads, callbacks, publishers, subscriptions, functions;
  std::vector<std::string> quality;  // sentences on the limits of the trace's figures
  std::vector<ExportMark> marks;     // remarks on instants
  std::vector<ExportLoss> losses;
  std::vector<std::pair<std::int64_t, std::int64_t>> gaps;  // stretches in which user-space events may be
                                                            // missing
  std::vector<std::pair<std::int32_t, std::int32_t>> not_taken;  // rows of publication and subscription
  bool wall = false;                                             // folded: weights are wall time
};

// Throws std::invalid_argument if the JSON does not match docs/formats.md.
[[nodiscard]] ExportOptions parse_export_options(std::string_view json);

// Receives the output.
using ExportSink = std::function<void(std::string_view)>;

// Number of written and of omitted items, by name.
using ExportCounts = std::vector<std::pair<std::string, std::uint64_t>>;

inline constexpr std::int64_t kNotSeen = std::numeric_limits<std::int64_t>::min();

// Name of a row; "#" and its number if it has none.
[[nodiscard]] std::string export_name(const std::vector<std::string>& names, std::int32_t row);

// Time of a publication at the first layer that recorded it.
[[nodiscard]] inline std::optional<std::int64_t> published_ns(const Publications& table, std::size_t row) {
  std::optional<std::int64_t> first;
  for (const Int64* layer :
       {&table.intra_ns, &table.rclcpp_ns, &table.rcl_ns, &table.rmw_ns, &table.dds_ns}) {
    if (layer->valid(row) && (!first || (*layer)[row] < *first)) first = (*layer)[row];
  }
  return first;
}

}  // namespace perflab::traceview
