// A waitable of rclcpp: a guard condition, and a callback that an executor runs when the condition is
// triggered.
//
// As in rclcpp's waitables for delivery within the process, a flag of its own holds the pending work, and the
// guard condition only wakes the executor. So a trigger is not lost if no thread was free for it, and a
// surplus one (the EventsExecutor has an event for each) runs nothing.
#pragma once

#include <rcl/wait.h>

#include "runtime/guard.h"
#include "runtime/rclcpp/distribution.h"
#include "runtime/rclcpp/entities.h"

namespace perflab::runtime::ros {

class RosWaitable final : public Waitable, public RosReceiver {
 public:
  // Throws what rclcpp throws.
  RosWaitable(Shared& shared, const NodeHandle& node, const WaitableSettings& settings,
              WaitableHandler& handler)
      : RosReceiver(shared),
        handler_(handler),
        node_(node.waitables()),
        made_(std::make_shared<Made>(node, settings, handler)) {
    node_->add_waitable(made_, nullptr);
  }

  [[nodiscard]] std::vector<const void*> executables() const override {
    return {static_cast<const rclcpp::Waitable*>(made_.get())};
  }
  ~RosWaitable() override { node_->remove_waitable(made_, nullptr); }

  void trigger(Nanoseconds due_ns) noexcept override {
    try {
      if (!made_->trigger(due_ns)) handler_.on_coalesced(due_ns);
      if (inline_.is_open()) inline_.on_ready(1);
    } catch (const std::exception& error) {
      shared_.sink.on_failure(shared_.clock.now(), error.what());
    }
  }

 private:
  class Made final : public rclcpp::Waitable {
   public:
    Made(const NodeHandle& node, const WaitableSettings& settings, WaitableHandler& handler)
        : handler_(handler), condition_(node.base()->get_context()) {
      const std::string symbol = std::string("perflab::waitable(") + node.base()->get_fully_qualified_name() +
                                 ", " + settings.name + ")";
      PERFLAB_TRACEPOINT(rclcpp_callback_register, static_cast<const void*>(this), symbol.c_str());
    }

    // False if it was triggered already. The guard condition is triggered all the same, as applications do
    // it.
    bool trigger(Nanoseconds due_ns) {
      const bool first = guard_.trigger(due_ns);
      condition_.trigger();
      return first;
    }
    // False if there is nothing to do.
    bool run() noexcept {
      const auto due_ns = guard_.take();
      if (!due_ns) return false;
      run(*due_ns);
      return true;
    }

    std::size_t get_number_of_ready_guard_conditions() override { return 1; }
#ifdef PERFLAB_WAITABLE_BY_REFERENCE
    void add_to_wait_set(rcl_wait_set_t& wait_set) override { add(wait_set); }
    bool is_ready(const rcl_wait_set_t&) override { return guard_.triggered(); }
    void execute(const std::shared_ptr<void>& data) override { run_taken(data); }
#else
    void add_to_wait_set(rcl_wait_set_t* wait_set) override { add(*wait_set); }
    bool is_ready(rcl_wait_set_t*) override { return guard_.triggered(); }
    void execute(std::shared_ptr<void>& data) override { run_taken(data); }
#endif
    // Null where an earlier turn has taken it. What is returned lies in this object: nobody takes again
    // before it has been executed, for callbacks of a group exclude each other.
    std::shared_ptr<void> take_data() override {
      const auto due_ns = guard_.take();
      if (!due_ns) return nullptr;
      taken_ = *due_ns;
      return {std::shared_ptr<void>(), &taken_};
    }
    std::shared_ptr<void> take_data_by_entity_id(std::size_t) override { return take_data(); }
    void set_on_ready_callback(std::function<void(std::size_t, int)> callback) override {
      condition_.set_on_trigger_callback(
          [callback = std::move(callback)](std::size_t count) { callback(count, 0); });
    }
    void clear_on_ready_callback() override { condition_.set_on_trigger_callback(nullptr); }

   private:
    // What an executor saw and did not run wakes it again.
    void add(rcl_wait_set_t& wait_set) {
      if (guard_.triggered()) condition_.trigger();
      if (rcl_wait_set_add_guard_condition(&wait_set, &condition_.get_rcl_guard_condition(), nullptr) !=
          RCL_RET_OK)
        throw Error(Error::Kind::kFailed,
                    "rclcpp: rcl takes no guard condition of a waitable into its wait set");
    }
    void run_taken(const std::shared_ptr<void>& data) noexcept {
      if (data) run(*static_cast<const Nanoseconds*>(data.get()));
    }
    void run(Nanoseconds due_ns) noexcept {
      PERFLAB_TRACEPOINT(callback_start, static_cast<const void*>(this), false);
      handler_.on_triggered(due_ns);
      PERFLAB_TRACEPOINT(callback_end, static_cast<const void*>(this));
    }

    WaitableHandler& handler_;
    rclcpp::GuardCondition condition_;
    Guard guard_;
    Nanoseconds taken_ = kUnknownTime;
  };

  bool take() override { return made_->run(); }

  WaitableHandler& handler_;
  const rclcpp::node_interfaces::NodeWaitablesInterface::SharedPtr node_;
  const std::shared_ptr<Made> made_;
};

}  // namespace perflab::runtime::ros
