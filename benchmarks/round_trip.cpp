// A round trip over a middleware plug-in: `ping` sends at a fixed rate and prints half of the round trip, `pong`
// sends every message back, `both` is the two in one process. Everything on the way is perflab's own path:
// executor, decoding, recording; `pong` is a graph with a relay.
//
//   round_trip ping|pong|both --library FILE --domain N --executor inline|single_threaded [--rate HZ]
//              [--size BYTES] [--seconds S]
//
// `ping` first prints the identity of its writer, which `pong` wants as the first line of its input. All end at
// the end of their input; those that send also after --seconds.
#include <poll.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cstdio>
#include <iostream>
#include <optional>
#include <thread>

#include "graph/live.h"
#include "measure/recorders.h"
#include "message/format.h"
#include "middleware/host/plugin.h"
#include "runtime/dds/dds_runtime.h"

namespace {

using namespace perflab;

struct Settings {
  std::string role;
  std::string library;
  std::uint32_t domain = 0;
  std::string executor = "inline";
  double rate_hz = 1000.0;
  std::uint32_t size_bytes = 1000;
  double seconds = 3.0;
};

class QuietSink final : public runtime::EventSink {
 public:
  void on_event(const perflab_event&) noexcept override {}
  void on_write_failed(Nanoseconds, const char* text) noexcept override {
    std::fprintf(stderr, "round_trip: %s\n", text);
  }
  void on_failure(Nanoseconds, const char* text) noexcept override {
    std::fprintf(stderr, "round_trip: %s\n", text);
  }
};

// As ddsperf's ping and pong: reliable, keep-last 1.
perflab_qos ping_qos() {
  perflab_qos qos = middleware::default_qos();
  qos.depth = 1;
  return qos;
}

runtime::ExecutorKind executor_kind(const std::string& name) {
  if (name == "inline") return runtime::ExecutorKind::kInline;
  return name == "events" ? runtime::ExecutorKind::kEvents : runtime::ExecutorKind::kSingleThreaded;
}

constexpr const char* kType = "stamped_vector";

const message::Format& vector_format() {
  static message::Formats formats;
  return *formats.find(kType);
}

runtime::EndpointSettings endpoint(const std::string& topic) {
  return {.topic = topic, .ros_type = vector_format().type->name, .qos = ping_qos()};
}

class Ping final : public runtime::TimerHandler, public runtime::MessageHandler {
 public:
  explicit Ping(const Settings& settings, const measure::Clock& clock)
      : clock_(clock),
        memory_(1, 0),
        recorder_(memory_, events_, 0, {}, settings.rate_hz),
        message_(message::encode_filled(format_, settings.size_bytes)),
        size_bytes_(settings.size_bytes) {}

  void connect(runtime::Publisher& publisher) { publisher_ = &publisher; }

  void on_tick(Nanoseconds) noexcept override {
    const Nanoseconds now = clock_.now();
    // Intended is published: what comes back as `response` is then the round trip.
    format_.write_stamp({now, now, sequence_++, size_bytes_, 0.0F}, false, message_.bytes.data() + message_.stamp_at);
    const std::span<const std::uint8_t> bytes(message_.bytes);
    const std::size_t stamp_end = message_.stamp_at + format_.stamp_bytes;
    publisher_->publish({{}, bytes.first(stamp_end), bytes.subspan(stamp_end)});
  }
  void on_skipped(Nanoseconds, std::uint64_t) noexcept override {}

  void on_message(const runtime::Delivery& delivery) noexcept override {
    const Nanoseconds callback_ns = clock_.now();
    message::Header header;
    if (!format_.read_stamp(delivery.bytes, header)) return;
    recorder_.record_callback({header.intended_ns, header.published_ns, header.sequence}, callback_ns,
                              kUnknownTime);
  }

  void print() const {
    const measure::Histogram& round_trip = recorder_.response();
    const auto half_us = [&round_trip](double quantile) {
      return static_cast<double>(round_trip.value_at_quantile(quantile).value_or(-1)) / 2e3;
    };
    std::printf(
        "{\"half_rtt_us\": {\"p50\": %.3f, \"p90\": %.3f, \"p99\": %.3f}, \"sent\": %llu, \"received\": "
        "%llu}\n",
        half_us(0.5), half_us(0.9), half_us(0.99), static_cast<unsigned long long>(sequence_),
        static_cast<unsigned long long>(round_trip.count()));
  }

 private:
  const measure::Clock& clock_;
  measure::MessageEventQueue events_;
  measure::RecorderMemory memory_;
  measure::EdgeRecorder recorder_;
  const message::Format& format_ = vector_format();
  message::Encoded message_;
  std::uint32_t size_bytes_;
  runtime::Publisher* publisher_ = nullptr;
  std::uint64_t sequence_ = 0;
};

bool input_ended(Nanoseconds wait_ns) {
  pollfd input{STDIN_FILENO, POLLIN, 0};
  const int ready = poll(&input, 1, static_cast<int>(wait_ns / 1'000'000));
  char byte = 0;
  return ready > 0 && read(STDIN_FILENO, &byte, 1) == 0;
}

graph::Publisher publisher(const std::string& topic, const Settings& settings, double frequency_hz) {
  return {.topic = topic,
          .type = kType,
          .length = settings.size_bytes,
          .size_bytes = settings.size_bytes,
          .frequency_hz = frequency_hz,
          .qos = ping_qos()};
}

graph::Graph pong_graph(const Settings& settings) {
  graph::Graph graph;
  graph.name = "round_trip";
  graph::Node node;
  node.name = "pong";
  node.node_namespace = "/";
  node.subscriptions.push_back({.topic = "/ping", .type = kType, .qos = ping_qos(), .filter = {}});
  node.publishers.push_back(publisher("/pong", settings, 0.0));
  node.reactions.push_back({graph::ReactionKind::kRelay, {0}, {0}, 0, 0});
  graph::Node ping;  // not of this graph's process
  ping.name = "ping";
  ping.node_namespace = "/";
  ping.publishers.push_back(publisher("/ping", settings, settings.rate_hz));
  ping.subscriptions.push_back({.topic = "/pong", .type = kType, .qos = ping_qos(), .filter = {}});
  graph.processes.push_back({.name = "pong", .executors = {{}}, .nodes = {node}});
  graph.processes.push_back({.name = "ping", .executors = {{}}, .nodes = {ping}});
  return graph;
}

// The side that sends the messages back.
class Pong {
 public:
  Pong(const Settings& settings, runtime::DdsRuntime& runtime)
      : graph_(pong_graph(settings)), live_(graph_, 0, runtime, events_, live_settings(settings)) {}

  void start(const std::string& identity, Nanoseconds now) {
    live_.set_writers(
        std::vector<graph::WriterName>{{"/ping", "/ping", middleware::identity_from_hex(identity).value()}});
    live_.start(now);
  }

 private:
  static graph::LiveSettings live_settings(const Settings& settings) {
    graph::LiveSettings live;
    live.duration_ns = kNanosecondsPerSecond;
    live.executor = executor_kind(settings.executor);
    return live;
  }

  graph::Graph graph_;
  measure::MessageEventQueue events_;
  graph::LiveGraph live_;
};

int run_ping(const Settings& settings, runtime::DdsRuntime& runtime) {
  Ping ping(settings, runtime.clock());
  std::optional<Pong> pong;
  if (settings.role == "both") pong.emplace(settings, runtime);
  const std::size_t executor =
      runtime.add_executor({.kind = executor_kind(settings.executor), .name = "ping"});
  runtime::Publisher& publisher = runtime.create_publisher(endpoint("/ping"));
  ping.connect(publisher);
  const std::string identity = middleware::to_hex(publisher.identity());
  std::printf("%s\n", identity.c_str());
  std::fflush(stdout);
  runtime::Subscription& subscription = runtime.create_subscription(executor, endpoint("/pong"), ping);
  const auto period = static_cast<Nanoseconds>(1e9 / settings.rate_hz);
  // As ddsperf: pings are sent by a thread of their own, so the one that waits for pongs waits without a timeout.
  const std::size_t sender =
      runtime.add_executor({.kind = executor_kind(settings.executor), .name = "sender"});
  // Likewise: a ping that was missed is not made up for, since a burst would overwrite a history of one.
  runtime.create_timer(sender,
                       {.name = "ping",
                        .period_ns = period,
                        .until_ns = static_cast<std::int64_t>(settings.seconds * settings.rate_hz) * period,
                        .skip_missed = true},
                       ping);
  while (publisher.matched() == 0 || subscription.matched() == 0) {
    if (input_ended(10'000'000)) return 1;
  }
  // The other side may match a little later.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  if (pong) {
    pong->start(identity, runtime.clock().now());
  } else {
    runtime.start(runtime.clock().now());
  }
  while (!runtime.timers_done() && !input_ended(20'000'000)) {
  }
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  runtime.stop();
  ping.print();
  return 0;
}

int run_pong(const Settings& settings, runtime::DdsRuntime& runtime) {
  Pong pong(settings, runtime);
  std::string identity;
  std::getline(std::cin, identity);
  pong.start(identity, runtime.clock().now());
  while (!input_ended(50'000'000)) {
  }
  runtime.stop();
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  CLI::App app("One end of a round trip");
  Settings settings;
  app.add_option("role", settings.role)->required()->check(CLI::IsMember({"ping", "pong", "both"}));
  app.add_option("--library", settings.library)->required();
  app.add_option("--domain", settings.domain)->required();
  app.add_option("--executor", settings.executor)
      ->check(CLI::IsMember({"inline", "single_threaded", "events"}));
  app.add_option("--rate", settings.rate_hz);
  app.add_option("--size", settings.size_bytes);
  app.add_option("--seconds", settings.seconds);
  CLI11_PARSE(app, argc, argv);
  try {
    const measure::MonotonicClock clock;
    QuietSink sink;
    runtime::DdsRuntime runtime(middleware::Plugin::load(settings.library),
                                {.domain = settings.domain, .network = "lo", .participants_expected = settings.role == "both" ? 1U : 2U}, {},
                                clock, sink);
    return settings.role == "pong" ? run_pong(settings, runtime) : run_ping(settings, runtime);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "round_trip: %s\n", error.what());
    return 1;
  }
}
