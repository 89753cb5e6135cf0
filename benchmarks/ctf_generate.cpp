// Writes a user-space trace of a ROS 2 system that never was, with the events of tracetools on Jazzy and
// LTTng's event headers:
//
//   ctf_generate DIRECTORY [--events 5000000] [--nodes 16] [--order random|periodic] [--cpus 4] [--seed 1]
//   [--no-procname] [--no-intra-process]
//
// A ring of processes, each with a node: a subscription of the previous one's topic, whose callback publishes
// to the next; a timer that brings messages into the ring; and a topic that stays in the process. Whatever a
// reader concludes from it holds together: handles, source timestamps, indices of ring buffers, time per
// thread, phases of executors. `random`: at every event another thread may go on. `periodic`: one thread
// after the other, each with a whole activation. The same seed gives the same bytes. Prints one JSON object:
// events, bytes, events per kind.
#include <CLI/CLI.hpp>
#include <array>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <numeric>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <type_traits>
#include <vector>

#include "tracing/ctf_writer.h"

namespace {

using perflab::tracing::CtfBytes;
using perflab::tracing::CtfUuid;
using perflab::tracing::CtfWriter;

constexpr std::int64_t kEpochOffsetNs = 1'700'000'000'000'000'000;
constexpr std::int64_t kStartNs = 5'000'000'000;
constexpr CtfUuid kUuid = {0x2a, 0xd9, 0xa6, 0x52, 0x4e, 0x27, 0x48, 0xba,
                           0x83, 0xd5, 0x96, 0xe3, 0x15, 0xb6, 0xca, 0x78};

// Events of the provider ros2 and their fields in TSDL; ids are places in this table.
struct Declared {
  const char* name;
  const char* fields;
};
constexpr std::array kEvents = std::to_array<Declared>({
    {"rcl_init", "ptr _context_handle; string _version;"},
    {"rcl_node_init", "ptr _node_handle; ptr _rmw_handle; string _node_name; string _namespace;"},
    {"rmw_publisher_init", "ptr _rmw_publisher_handle; uint8_t _gid[24];"},
    {"rcl_publisher_init",
     "ptr _publisher_handle; ptr _node_handle; ptr _rmw_publisher_handle; string _topic_name; uint64_t "
     "_queue_depth;"},
    {"rclcpp_publish", "ptr _message;"},
    {"rclcpp_intra_publish", "ptr _publisher_handle; ptr _message;"},
    {"rcl_publish", "ptr _publisher_handle; ptr _message;"},
    {"rmw_publish", "ptr _rmw_publisher_handle; ptr _message; int64_t _timestamp;"},
    {"rmw_subscription_init", "ptr _rmw_subscription_handle; uint8_t _gid[24];"},
    {"rcl_subscription_init",
     "ptr _subscription_handle; ptr _node_handle; ptr _rmw_subscription_handle; string _topic_name; "
     "uint64_t _queue_depth;"},
    {"rclcpp_subscription_init", "ptr _subscription_handle; ptr _subscription;"},
    {"rclcpp_subscription_callback_added", "ptr _subscription; ptr _callback;"},
    {"rmw_take", "ptr _rmw_subscription_handle; ptr _message; int64_t _source_timestamp; int32_t _taken;"},
    {"rcl_take", "ptr _message;"},
    {"rclcpp_take", "ptr _message;"},
    {"rcl_timer_init", "ptr _timer_handle; int64_t _period;"},
    {"rclcpp_timer_callback_added", "ptr _timer_handle; ptr _callback;"},
    {"rclcpp_timer_link_node", "ptr _timer_handle; ptr _node_handle;"},
    {"rclcpp_callback_register", "ptr _callback; string _symbol;"},
    {"callback_start", "ptr _callback; int32_t _is_intra_process;"},
    {"callback_end", "ptr _callback;"},
    {"rclcpp_executor_get_next_ready", ""},
    {"rclcpp_executor_wait_for_work", "int64_t _timeout;"},
    {"rclcpp_executor_execute", "ptr _handle;"},
    {"rclcpp_ipb_to_subscription", "ptr _ipb; ptr _subscription;"},
    {"rclcpp_buffer_to_ipb", "ptr _buffer; ptr _ipb;"},
    {"rclcpp_construct_ring_buffer", "ptr _buffer; uint64_t _capacity;"},
    {"rclcpp_ring_buffer_enqueue", "ptr _buffer; uint64_t _index; uint64_t _size; int32_t _overwritten;"},
    {"rclcpp_ring_buffer_dequeue", "ptr _buffer; uint64_t _index; uint64_t _size;"},
});

// An event by its name. One that is not in the table does not compile.
struct Kind {
  std::uint16_t id = 0;
  consteval Kind(std::string_view name) {  // NOLINT(google-explicit-constructor)
    while (kEvents.at(id).name != name) ++id;
  }
  consteval Kind(const char* name) : Kind(std::string_view(name)) {}
  bool operator==(const Kind&) const = default;
};

std::string metadata(bool procname) {
  std::string text = perflab::tracing::ctf_preamble(
      kUuid,
      "\tdomain = \"ust\";\n\ttracer_name = \"lttng-ust\";\n\ttracer_major = 2;\n\ttracer_minor = 13;\n"
      "\ttrace_name = \"generated\";\n\thostname = \"generated\";\n",
      "bd1868cb-35da-4aa9-94f5-95d50e237600", kEpochOffsetNs,
      std::string("\tevent.context := struct {\n\t\tint32_t _vpid;\n\t\tint32_t _vtid;\n") +
          (procname ? "\t\tinteger { size = 8; align = 8; signed = true; encoding = UTF8; } _procname[17];\n"
                    : "") +
          "\t};\n");
  text += "typealias integer { size = 64; align = 8; signed = false; base = 16; } := ptr;\n";
  for (std::size_t id = 0; id < kEvents.size(); ++id) {
    text += std::string("event { name = \"ros2:") + kEvents[id].name + "\"; id = " + std::to_string(id) +
            "; stream_id = 0; loglevel = 13; fields := struct { " + kEvents[id].fields + " }; };\n";
  }
  return text;
}

struct Options {
  std::string folder;
  std::uint64_t events = 5'000'000;
  std::uint32_t nodes = 16;
  std::uint32_t cpus = 4;
  std::string order = "random";
  std::uint64_t seed = 1;
  bool procname = true;
  bool intra_process = true;
};

// An event before it has a time. What depends on the time is filled in when it is written: see
// Simulation::emit.
struct Step {
  Kind kind;
  std::vector<std::byte> payload;
};

constexpr std::uint64_t kDepth = 10;
constexpr std::uint64_t kCapacity = 16;

// A process with one thread, one node, one executor.
struct Process {
  std::int32_t pid = 0;
  std::uint32_t cpu = 0;
  std::array<char, 17> name{};
  std::uint64_t next_handle = 0;
  std::uint64_t publisher = 0, rmw_publisher = 0, local_publisher = 0;
  std::uint64_t subscription = 0, rmw_subscription = 0, callback = 0;
  std::uint64_t timer = 0, timer_callback = 0;
  std::uint64_t buffer = 0, local_callback = 0;
  std::uint64_t enqueued = 0, dequeued = 0;
  std::deque<std::int64_t> inbox;  // source timestamps of messages that wait to be taken
  std::deque<Step> steps;          // what it does next

  std::uint64_t handle() { return next_handle += 0x40; }

  // The fields are written with the sizes that their C++ types have.
  template <typename... Fields>
  void add(Kind kind, const Fields&... fields) {
    CtfBytes bytes(steps.emplace_back(Step{kind, {}}).payload);
    [[maybe_unused]] const auto put = [&bytes](const auto& field) {
      if constexpr (std::is_convertible_v<decltype(field), std::string_view>) {
        bytes.put_text(field);
      } else {
        bytes.put(field);
      }
    };
    (put(fields), ...);
  }
};

class Simulation {
 public:
  explicit Simulation(const Options& options)
      : options_(options),
        random_(options.seed),
        writer_({.folder = options.folder,
                 .metadata = metadata(options.procname),
                 .uuid = kUuid,
                 .cpus = up_to(options.cpus),
                 .packet_bytes = 1U << 20U}),
        processes_(options.nodes) {
    for (std::uint32_t i = 0; i < options.nodes; ++i) initialise(i);
  }

  void run() {
    for (auto& process : processes_) {
      while (!process.steps.empty() && writer_.events() < options_.events) emit(process);
    }
    const bool random = options_.order == "random";
    for (std::uint64_t turn = 0; writer_.events() < options_.events; ++turn) {
      Process& process = processes_[(random ? below(processes_.size()) : turn % processes_.size())];
      do {
        if (process.steps.empty()) activate(process);
        emit(process);
      } while (!random && !process.steps.empty() && writer_.events() < options_.events);
    }
    writer_.finish(now_ns_);
  }

  void report() const {
    std::printf("{\"events\":%llu,\"bytes\":%llu,\"kinds\":{",
                static_cast<unsigned long long>(writer_.events()),
                static_cast<unsigned long long>(writer_.bytes()));
    const char* separator = "";
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      std::printf("%s\"ros2:%s\":%llu", separator, kEvents[i].name,
                  static_cast<unsigned long long>(counts_[i]));
      separator = ",";
    }
    std::printf("}}\n");
  }

 private:
  static std::vector<unsigned> up_to(std::uint32_t cpus) {
    std::vector<unsigned> numbers(cpus);
    std::iota(numbers.begin(), numbers.end(), 0U);
    return numbers;
  }

  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  void initialise(std::uint32_t index) {
    Process& p = processes_[index];
    p.pid = static_cast<std::int32_t>(1000 + 10 * index);
    p.cpu = index % options_.cpus;
    const std::string name = "node_" + std::to_string(index);
    name.copy(p.name.data(), p.name.size() - 1);
    p.next_handle = 0x5500'0000'0000 + (std::uint64_t{index} << 24U);
    const std::string previous = "/ring_" + std::to_string((index + options_.nodes - 1) % options_.nodes);
    const std::string local = "/local_" + std::to_string(index);
    const auto gid = [](std::uint64_t handle) {
      constexpr std::uint64_t kOnes = 0x0101'0101'0101'0101;
      return std::array{handle, kOnes, kOnes};
    };

    p.add("rcl_init", p.handle(), "8.2.2");
    const auto node = p.handle();
    p.add("rcl_node_init", node, p.handle(), name, "/");
    const auto publish = [&](const std::string& topic, std::uint64_t& publisher, std::uint64_t& rmw) {
      publisher = p.handle();
      rmw = p.handle();
      p.add("rmw_publisher_init", rmw, gid(rmw));
      p.add("rcl_publisher_init", publisher, node, rmw, topic, kDepth);
    };
    std::uint64_t unused = 0;
    publish("/ring_" + std::to_string(index), p.publisher, p.rmw_publisher);
    publish(local, p.local_publisher, unused);

    const auto subscribe = [&](const std::string& topic, const char* symbol, bool intra) {
      const auto handle = p.handle();
      const auto rmw = p.handle();
      p.add("rmw_subscription_init", rmw, gid(rmw));
      p.add("rcl_subscription_init", handle, node, rmw, topic, kDepth);
      if (intra && options_.intra_process) {
        p.buffer = p.handle();
        p.local_callback = p.handle();
        const auto ipb = p.handle();
        const auto object = p.handle();
        p.add("rclcpp_construct_ring_buffer", p.buffer, kCapacity);
        p.add("rclcpp_buffer_to_ipb", p.buffer, ipb);
        p.add("rclcpp_ipb_to_subscription", ipb, object);
        p.add("rclcpp_subscription_callback_added", object, p.local_callback);
        p.add("rclcpp_callback_register", p.local_callback, symbol);
        p.add("rclcpp_subscription_init", handle, object);
      }
      const auto object = p.handle();
      const auto callback = p.handle();
      p.add("rclcpp_subscription_init", handle, object);
      p.add("rclcpp_subscription_callback_added", object, callback);
      p.add("rclcpp_callback_register", callback, symbol);
      if (!intra) p.subscription = handle, p.rmw_subscription = rmw, p.callback = callback;
    };
    subscribe(previous, "void Ring::on_message(std::shared_ptr<const Message>)", false);
    subscribe(local, "void Ring::on_local(std::unique_ptr<Message>)", true);

    p.timer = p.handle();
    p.timer_callback = p.handle();
    p.add("rcl_timer_init", p.timer, std::int64_t{1'000'000});
    p.add("rclcpp_timer_callback_added", p.timer, p.timer_callback);
    p.add("rclcpp_callback_register", p.timer_callback, "void Ring::on_timer()");
    p.add("rclcpp_timer_link_node", p.timer, node);
  }

  // What an executor does next: it waits, and runs one callback of those that are ready.
  void activate(Process& p) {
    p.add("rclcpp_executor_get_next_ready");
    if (below(4) != 0) {
      p.add("rclcpp_executor_wait_for_work", std::int64_t{-1});
      p.add("rclcpp_executor_get_next_ready");
    }
    const auto new_message = [this](std::uint64_t heap) { return heap + (below(1U << 20U) << 6U); };
    const auto publish = [&] {
      const auto message = new_message(0x7f00'0000'0000);
      p.add("rclcpp_publish", message);
      p.add("rcl_publish", p.publisher, message);
      p.add("rmw_publish", p.rmw_publisher, message);
    };
    if (p.enqueued != p.dequeued && below(3) == 0) {
      const std::uint64_t place = p.dequeued++ % kCapacity;
      p.add("rclcpp_ring_buffer_dequeue", p.buffer, place, p.enqueued - p.dequeued);
      p.add("callback_start", p.local_callback, 1);
      p.add("callback_end", p.local_callback);
    } else if (!p.inbox.empty() && below(8) != 0) {
      const auto message = new_message(0x7e00'0000'0000);
      p.add("rclcpp_executor_execute", p.subscription);
      p.add("rmw_take", p.rmw_subscription, message, p.inbox.front(), 1);
      p.inbox.pop_front();
      p.add("rcl_take", message);
      p.add("rclcpp_take", message);
      p.add("callback_start", p.callback, 0);
      publish();
      if (options_.intra_process && below(4) == 0) {
        p.add("rclcpp_intra_publish", p.local_publisher, new_message(0x7d00'0000'0000));
        const bool full = p.enqueued - p.dequeued == kCapacity;
        if (full) ++p.dequeued;
        const std::uint64_t place = p.enqueued++ % kCapacity;
        p.add("rclcpp_ring_buffer_enqueue", p.buffer, place, p.enqueued - p.dequeued, full ? 1 : 0);
      }
      p.add("callback_end", p.callback);
    } else {
      p.add("rclcpp_executor_execute", p.timer);
      p.add("callback_start", p.timer_callback, 0);
      if (next_of(p).inbox.size() < 3) publish();  // so that few messages find the inbox full
      p.add("callback_end", p.timer_callback);
    }
  }

  Process& next_of(const Process& p) {
    const auto index = static_cast<std::size_t>(&p - processes_.data());
    return processes_[(index + 1) % processes_.size()];
  }

  void emit(Process& p) {
    Step& step = p.steps.front();
    now_ns_ += static_cast<std::int64_t>(20 + below(400));
    if (step.kind == Kind("rmw_publish")) {
      const std::int64_t stamp = kEpochOffsetNs + now_ns_;
      CtfBytes(step.payload).put(stamp);
      auto& inbox = next_of(p).inbox;
      if (inbox.size() == kDepth) inbox.pop_front();
      inbox.push_back(stamp);
    }
    writer_.event(p.cpu, step.kind.id, now_ns_, [&](CtfBytes& bytes) {
      bytes.put(p.pid);
      bytes.put(p.pid);
      if (options_.procname) bytes.put(p.name);
      bytes.put_bytes(step.payload.data(), step.payload.size());
    });
    ++counts_[step.kind.id];
    p.steps.pop_front();
    if (below(2000) == 0) p.cpu = static_cast<std::uint32_t>(below(options_.cpus));
  }

  Options options_;
  std::mt19937_64 random_;
  CtfWriter writer_;
  std::vector<Process> processes_;
  std::array<std::uint64_t, kEvents.size()> counts_{};
  std::int64_t now_ns_ = kStartNs;
};

}  // namespace

int main(int argc, char** argv) {
  Options options;
  CLI::App app("Writes a trace of a ring of ROS 2 nodes");
  app.add_option("directory", options.folder, "where to; it is created")->required();
  app.add_option("--events", options.events)->check(CLI::PositiveNumber);
  app.add_option("--nodes", options.nodes)->check(CLI::Range(2, 1000));
  app.add_option("--cpus", options.cpus)->check(CLI::Range(1, 1000));
  app.add_option("--order", options.order)->check(CLI::IsMember({"random", "periodic"}));
  app.add_option("--seed", options.seed);
  bool without = false;
  app.add_flag("--no-procname", without, "leave out the context of that name");
  bool between = false;
  app.add_flag("--no-intra-process", between, "nothing is sent within a process");
  CLI11_PARSE(app, argc, argv);
  options.procname = !without;
  options.intra_process = !between;
  try {
    Simulation simulation(options);
    simulation.run();
    simulation.report();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ctf_generate: %s\n", error.what());
    return 2;
  }
}
