// The `virtual` runtime: a graph as discrete events on a virtual clock. Nothing waits, nothing is concurrent,
// and the same seed gives the same run, so the measurement must reproduce a known delay, loss or service
// time.
//
// Modelled: links (one per writer and reader) with the disturbance of middleware/disturb/disturbance.h;
// reader histories (keep_last drops the oldest); guard conditions of waitables; executors, where each
// callback costs `service` plus the work of the graph; `publish_call` as the duration of publish(). Not
// modelled: the operating system, and therefore resources, scheduling, and how messages pass through memory.
//
// Executors:
//   inline           one server for messages and waitables, in order of arrival, and one for timers
//   single_threaded  one server that collects all ready callbacks and runs them, timers first
//   events           one server that takes readers and waitables in the order in which they became ready, and due
//                    timers in between
//   multi_threaded   one server per requested thread; two callbacks of one group never run at the same time
//   priority         one server that takes the callback with the highest priority (dds/priority_executor.cpp)
//   let              one server that takes all ready callbacks and runs them in order of creation
//                    (dds/let_executor.cpp)
//
// Before the start, creating an endpoint takes 250 us of virtual time; nothing else takes any.
//
// Options: those of middleware/disturb/program.h, and the durations `service` and `publish_call`.
//
// Example:
//   VirtualRuntime runtime({{"delay", "2ms"}, {"loss_every", "10"}}, 1);
#pragma once

#include <atomic>
#include <cstdint>
#include <deque>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "runtime/capabilities.h"
#include "runtime/runtime.h"
#include "runtime/timer.h"

namespace perflab::runtime {

class ServiceActionClient;
class ServiceActionServer;
class ServiceClient;
class ServiceServer;

// Written by the simulation's thread, readable from any.
class VirtualClock final : public measure::Clock {
 public:
  [[nodiscard]] Nanoseconds now() const noexcept override { return now_.load(std::memory_order_relaxed); }
  void set(Nanoseconds now) noexcept { now_.store(now, std::memory_order_relaxed); }

 private:
  std::atomic<Nanoseconds> now_{0};
};

class VirtualRuntime final : public Runtime {
 public:
  static constexpr Capabilities kCapabilities{
      .real_time = false, .several_processes = true, .intra_process = false};

  using Options = std::vector<std::pair<std::string, std::string>>;

  // Throws Error (kBadInput) on an unknown or malformed option. `seed` is used if the options have none.
  VirtualRuntime(const Options& options, std::uint64_t seed);
  ~VirtualRuntime() override;

  [[nodiscard]] const measure::Clock& clock() const noexcept override { return clock_; }
  std::size_t add_executor(const ExecutorSettings& settings) override;
  Publisher& create_publisher(const EndpointSettings& settings) override;
  Subscription& create_subscription(std::size_t executor, const EndpointSettings& settings,
                                    MessageHandler& handler) override;
  Client& create_client(std::size_t executor, const ServiceSettings& settings,
                        MessageHandler& handler) override;
  Server& create_server(std::size_t executor, const ServiceSettings& settings,
                        RequestHandler& handler) override;
  ActionClient& create_action_client(std::size_t executor, const ActionSettings& settings,
                                     ActionClientHandler& handler) override;
  ActionServer& create_action_server(std::size_t executor, const ActionSettings& settings,
                                     ActionServerHandler& handler) override;
  [[nodiscard]] ServiceFraming service_framing() const noexcept override {
    return ServiceFraming::kRmwCyclonedds;
  }
  void create_timer(std::size_t executor, const TimerSettings& settings, TimerHandler& handler) override;
  Waitable& create_waitable(std::size_t executor, const WaitableSettings& settings,
                            WaitableHandler& handler) override;
  void work(Nanoseconds amount) noexcept override { clock_.set(clock_.now() + amount); }
  // Virtual time starts at `base_ns` minus the ticks before it; the simulation runs in a thread of its own.
  void start(Nanoseconds base_ns) override;
  [[nodiscard]] bool timers_done() const noexcept override {
    return finished_.load(std::memory_order_acquire);
  }
  void stop() noexcept override;
  [[nodiscard]] std::string describe() override;

 private:
  struct Programme;
  struct Message;
  struct Link;
  struct Source;
  struct Reader;
  struct Guarded;
  struct Writer;
  struct Lane;
  struct Pool;
  struct Event;
  class EventQueue;

  void connect(Writer& writer, Reader& reader);
  void simulate() noexcept;
  void send(Writer& writer, std::span<const perflab_bytes> parts,
            const perflab_sample_identity& related, std::int64_t source_timestamp_ns) noexcept;
  void offer(Writer& writer, const std::shared_ptr<Message>& message);
  void schedule_arrivals(Link& link, const std::shared_ptr<Message>& offered);
  void release_held(Link& link);
  void arrive(Link& link, std::shared_ptr<Message> message, bool copy);
  void arrive(Guarded& waitable, Nanoseconds due_ns);
  void announce(Source& source);
  void wake(Lane& lane, Nanoseconds at);
  void step(Lane& lane);
  bool collect(Lane& lane);
  void choose_by_priority(Lane& lane);
  void take_all(Lane& lane);
  void step(Pool& pool, Lane& lane);
  void run_next(Pool& pool, Nanoseconds& server);
  std::shared_ptr<Message> make_message(std::span<const perflab_bytes> parts, const perflab_identity& writer);

  VirtualClock clock_;
  std::vector<std::vector<std::uint8_t>>
      free_buffers_;  // declared before everything that holds messages, because these return here
  std::unique_ptr<Programme> programme_;
  std::vector<std::unique_ptr<Lane>> lanes_;
  struct ExecutorLanes {
    std::size_t messages;  // indexes of lanes
    std::size_t timers;
  };
  std::vector<ExecutorLanes> executors_;
  std::vector<std::unique_ptr<ServiceClient>> clients_;
  std::vector<std::unique_ptr<ServiceServer>> servers_;
  std::vector<std::unique_ptr<ServiceActionClient>> action_clients_;
  std::vector<std::unique_ptr<ServiceActionServer>> action_servers_;
  std::vector<std::unique_ptr<Writer>> writers_;
  std::vector<std::unique_ptr<Reader>> readers_;
  std::vector<std::unique_ptr<Guarded>> waitables_;
  std::vector<std::unique_ptr<Link>> links_;
  std::map<std::string, std::vector<Writer*>> writers_by_topic_;
  std::map<std::string, std::vector<Reader*>> readers_by_topic_;
  std::unique_ptr<EventQueue> events_;
  std::uint64_t next_order_ = 0;
  std::atomic<bool> finished_{false};
  std::atomic<bool> stopping_{false};
  std::thread thread_;
};

}  // namespace perflab::runtime
