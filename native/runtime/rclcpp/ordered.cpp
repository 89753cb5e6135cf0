#include "runtime/rclcpp/ordered.h"

#ifdef PERFLAB_HAS_WAIT_RESULT

#include <algorithm>
#include <chrono>
#include <functional>
#include <utility>

namespace perflab::runtime::ros {

void OrderedExecutor::spin() {
  if (spinning.exchange(true)) throw std::runtime_error("spin() called while already spinning");
  struct Ended {
    OrderedExecutor& executor;
    ~Ended() {
      executor.ready_.clear();
      executor.wait_result_.reset();
      executor.spinning.store(false);
    }
  } const ended{*this};
  wait_result_.reset();
  entities_need_rebuild_ = true;
  while (rclcpp::ok(context_) && spinning.load()) turn();
}

template <typename Found, typename Executable>
void OrderedExecutor::add(const Found& all, const void* key,
                          std::shared_ptr<Executable> rclcpp::AnyExecutable::* member,
                          std::shared_ptr<Executable> executable) {
  const auto found = all.find(static_cast<typename Found::key_type>(key));
  if (found == all.end()) return;
  Ready ready;
  ready.what.callback_group = found->second.callback_group.lock();
  if (!ready.what.callback_group) return;  // rclcpp's own notification, already executed
  Place& place = places_.try_emplace(static_cast<const void*>(executable.get())).first->second;
  if (place.ready_since == 0 || place.seen + 1 != waits_) place.ready_since = waits_;
  place.seen = waits_;
  ready.place = &place;
  ready.what.*member = std::move(executable);
  ready_.push_back(std::move(ready));
}

std::vector<OrderedExecutor::Ready>& OrderedExecutor::wait(std::chrono::nanoseconds timeout) {
  ready_.clear();
  wait_for_work(timeout);
  PERFLAB_TRACEPOINT(rclcpp_executor_get_next_ready);
  ++waits_;
  if (!spinning.load() || !wait_result_ || wait_result_->kind() != rclcpp::WaitResultKind::Ready) return ready_;
  using What = rclcpp::AnyExecutable;
  for (std::size_t index = 0;; ++index) {
    const auto [timer, at] = wait_result_->peek_next_ready_timer(index);
    if (!timer) break;
    index = at;
    add(current_collection_.timers, timer->get_timer_handle().get(), &What::timer, timer);
  }
  while (auto subscription = wait_result_->next_ready_subscription())
    add(current_collection_.subscriptions, subscription->get_subscription_handle().get(), &What::subscription,
        subscription);
  while (auto service = wait_result_->next_ready_service())
    add(current_collection_.services, service->get_service_handle().get(), &What::service, service);
  while (auto client = wait_result_->next_ready_client())
    add(current_collection_.clients, client->get_client_handle().get(), &What::client, client);
  while (auto waitable = wait_result_->next_ready_waitable())
    add(current_collection_.waitables, waitable.get(), &What::waitable, waitable);
  return ready_;
}

bool OrderedExecutor::take_data(rclcpp::AnyExecutable& what) {
  if (what.timer) {
    what.data = what.timer->call();
    return what.data != nullptr;  // null: cancelled
  }
  if (what.waitable) what.data = what.waitable->take_data();
  return true;
}

void PriorityExecutor::turn() {
  std::vector<Ready>& ready = wait(std::chrono::nanoseconds(-1));
  if (ready.empty()) return;
  const auto goes_first = [](const Ready& a, const Ready& b) {
    if (a.place->priority != b.place->priority) return a.place->priority > b.place->priority;
    return std::pair(a.place->ready_since, a.place->rank) < std::pair(b.place->ready_since, b.place->rank);
  };
  Ready next = *std::ranges::min_element(ready, goes_first);
  next.place->ready_since = 0;
  if (take_data(next.what)) execute_any_executable(next.what);
}

namespace {

// A message taken for a callback that has not run yet: rclcpp's executor in two steps.
class Taken {
 public:
  explicit Taken(rclcpp::AnyExecutable what) : what_(std::move(what)) {}

  // False if there was nothing.
  bool take_message() {
    if (what_.subscription) return take_from(*what_.subscription);
    if (what_.service) {
      header_ = what_.service->create_request_header();
      message_ = what_.service->create_request();
      return what_.service->take_type_erased_request(message_.get(), *header_);
    }
    if (what_.client) {
      header_ = what_.client->create_request_header();
      message_ = what_.client->create_response();
      return what_.client->take_type_erased_response(message_.get(), *header_);
    }
    return true;
  }

  void run() {
    if (what_.timer) {
      PERFLAB_TRACEPOINT(rclcpp_executor_execute, static_cast<const void*>(what_.timer->get_timer_handle().get()));
      what_.timer->execute_callback(what_.data);
    } else if (what_.subscription) {
      PERFLAB_TRACEPOINT(rclcpp_executor_execute,
                         static_cast<const void*>(what_.subscription->get_subscription_handle().get()));
      handle(*what_.subscription);
    } else if (what_.service) {
      what_.service->handle_request(header_, message_);
    } else if (what_.client) {
      what_.client->handle_response(header_, message_);
    } else {
      what_.waitable->execute(std::as_const(what_.data));
    }
  }

 private:
  bool take_from(rclcpp::SubscriptionBase& from) {
    info_.get_rmw_message_info().from_intra_process = false;
    if (from.get_delivered_message_kind() == rclcpp::DeliveredMessageKind::SERIALIZED_MESSAGE) {
      serialized_ = from.create_serialized_message();
      return from.take_serialized(*serialized_, info_);
    }
    if (!from.can_loan_messages()) {
      message_ = from.create_message();
      return from.take_type_erased(message_.get(), info_);
    }
    const rcl_ret_t taken = rcl_take_loaned_message(from.get_subscription_handle().get(), &loaned_,
                                                    &info_.get_rmw_message_info(), nullptr);
    if (taken == RCL_RET_SUBSCRIPTION_TAKE_FAILED) return false;
    if (taken != RCL_RET_OK) rclcpp::exceptions::throw_from_rcl_error(taken, "no loaned message can be taken");
    return true;
  }
  void handle(rclcpp::SubscriptionBase& of) {
    if (serialized_) {
      of.handle_serialized_message(serialized_, info_);
      of.return_serialized_message(serialized_);
    } else if (message_) {
      of.handle_message(message_, info_);
      of.return_message(message_);
    } else {
      of.handle_loaned_message(loaned_, info_);
      const rcl_ret_t returned =
          rcl_return_loaned_message_from_subscription(of.get_subscription_handle().get(), loaned_);
      if (returned != RCL_RET_OK)
        rclcpp::exceptions::throw_from_rcl_error(returned, "a loaned message cannot be returned");
    }
  }

  rclcpp::AnyExecutable what_;
  rclcpp::MessageInfo info_;
  std::shared_ptr<void> message_;
  std::shared_ptr<rclcpp::SerializedMessage> serialized_;
  std::shared_ptr<rmw_request_id_t> header_;
  void* loaned_ = nullptr;
};

}  // namespace

void LetExecutor::turn() {
  if (period_ns_ > 0) sleep_until_next_period();
  if (!spinning.load()) return;
  std::vector<Ready>& ready = wait(std::chrono::nanoseconds(period_ns_ > 0 ? 0 : -1));
  std::ranges::stable_sort(ready, {}, [](const Ready& one) { return one.place->rank; });
  std::vector<Taken> taken;
  taken.reserve(ready.size());
  for (Ready& one : ready) {
    if (!take_data(one.what)) continue;
    Taken next(std::move(one.what));
    if (next.take_message()) taken.push_back(std::move(next));
  }
  for (Taken& one : taken) one.run();
}

void LetExecutor::sleep_until_next_period() {
  const Nanoseconds since = clock_->now() - base_ns_;
  // Also correct before the base: warm-up ticks come before it.
  const Nanoseconds into = ((since % period_ns_) + period_ns_) % period_ns_;
  const Nanoseconds begin = base_ns_ + since - into + period_ns_;
  std::unique_lock lock(sleeping_);
  for (Nanoseconds left = begin - clock_->now(); left > 0 && spinning.load(); left = begin - clock_->now())
    cancelled_.wait_for(lock, std::chrono::nanoseconds(left));
}

void LetExecutor::cancel() {
  {
    const std::lock_guard lock(sleeping_);
    spinning.store(false);
  }
  cancelled_.notify_all();
  rclcpp::Executor::cancel();
}

}  // namespace perflab::runtime::ros

#endif
