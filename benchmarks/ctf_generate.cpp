// Writes a user-space trace of a ROS 2 system that never was, in the layout of tracetools on Jazzy, as
// LTTng-UST would:
//
//   ctf_generate DIRECTORY [--events 5000000] [--nodes 16] [--order random|periodic] [--cpus 4] [--seed 1]
//   [--no-procname]
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
#include <cstring>
#include <deque>
#include <filesystem>
#include <fstream>
#include <memory>
#include <random>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr std::size_t kPacketBytes = 1U << 20U;
constexpr std::size_t kPage = 4096;
constexpr std::int64_t kEpochOffsetNs = 1'700'000'000'000'000'000;
constexpr std::int64_t kStartNs = 5'000'000'000;
constexpr std::array<unsigned char, 16> kUuid = {0x2a, 0xd9, 0xa6, 0x52, 0x4e, 0x27, 0x48, 0xba,
                                                 0x83, 0xd5, 0x96, 0xe3, 0x15, 0xb6, 0xca, 0x78};
constexpr const char* kUuidText = "2ad9a652-4e27-48ba-83d5-96e315b6ca78";

enum class Kind : std::uint16_t {
  rcl_init,
  rcl_node_init,
  rmw_publisher_init,
  rcl_publisher_init,
  rclcpp_publish,
  rclcpp_intra_publish,
  rcl_publish,
  rmw_publish,
  rmw_subscription_init,
  rcl_subscription_init,
  rclcpp_subscription_init,
  rclcpp_subscription_callback_added,
  rmw_take,
  rcl_take,
  rclcpp_take,
  rcl_timer_init,
  rclcpp_timer_callback_added,
  rclcpp_timer_link_node,
  rclcpp_callback_register,
  callback_start,
  callback_end,
  rclcpp_executor_get_next_ready,
  rclcpp_executor_wait_for_work,
  rclcpp_executor_execute,
  rclcpp_ipb_to_subscription,
  rclcpp_buffer_to_ipb,
  rclcpp_construct_ring_buffer,
  rclcpp_ring_buffer_enqueue,
  rclcpp_ring_buffer_dequeue,
  count
};

// Types of fields: p pointer, u and i 64 bits, n 32 bits with a sign, s text, g the 24 bytes of a gid.
struct Declared {
  const char* name;
  const char* fields;
};
constexpr std::array<Declared, static_cast<std::size_t>(Kind::count)> kDeclared = {{
    {"rcl_init", "p context_handle s version"},
    {"rcl_node_init", "p node_handle p rmw_handle s node_name s namespace"},
    {"rmw_publisher_init", "p rmw_publisher_handle g gid"},
    {"rcl_publisher_init",
     "p publisher_handle p node_handle p rmw_publisher_handle s topic_name u queue_depth"},
    {"rclcpp_publish", "p message"},
    {"rclcpp_intra_publish", "p publisher_handle p message"},
    {"rcl_publish", "p publisher_handle p message"},
    {"rmw_publish", "p rmw_publisher_handle p message i timestamp"},
    {"rmw_subscription_init", "p rmw_subscription_handle g gid"},
    {"rcl_subscription_init",
     "p subscription_handle p node_handle p rmw_subscription_handle s topic_name u queue_depth"},
    {"rclcpp_subscription_init", "p subscription_handle p subscription"},
    {"rclcpp_subscription_callback_added", "p subscription p callback"},
    {"rmw_take", "p rmw_subscription_handle p message i source_timestamp n taken"},
    {"rcl_take", "p message"},
    {"rclcpp_take", "p message"},
    {"rcl_timer_init", "p timer_handle i period"},
    {"rclcpp_timer_callback_added", "p timer_handle p callback"},
    {"rclcpp_timer_link_node", "p timer_handle p node_handle"},
    {"rclcpp_callback_register", "p callback s symbol"},
    {"callback_start", "p callback n is_intra_process"},
    {"callback_end", "p callback"},
    {"rclcpp_executor_get_next_ready", ""},
    {"rclcpp_executor_wait_for_work", "i timeout"},
    {"rclcpp_executor_execute", "p handle"},
    {"rclcpp_ipb_to_subscription", "p ipb p subscription"},
    {"rclcpp_buffer_to_ipb", "p buffer p ipb"},
    {"rclcpp_construct_ring_buffer", "p buffer u capacity"},
    {"rclcpp_ring_buffer_enqueue", "p buffer u index u size n overwritten"},
    {"rclcpp_ring_buffer_dequeue", "p buffer u index u size"},
}};

std::string declaration(char type, const std::string& name) {
  const auto integer = [&](int size, int is_signed, int base) {
    return "integer { size = " + std::to_string(size) + "; align = 8; signed = " + std::to_string(is_signed) +
           "; encoding = none; base = " + std::to_string(base) + "; } _" + name;
  };
  switch (type) {
    case 'p':
      return integer(64, 0, 16);
    case 'u':
      return integer(64, 0, 10);
    case 'i':
      return integer(64, 1, 10);
    case 'n':
      return integer(32, 1, 10);
    case 'g':
      return integer(8, 0, 10) + "[24]";
    default:
      return "string _" + name;
  }
}

std::string metadata(bool procname) {
  std::string text = R"(/* CTF 1.8 */

typealias integer { size = 8; align = 8; signed = false; } := uint8_t;
typealias integer { size = 16; align = 8; signed = false; } := uint16_t;
typealias integer { size = 32; align = 8; signed = false; } := uint32_t;
typealias integer { size = 64; align = 8; signed = false; } := uint64_t;
typealias integer { size = 64; align = 8; signed = false; } := unsigned long;

trace {
	major = 1;
	minor = 8;
	uuid = ")" + std::string(kUuidText) +
                     R"(";
	byte_order = le;
	packet.header := struct {
		uint32_t magic;
		uint8_t  uuid[16];
		uint32_t stream_id;
		uint64_t stream_instance_id;
	};
};

env {
	domain = "ust";
	tracer_name = "lttng-ust";
	tracer_major = 2;
	tracer_minor = 13;
	tracer_buffering_scheme = "uid";
	tracer_buffering_id = 0;
	architecture_bit_width = 64;
	trace_name = "generated";
	hostname = "generated";
};

clock {
	name = "monotonic";
	uuid = "bd1868cb-35da-4aa9-94f5-95d50e237600";
	description = "Monotonic Clock";
	freq = 1000000000;
	offset = )" + std::to_string(kEpochOffsetNs) +
                     R"(;
};

typealias integer { size = 32; align = 8; signed = false; map = clock.monotonic.value; } := uint32_clock_monotonic_t;
typealias integer { size = 64; align = 8; signed = false; map = clock.monotonic.value; } := uint64_clock_monotonic_t;

struct packet_context {
	uint64_clock_monotonic_t timestamp_begin;
	uint64_clock_monotonic_t timestamp_end;
	uint64_t content_size;
	uint64_t packet_size;
	uint64_t packet_seq_num;
	unsigned long events_discarded;
	uint32_t cpu_id;
};

struct event_header_large {
	enum : uint16_t { compact = 0 ... 65534, extended = 65535 } id;
	variant <id> {
		struct {
			uint32_clock_monotonic_t timestamp;
		} compact;
		struct {
			uint32_t id;
			uint64_clock_monotonic_t timestamp;
		} extended;
	} v;
} align(8);

stream {
	id = 0;
	event.header := struct event_header_large;
	packet.context := struct packet_context;
	event.context := struct {
		integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _vpid;
		integer { size = 32; align = 8; signed = 1; encoding = none; base = 10; } _vtid;
)";
  if (procname) {
    text += "\t\tinteger { size = 8; align = 8; signed = 1; encoding = UTF8; base = 10; } _procname[17];\n";
  }
  text += "\t};\n};\n\n";
  for (std::size_t id = 0; id < kDeclared.size(); ++id) {
    text += "event {\n\tname = \"ros2:" + std::string(kDeclared[id].name) +
            "\";\n\tid = " + std::to_string(id) +
            ";\n\tstream_id = 0;\n\tloglevel = 13;\n\tfields := struct {\n";
    std::string_view rest = kDeclared[id].fields;
    while (!rest.empty()) {
      const auto end = rest.find(' ', 2);
      text += "\t\t" + declaration(rest[0], std::string(rest.substr(2, end == rest.npos ? end : end - 2))) +
              ";\n";
      rest = end == rest.npos ? std::string_view() : rest.substr(end + 1);
    }
    text += "\t};\n};\n\n";
  }
  return text;
}

// The packets of one CPU.
class StreamFile {
 public:
  StreamFile(const std::filesystem::path& path, std::uint32_t cpu) : out_(path, std::ios::binary), cpu_(cpu) {
    if (!out_) throw std::runtime_error(path.string() + ": cannot be written");
    packet_.reserve(kPacketBytes);
  }

  void write(std::int64_t time_ns, const std::string& event) {
    if (!packet_.empty() && packet_.size() + event.size() > kPacketBytes) flush(kPacketBytes);
    if (packet_.empty()) {
      packet_.resize(kHeadBytes);
      begin_ = time_ns;
    }
    packet_ += event;
    end_ = time_ns;
  }

  void finish() {
    if (!packet_.empty()) flush((packet_.size() + kPage - 1) / kPage * kPage);
    out_.close();
    if (!out_) throw std::runtime_error("the trace cannot be written: is the disk full?");
  }

  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

 private:
  static constexpr std::size_t kHeadBytes = 4 + 16 + 4 + 8 + 6 * 8 + 4;

  template <typename T>
  char* put(char* to, T value) {
    std::memcpy(to, &value, sizeof value);
    return to + sizeof value;
  }

  void flush(std::size_t size) {
    const std::uint64_t content_bits = packet_.size() * 8;
    char* to = put(packet_.data(), std::uint32_t{0xC1FC1FC1});
    std::memcpy(to, kUuid.data(), kUuid.size());
    to = put(to + kUuid.size(), std::uint32_t{0});
    to = put(to, std::uint64_t{cpu_});
    to = put(to, begin_);
    to = put(to, end_);
    to = put(to, content_bits);
    to = put(to, std::uint64_t{size} * 8);
    to = put(to, number_++);
    to = put(to, std::uint64_t{0});
    put(to, cpu_);
    packet_.resize(size);
    out_.write(packet_.data(), static_cast<std::streamsize>(size));
    bytes_ += size;
    packet_.clear();
  }

  std::ofstream out_;
  std::uint32_t cpu_;
  std::string packet_;
  std::int64_t begin_ = 0, end_ = 0;
  std::uint64_t number_ = 0, bytes_ = 0;
};

// An event before it has a time. What depends on the time is filled in when it is written: see
// Simulation::emit.
struct Step {
  Kind kind;
  std::string payload;
};

class Payload {
 public:
  Payload& pointer(std::uint64_t value) { return raw(value); }
  Payload& number(std::int64_t value) { return raw(value); }
  Payload& flag(std::int32_t value) { return raw(value); }
  Payload& text(std::string_view value) {
    bytes_.append(value);
    bytes_ += '\0';
    return *this;
  }
  Payload& gid(std::uint64_t value) {
    raw(value);
    bytes_.append(16, '\1');
    return *this;
  }
  [[nodiscard]] const std::string& bytes() const { return bytes_; }

 private:
  template <typename T>
  Payload& raw(T value) {
    bytes_.append(reinterpret_cast<const char*>(&value), sizeof value);
    return *this;
  }
  std::string bytes_;
};

struct Options {
  std::filesystem::path folder;
  std::uint64_t events = 5'000'000;
  std::uint32_t nodes = 16;
  std::uint32_t cpus = 4;
  std::string order = "random";
  std::uint64_t seed = 1;
  bool procname = true;
};

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
};

constexpr std::size_t kDepth = 10;
constexpr std::uint64_t kCapacity = 16;

class Simulation {
 public:
  explicit Simulation(const Options& options) : options_(options), random_(options.seed) {
    std::filesystem::create_directories(options.folder);
    std::ofstream(options.folder / "metadata") << metadata(options.procname);
    for (std::uint32_t cpu = 0; cpu < options.cpus; ++cpu) {
      files_.push_back(std::make_unique<StreamFile>(options.folder / ("ros2_" + std::to_string(cpu)), cpu));
    }
    processes_.resize(options.nodes);
    for (std::uint32_t i = 0; i < options.nodes; ++i) initialise(i);
  }

  void run() {
    for (auto& process : processes_) {
      while (!process.steps.empty() && written_ < options_.events) emit(process);
    }
    const bool random = options_.order == "random";
    for (std::uint64_t turn = 0; written_ < options_.events; ++turn) {
      Process& process = processes_[(random ? below(processes_.size()) : turn % processes_.size())];
      do {
        if (process.steps.empty()) activate(process);
        emit(process);
      } while (!random && !process.steps.empty() && written_ < options_.events);
    }
    for (auto& file : files_) file->finish();
  }

  void report() const {
    std::uint64_t bytes = 0;
    for (const auto& file : files_) bytes += file->bytes();
    std::printf("{\"events\":%llu,\"bytes\":%llu,\"kinds\":{", static_cast<unsigned long long>(written_),
                static_cast<unsigned long long>(bytes));
    const char* separator = "";
    for (std::size_t i = 0; i < counts_.size(); ++i) {
      std::printf("%s\"ros2:%s\":%llu", separator, kDeclared[i].name,
                  static_cast<unsigned long long>(counts_[i]));
      separator = ",";
    }
    std::printf("}}\n");
  }

 private:
  std::uint64_t below(std::uint64_t limit) { return random_() % limit; }

  void initialise(std::uint32_t index) {
    Process& p = processes_[index];
    p.pid = static_cast<std::int32_t>(1000 + 10 * index);
    p.cpu = index % options_.cpus;
    const std::string name = "node_" + std::to_string(index);
    std::memcpy(p.name.data(), name.data(), std::min(name.size(), p.name.size() - 1));
    p.next_handle = 0x5500'0000'0000 + (std::uint64_t{index} << 24U);
    const std::string previous = "/ring_" + std::to_string((index + options_.nodes - 1) % options_.nodes);
    const auto add = [&p](Kind kind, const Payload& payload) { p.steps.push_back({kind, payload.bytes()}); };

    add(Kind::rcl_init, Payload().pointer(p.handle()).text("8.2.2"));
    const auto node = p.handle();
    add(Kind::rcl_node_init, Payload().pointer(node).pointer(p.handle()).text(name).text("/"));
    const auto publish = [&](const std::string& topic, std::uint64_t& publisher, std::uint64_t& rmw) {
      publisher = p.handle();
      rmw = p.handle();
      add(Kind::rmw_publisher_init, Payload().pointer(rmw).gid(rmw));
      add(Kind::rcl_publisher_init,
          Payload().pointer(publisher).pointer(node).pointer(rmw).text(topic).number(kDepth));
    };
    std::uint64_t unused = 0;
    publish("/ring_" + std::to_string(index), p.publisher, p.rmw_publisher);
    publish("/local_" + std::to_string(index), p.local_publisher, unused);

    const auto subscribe = [&](const std::string& topic, const char* symbol, bool intra) {
      const auto handle = p.handle();
      const auto rmw = p.handle();
      add(Kind::rmw_subscription_init, Payload().pointer(rmw).gid(rmw));
      add(Kind::rcl_subscription_init,
          Payload().pointer(handle).pointer(node).pointer(rmw).text(topic).number(kDepth));
      if (intra) {
        p.buffer = p.handle();
        p.local_callback = p.handle();
        const auto ipb = p.handle();
        const auto object = p.handle();
        add(Kind::rclcpp_construct_ring_buffer, Payload().pointer(p.buffer).pointer(kCapacity));
        add(Kind::rclcpp_buffer_to_ipb, Payload().pointer(p.buffer).pointer(ipb));
        add(Kind::rclcpp_ipb_to_subscription, Payload().pointer(ipb).pointer(object));
        add(Kind::rclcpp_subscription_callback_added, Payload().pointer(object).pointer(p.local_callback));
        add(Kind::rclcpp_callback_register, Payload().pointer(p.local_callback).text(symbol));
        add(Kind::rclcpp_subscription_init, Payload().pointer(handle).pointer(object));
      }
      const auto object = p.handle();
      const auto callback = p.handle();
      add(Kind::rclcpp_subscription_init, Payload().pointer(handle).pointer(object));
      add(Kind::rclcpp_subscription_callback_added, Payload().pointer(object).pointer(callback));
      add(Kind::rclcpp_callback_register, Payload().pointer(callback).text(symbol));
      if (!intra) p.subscription = handle, p.rmw_subscription = rmw, p.callback = callback;
    };
    subscribe(previous, "void Ring::on_message(std::shared_ptr<const Message>)", false);
    subscribe("/local_" + std::to_string(index), "void Ring::on_local(std::unique_ptr<Message>)", true);

    p.timer = p.handle();
    p.timer_callback = p.handle();
    add(Kind::rcl_timer_init, Payload().pointer(p.timer).number(1'000'000));
    add(Kind::rclcpp_timer_callback_added, Payload().pointer(p.timer).pointer(p.timer_callback));
    add(Kind::rclcpp_callback_register, Payload().pointer(p.timer_callback).text("void Ring::on_timer()"));
    add(Kind::rclcpp_timer_link_node, Payload().pointer(p.timer).pointer(node));
  }

  // What an executor does next: it waits, and runs one callback of those that are ready.
  void activate(Process& p) {
    const auto add = [&p](Kind kind, const Payload& payload = {}) {
      p.steps.push_back({kind, payload.bytes()});
    };
    add(Kind::rclcpp_executor_get_next_ready);
    if (below(4) != 0) {
      add(Kind::rclcpp_executor_wait_for_work, Payload().number(-1));
      add(Kind::rclcpp_executor_get_next_ready);
    }
    const auto publish = [&] {
      const auto message = 0x7f00'0000'0000 + (below(1U << 20U) << 6U);
      add(Kind::rclcpp_publish, Payload().pointer(message));
      add(Kind::rcl_publish, Payload().pointer(p.publisher).pointer(message));
      add(Kind::rmw_publish, Payload().pointer(p.rmw_publisher).pointer(message));
    };
    if (p.enqueued != p.dequeued && below(3) == 0) {
      const auto place = p.dequeued++ % kCapacity;
      add(Kind::rclcpp_ring_buffer_dequeue,
          Payload().pointer(p.buffer).pointer(place).pointer(p.enqueued - p.dequeued));
      add(Kind::callback_start, Payload().pointer(p.local_callback).flag(1));
      add(Kind::callback_end, Payload().pointer(p.local_callback));
    } else if (!p.inbox.empty() && below(8) != 0) {
      const auto message = 0x7e00'0000'0000 + (below(1U << 20U) << 6U);
      add(Kind::rclcpp_executor_execute, Payload().pointer(p.subscription));
      add(Kind::rmw_take,
          Payload().pointer(p.rmw_subscription).pointer(message).number(p.inbox.front()).flag(1));
      p.inbox.pop_front();
      add(Kind::rcl_take, Payload().pointer(message));
      add(Kind::rclcpp_take, Payload().pointer(message));
      add(Kind::callback_start, Payload().pointer(p.callback).flag(0));
      publish();
      if (below(4) == 0) {
        const auto local = 0x7d00'0000'0000 + (below(1U << 20U) << 6U);
        add(Kind::rclcpp_intra_publish, Payload().pointer(p.local_publisher).pointer(local));
        const bool full = p.enqueued - p.dequeued == kCapacity;
        if (full) ++p.dequeued;
        const auto place = p.enqueued++ % kCapacity;
        add(Kind::rclcpp_ring_buffer_enqueue,
            Payload().pointer(p.buffer).pointer(place).pointer(p.enqueued - p.dequeued).flag(full ? 1 : 0));
      }
      add(Kind::callback_end, Payload().pointer(p.callback));
    } else {
      add(Kind::rclcpp_executor_execute, Payload().pointer(p.timer));
      add(Kind::callback_start, Payload().pointer(p.timer_callback).flag(0));
      if (next_of(p).inbox.size() < 3) publish();  // so that few messages find the inbox full
      add(Kind::callback_end, Payload().pointer(p.timer_callback));
    }
  }

  Process& next_of(const Process& p) {
    const auto index = static_cast<std::size_t>(&p - processes_.data());
    return processes_[(index + 1) % processes_.size()];
  }

  void emit(Process& p) {
    Step& step = p.steps.front();
    now_ns_ += static_cast<std::int64_t>(20 + below(400));
    if (step.kind == Kind::rmw_publish) {
      const std::int64_t stamp = kEpochOffsetNs + now_ns_;
      step.payload.append(reinterpret_cast<const char*>(&stamp), sizeof stamp);
      auto& inbox = next_of(p).inbox;
      if (inbox.size() == kDepth) inbox.pop_front();
      inbox.push_back(stamp);
    }
    event_.clear();
    const auto append = [this](const auto& value) {
      event_.append(reinterpret_cast<const char*>(&value), sizeof value);
    };
    append(static_cast<std::uint16_t>(step.kind));
    append(static_cast<std::uint32_t>(now_ns_));  // times of one stream are never 2^32 ns apart
    append(p.pid);
    append(p.pid);
    if (options_.procname) append(p.name);
    event_ += step.payload;
    files_[p.cpu]->write(now_ns_, event_);
    ++counts_[static_cast<std::size_t>(step.kind)];
    ++written_;
    p.steps.pop_front();
    if (below(2000) == 0) p.cpu = static_cast<std::uint32_t>(below(options_.cpus));
  }

  Options options_;
  std::mt19937_64 random_;
  std::vector<std::unique_ptr<StreamFile>> files_;
  std::vector<Process> processes_;
  std::array<std::uint64_t, kDeclared.size()> counts_{};
  std::uint64_t written_ = 0;
  std::int64_t now_ns_ = kStartNs;
  std::string event_;
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
  CLI11_PARSE(app, argc, argv);
  options.procname = !without;
  try {
    Simulation simulation(options);
    simulation.run();
    simulation.report();
  } catch (const std::exception& error) {
    std::fprintf(stderr, "ctf_generate: %s\n", error.what());
    return 2;
  }
}
