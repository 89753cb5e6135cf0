// The `dds` runtime: executors of our own over a middleware plug-in, in real time.
//
// `inline` runs a callback in the middleware's receive thread as soon as the message is there; its timers
// have a thread of their own. `single_threaded` waits on a wait-set, collects what is ready, runs each ready
// timer and then one message of each ready subscription, and waits again.
//
// Example:
//   const auto plugin = middleware::Plugin::load(file);
//   DdsRuntime runtime(plugin, {.domain = 7}, clock, sink);
#pragma once

#include <atomic>
#include <memory>
#include <string>
#include <vector>

#include "middleware/plugin.h"
#include "runtime/runtime.h"

namespace perflab::runtime {

class DdsRuntime final : public Runtime {
 public:
  // Opens the participant. Throws Error. Clock and sink outlive the runtime.
  DdsRuntime(middleware::Plugin plugin, const middleware::ParticipantSettings& settings,
             const measure::Clock& clock, EventSink& sink);
  ~DdsRuntime() override;

  [[nodiscard]] const measure::Clock& clock() const noexcept override { return clock_; }
  std::size_t add_executor(int process, ExecutorKind kind, const std::string& name) override;
  Publisher& create_publisher(const EndpointSettings& settings) override;
  Subscription& create_subscription(std::size_t executor, const EndpointSettings& settings,
                                    MessageHandler& handler) override;
  void create_timer(std::size_t executor, const TimerSettings& settings, TimerHandler& handler) override;
  void work(Nanoseconds amount) noexcept override;
  void start(Nanoseconds base_ns) override;
  [[nodiscard]] bool timers_done() const noexcept override;
  void stop() noexcept override;
  [[nodiscard]] std::string describe() override;

  class DdsSubscription;
  class DdsPublisher;
  class DdsExecutor;

 private:
  middleware::Plugin plugin_;
  const measure::Clock& clock_;
  EventSink& sink_;
  // Declared before what is made from it: endpoints go first.
  std::unique_ptr<middleware::Participant> participant_;
  std::vector<std::unique_ptr<DdsPublisher>> publishers_;
  std::vector<std::unique_ptr<DdsSubscription>> subscriptions_;
  std::vector<std::unique_ptr<DdsExecutor>> executors_;
};

}  // namespace perflab::runtime
