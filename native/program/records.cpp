#include "program/records.h"

#include <algorithm>
#include <array>
#include <exception>
#include <fstream>
#include <nlohmann/json.hpp>
#include <span>
#include <utility>
#include <vector>

#include "graph/throttle.h"
#include "measure/histogram_codec.h"
#include "program/symbols.h"

namespace perflab::node {
namespace {

using nlohmann::json;

constexpr std::size_t kPiece = 64u << 10;  // approximate size of a write

template <typename T>
json or_null(const std::optional<T>& value) {
  return value ? json(*value) : json(nullptr);
}

}  // namespace

void RecordFile::write(const json& record) { Line(*this) << record.dump(); }

RecordFile::Line::Line(RecordFile& file)
    : file_(file), lock_(file.mutex_), exceptions_(std::uncaught_exceptions()) {}

RecordFile::Line::~Line() {
  if (std::uncaught_exceptions() != exceptions_) {
    file_.file_.take_back("a record could not be built");
  } else {
    append(piece_);
    append("\n");
  }
}

void RecordFile::Line::append(std::string_view text) noexcept {
  if (!failed_) failed_ = !file_.file_.write(text);
}

RecordFile::Line& RecordFile::Line::operator<<(std::string_view text) {
  if (piece_.size() + text.size() > kPiece) {
    append(piece_);
    piece_.clear();
  }
  if (text.size() > kPiece) {
    append(text);
  } else {
    piece_ += text;
  }
  return *this;
}

std::string RecordFile::error() const {
  const std::lock_guard lock(mutex_);
  return file_.error();
}

json allocation_sites_record(measure::AllocationSites sites, Nanoseconds at_ns) {
  constexpr std::size_t kMost = 200;
  std::vector<measure::AllocationSite> found;
  const std::uint64_t elsewhere = sites(
      [](void* context, const measure::AllocationSite* site) {
        static_cast<std::vector<measure::AllocationSite>*>(context)->push_back(*site);
      },
      &found);
  std::ranges::sort(found, std::ranges::greater{}, &measure::AllocationSite::count);
  std::uint64_t left_out = elsewhere;
  for (std::size_t i = kMost; i < found.size(); ++i) left_out += found[i].count;
  found.resize(std::min(found.size(), kMost));
  Symbols symbols;
  json list = json::array();
  for (const measure::AllocationSite& site : found) {
    json frames = json::array();
    for (const void* const frame : std::span(site.frames).first(site.depth)) {
      const Symbol symbol = symbols.at(frame);
      frames.push_back({{"object", symbol.object},
                        {"offset", symbol.offset},
                        {"function", symbol.function.empty() ? json(nullptr) : json(symbol.function)}});
    }
    std::string thread;
    std::getline(std::ifstream("/proc/self/task/" + std::to_string(site.tid) + "/comm"), thread);
    list.push_back({{"tid", site.tid},
                    {"thread", thread.empty() ? json(nullptr) : json(thread)},
                    {"count", site.count},
                    {"bytes", site.bytes},
                    {"frames", std::move(frames)}});
  }
  return {{"type", "allocation_sites"}, {"at_ns", at_ns}, {"sites", std::move(list)}, {"left_out", left_out}};
}

json histogram_record(const measure::Histogram& histogram) {
  const bool empty = histogram.count() == 0;
  return {{"v2", measure::encode_v2_base64(histogram)},
          {"count", histogram.count()},
          {"sum", histogram.sum()},
          {"min", empty ? json(nullptr) : json(histogram.min())},
          {"max", empty ? json(nullptr) : json(histogram.max())},
          {"max_at_ns", empty ? json(nullptr) : json(histogram.max_at())},
          {"saturated", histogram.saturated()},
          {"negative", histogram.negative()},
          {"overflowed", histogram.overflowed()}};
}

namespace {

// As members of `record`.
void add_counts(json& record, const measure::Usage& usage) {
  for (std::size_t i = 0; i < usage.counts.size(); ++i) record[measure::kUsageCounts[i].name] = usage.counts[i];
}

}  // namespace

json resource_record(const measure::ResourceSample& sample) {
  json allocations;
  if (sample.allocations) {
    allocations = {{"count", sample.allocations->count},
                   {"bytes", sample.allocations->bytes},
                   {"frees", sample.allocations->frees}};
  }
  json threads = json::array();
  for (const measure::ThreadSample& thread : sample.threads) {
    threads.push_back({{"tid", thread.tid},
                       {"name", thread.name},
                       {"cpu_ns", thread.cpu_ns},
                       {"cpu_interval_ns", thread.cpu_interval_ns},
                       {"run_delay_ns", or_null(thread.run_delay_ns)},
                       {"voluntary_switches", or_null(thread.voluntary_switches)},
                       {"involuntary_switches", or_null(thread.involuntary_switches)},
                       {"cpu", or_null(thread.cpu)},
                       {"allocations", or_null(thread.allocations)}});
  }
  json record = {{"type", "resources"},
          {"at_ns", sample.at_ns},
          {"interval_ns", or_null(sample.interval_ns)},
          {"cpu_ns", sample.cpu_ns},
          {"cpu_interval_ns", or_null(sample.cpu_interval_ns)},
          {"rss_kb", or_null(sample.rss_kb)},
          {"rss_peak_kb", or_null(sample.rss_peak_kb)},
          {"vsz_kb", or_null(sample.vsz_kb)},
          {"arena_kb", sample.arena_kb},
          {"in_use_kb", sample.in_use_kb},
          {"mmap_kb", sample.mmap_kb},
          {"user_ns", sample.usage.user_ns},
          {"system_ns", sample.usage.system_ns},
          {"run_delay_ns", or_null(sample.run_delay_ns)},
          {"allocations", std::move(allocations)},
          {"threads", std::move(threads)}};
  add_counts(record, sample.usage);
  return record;
}

namespace {

json count_json(const measure::ProcessCounter& counter) {
  const auto now = counter.read();
  if (!now) {
    return {{"count", nullptr},
            {"reason", counter.reason().empty() ? "the counter cannot be read" : counter.reason()}};
  }
  return {{"count", now->count},
          {"enabled_ns", now->enabled_ns},
          {"running_ns", now->running_ns},
          {"kernel", counter.with_kernel()}};
}

}  // namespace

namespace {

json network_json(const measure::NetworkCounts& network) {
  json sockets = json::array();
  for (const measure::NetworkCounts::Socket& socket : network.sockets)
    sockets.push_back({{"inode", socket.inode}, {"drops", socket.drops}});
  return {{"namespace", network.network_namespace},
          {"sent_bytes", or_null(network.sent_bytes)},
          {"sent_packets", or_null(network.sent_packets)},
          {"tcp_retransmissions", or_null(network.tcp_retransmissions)},
          {"sockets", std::move(sockets)}};
}

}  // namespace

json cost_record(const measure::CpuTimes& times, const measure::ProcessCounter& cycles,
                 const measure::ProcessCounter& instructions, const measure::ProcessCounter& cache_misses) {
  json threads = json::array();
  for (const measure::CpuTimes::Thread& thread : times.threads) {
    threads.push_back({{"tid", thread.tid}, {"name", thread.name}, {"cpu_ns", thread.cpu_ns}});
  }
  json usage = json::object();
  add_counts(usage, measure::usage());
  return {{"type", "cost"},
          {"at_ns", times.at_ns},
          {"cpu_ns", times.cpu_ns},
          {"cycles", count_json(cycles)},
          {"instructions", count_json(instructions)},
          {"cache_misses", count_json(cache_misses)},
          {"usage", std::move(usage)},
          {"network", network_json(measure::network_counts())},
          {"threads", std::move(threads)}};
}

namespace {

// Without values it was not measured: nothing was encoded.
json or_nothing(const measure::Histogram* histogram) {
  return histogram != nullptr && histogram->count() > 0 ? histogram_record(*histogram) : json(nullptr);
}

// Common part of publishers and of a client's requests.
json sending_record(const measure::PublisherRecorder& recorder) {
  return {{"sent", recorder.sent()},
          {"not_sent", recorder.not_sent()},
          {"write_errors", recorder.write_errors()},
          {"warmup_sent", recorder.warmup_sent()},
          {"first_sequence", or_null(recorder.first_sequence())},
          {"publish_delay", histogram_record(recorder.publish_delay())},
          {"publish_call", histogram_record(recorder.publish_call())},
          {"serialize", or_nothing(recorder.serialize())}};
}

// The owner of a publisher, edge or service; omitted for the workload.
void name_condition(json& record, const std::string& condition) {
  if (!condition.empty()) record["condition"] = condition;
}

json publisher_record(const graph::PublisherView& view) {
  json record = sending_record(*view.recorder);
  const measure::Histogram* period = view.recorder->period();
  const measure::Histogram* jitter = view.recorder->period_jitter();
  record["period"] = period != nullptr ? histogram_record(*period) : json(nullptr);
  record["period_jitter"] = jitter != nullptr ? histogram_record(*jitter) : json(nullptr);
  record["node"] = view.node->qualified_name();
  record["topic"] = view.publisher->topic;
  // Filters that have been applied.
  for (const auto& [filter, count] : view.wanted) record["wanted"][filter] = count;
  name_condition(record, view.node->condition);
  return record;
}

// Common part of edges and of the replies to a client.
json receiving_record(const measure::EdgeRecorder& recorder) {
  const measure::SequenceTracker& sequence = recorder.sequence();
  const bool any = sequence.received() > 0;
  // Dispatch needs arrival times from the middleware; without them nothing was measured.
  const Nanoseconds first_callback = recorder.first_callback();
  json first_message;
  if (first_callback != kUnknownTime)
    first_message = {{"at_ns", first_callback}, {"intended_ns", recorder.first_intended()}};
  const bool dispatch = recorder.dispatch() != nullptr && recorder.dispatch()->count() > 0;
  return {{"received", sequence.received()},
          {"first_sequence", any ? json(sequence.lowest()) : json(nullptr)},
          {"highest_sequence", any ? json(sequence.highest()) : json(nullptr)},
          {"gap", sequence.gap()},
          {"reordered", sequence.reordered()},
          {"duplicate", sequence.duplicate()},
          {"beyond_window", sequence.beyond_window()},
          {"warmup_received", recorder.warmup_received()},
          {"first_message", std::move(first_message)},
          {"on_time", recorder.on_time()},
          {"late", recorder.late()},
          {"too_late", recorder.too_late()},
          {"latency", histogram_record(recorder.latency())},
          {"response", histogram_record(recorder.response())},
          {"dispatch", dispatch ? histogram_record(*recorder.dispatch()) : json(nullptr)},
          {"work", recorder.work() != nullptr ? histogram_record(*recorder.work()) : json(nullptr)},
          {"deserialize", or_nothing(recorder.deserialize())}};
}

json edge_record(const graph::EdgeView& view) {
  json record = receiving_record(*view.recorder);
  if (!view.subscription->filter.empty()) record["filter"] = view.subscription->filter;
  record["publisher"] = view.publisher_node->qualified_name();
  record["topic"] = view.publisher->topic;
  record["subscription"] = view.subscription_node->name_of(*view.subscription);
  record["size_bytes"] = view.publisher->sized ? json(view.publisher->size_bytes) : json(nullptr);
  record["frequency_hz"] = view.publisher->frequency_hz;
  name_condition(record, graph::condition_between(*view.publisher_node, *view.subscription_node));
  return record;
}

json service_record(const graph::ServiceView& view) {
  json replies = receiving_record(*view.replies);
  replies["size_bytes"] = view.size_bytes;
  replies["frequency_hz"] = view.client->frequency_hz;
  json record = {{"client", view.client_node->qualified_name()},
                 {"service", view.client->service},
                 {"server", view.server_node->qualified_name()},
                 {"requests", sending_record(*view.requests)},
                 {"replies", std::move(replies)}};
  if (!view.answers.empty()) record["answers"] = view.answers;
  name_condition(record, graph::condition_between(*view.client_node, *view.server_node));
  return record;
}

json waitable_record(const graph::WaitableView& view) {
  json record = {{"node", view.node->qualified_name()},
                 {"name", view.waitable->name},
                 {"triggers", view.counts.triggers},
                 {"executed", view.counts.executed},
                 {"coalesced", view.counts.coalesced},
                 {"not_triggered", view.counts.not_triggered},
                 {"warmup_triggers", view.counts.warmup_triggers}};
  name_condition(record, view.node->condition);
  return record;
}

std::string text_or_null(const measure::Histogram* histogram) {
  return histogram != nullptr ? histogram_record(*histogram).dump() : "null";
}

}  // namespace

void write_checkpoint_record(RecordFile& file, const graph::LiveGraph& live, const Hiccup* hiccup,
                             Nanoseconds at_ns, bool final) {
  RecordFile::Line line(file);
  line << "{\"type\":\"checkpoint\",\"at_ns\":" << std::to_string(at_ns)
       << ",\"final\":" << (final ? "true" : "false")
       << ",\"foreign_messages\":" << std::to_string(live.foreign_messages())
       << ",\"malformed_messages\":" << std::to_string(live.malformed_messages())
       << ",\"forgotten_messages\":" << std::to_string(live.forgotten_messages())
       << ",\"unwanted_messages\":" << std::to_string(live.unwanted_messages())
       << ",\"hiccup\":" << text_or_null(hiccup != nullptr ? &hiccup->histogram() : nullptr)
       << ",\"hiccup_waited\":" << text_or_null(hiccup != nullptr ? hiccup->waited() : nullptr)
       << ",\"hiccup_woken_late\":" << text_or_null(hiccup != nullptr ? hiccup->woken_late() : nullptr);
  const auto list = [&line](const char* name, const auto& views, auto record) {
    line << ",\"" << name << "\":[";
    const char* separator = "";
    for (const auto& view : views) {
      line << separator << record(view).dump();
      separator = ",";
    }
    line << "]";
  };
  list("publishers", live.publishers(), publisher_record);
  list("edges", live.edges(), edge_record);
  list("services", live.services(), service_record);
  list("waitables", live.waitables(), waitable_record);
  line << "}";
}

void ThrottleWriter::write(RecordFile& file, const graph::LiveGraph& live, Nanoseconds at_ns) {
  written_.resize(live.throttles().size());
  for (std::size_t i = 0; i < written_.size(); ++i) {
    const graph::ThrottleView& view = live.throttles()[i];
    const graph::LiveThrottle& throttle = *view.throttle;
    const std::size_t steps = throttle.steps();
    json record = {{"type", "throttle"},
                   {"at_ns", at_ns},
                   {"node", view.node->qualified_name()},
                   {"timer", view.timer->name},
                   {"full_hz", throttle.full_hz()},
                   {"withheld", throttle.withheld()},
                   {"beyond", throttle.steps_beyond()}};
    for (const char* column : {"step_at_ns", "rate_hz", "sent", "accepted", "worst_age_ns"}) record[column] = json::array();
    for (; written_[i] < steps; ++written_[i]) {
      const graph::LiveThrottle::Step& step = throttle.step(written_[i]);
      record["step_at_ns"].push_back(step.at_ns);
      record["rate_hz"].push_back(step.rate_hz);
      record["sent"].push_back(step.sent);
      record["accepted"].push_back(step.accepted);
      record["worst_age_ns"].push_back(step.worst_age_ns == kUnknownTime ? json(nullptr) : json(step.worst_age_ns));
    }
    file.write(record);
  }
}

void LoopWriter::write(RecordFile& file, const graph::LiveGraph& live, Nanoseconds at_ns) {
  written_.resize(live.loops().size());
  for (std::size_t i = 0; i < written_.size(); ++i) {
    const graph::LoopView& view = live.loops()[i];
    Written& written = written_[i];
    const std::size_t ticked = view.recorder->ticked();
    std::vector<std::size_t> chosen, open;
    for (const std::size_t loop : written.open) {
      (view.recorder->row(loop).back_ns == kUnknownTime ? open : chosen).push_back(loop);
    }
    for (; written.next < ticked; ++written.next) {
      chosen.push_back(written.next);
      if (view.recorder->row(written.next).back_ns == kUnknownTime) open.push_back(written.next);
    }
    written.open = std::move(open);
    if (chosen.empty()) continue;
    constexpr std::array kColumns{
        std::pair{"due_ns", &measure::LoopTimes::due_ns},           std::pair{"woken_ns", &measure::LoopTimes::woken_ns},
        std::pair{"published_ns", &measure::LoopTimes::published_ns}, std::pair{"sent_ns", &measure::LoopTimes::sent_ns},
        std::pair{"answered_ns", &measure::LoopTimes::answered_ns}, std::pair{"back_ns", &measure::LoopTimes::back_ns}};
    json record = {{"type", "loops"},
                   {"at_ns", at_ns},
                   {"node", view.node->qualified_name()},
                   {"timer", view.timer->name},
                   {"period_ns", view.timer->period_ns},
                   {"beyond", view.recorder->beyond()},
                   {"loop", chosen}};
    for (const auto& [name, member] : kColumns) {
      json& column = record[name] = json::array();
      for (const std::size_t loop : chosen) {
        const Nanoseconds value = view.recorder->row(loop).*member;
        column.push_back(value == kUnknownTime ? json(nullptr) : json(value));
      }
    }
    file.write(record);
  }
}

}  // namespace perflab::node
