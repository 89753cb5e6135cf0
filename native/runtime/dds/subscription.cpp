#include "runtime/dds/subscription.h"

#include "runtime/dds/executor.h"
#include "runtime/dds/tracing.h"

namespace perflab::runtime {

DdsRuntime::MessageSource::MessageSource(DdsSubscription& owner) noexcept
    : Source(owner), subscription(owner) {}

DdsRuntime::DdsSubscription::DdsSubscription(const measure::Clock& clock, MessageHandler& handler,
                                             EventSink& sink, DdsExecutor& executor,
                                             const EndpointSettings& settings, std::size_t ring_depth,
                                             const perflab_ros2_tracepoints* trace)
    : clock_(clock),
      handler_(handler),
      sink_(sink),
      executor_(executor),
      settings_(settings),
      trace_takes_(settings.kind == TopicKind::kTopic ? trace : nullptr),
      trace_calls_(settings.kind == TopicKind::kTopic ? nullptr : trace),
      trace_callbacks_(settings.kind == TopicKind::kReply ? nullptr : trace) {
  if (ring_depth > 0) from_process_.emplace(*this, ring_depth);
  sources = {&from_middleware_, from_process()};
}

std::size_t DdsRuntime::DdsSubscription::matched() noexcept {
  return local_writers_ + (from_middleware_.reader ? from_middleware_.reader->matched_writers() : 0);
}

perflab_listener DdsRuntime::DdsSubscription::listener(bool tell_data) noexcept {
  const auto on_data = [](void* context) {
    auto& self = *static_cast<DdsSubscription*>(context);
    self.executor_.on_ready(self.from_middleware_);
  };
  const auto on_event = [](void* context, const perflab_event* event) {
    static_cast<DdsSubscription*>(context)->sink_.on_event(*event);
  };
  return {tell_data ? +on_data : nullptr, on_event, this};
}

void DdsRuntime::DdsSubscription::set_reader(middleware::Reader reader) {
  identity_ = reader.identity();
  from_middleware_.reader.emplace(std::move(reader));
}

void DdsRuntime::DdsSubscription::close() noexcept {
  if (from_middleware_.reader) from_middleware_.reader->close();
  from_middleware_.reader.reset();
}

void DdsRuntime::DdsSubscription::handle(const MessageSource& source, const Delivery& delivery) noexcept {
  if (trace_calls_ != nullptr) [[unlikely]]
    tell_taken(delivery);
  if (trace_callbacks_ == nullptr) [[likely]] {
    handler_.on_message(delivery);
    return;
  }
  // A service has one callback for all requests.
  const bool of_service = settings_.kind == TopicKind::kRequest;
  const void* const callback = of_service ? from_middleware_.callback() : source.callback();
  trace_callbacks_->callback_start(callback, !of_service && &source != &from_middleware_ ? 1 : 0);
  handler_.on_message(delivery);
  trace_callbacks_->callback_end(callback);
}

// As in rmw: a client of another process is identified by 16 bytes, regardless of the transport.
void DdsRuntime::DdsSubscription::tell_client(const perflab_identity& client) noexcept {
  if (trace_calls_ != nullptr) trace_calls_->rmw_client_init(rmw_handle(), gid_of(client).data());
}

void DdsRuntime::DdsSubscription::tell_sent(const perflab_sample_identity& call) noexcept {
  if (trace_calls_ == nullptr) [[likely]]
    return;
  if (settings_.kind == TopicKind::kReply) {
    trace_calls_->rmw_send_request(rmw_handle(), this, call.sequence);
  } else {
    trace_calls_->rmw_send_response(rmw_handle(), this, gid_of(call.writer).data(), call.sequence, 0);
  }
}

void DdsRuntime::DdsSubscription::tell_taken(const Delivery& delivery) noexcept {
  const perflab_sample_identity call = handler_.call_of(delivery);
  if (call.sequence == 0) return;  // of another client
  const void* const message = delivery.bytes.data();
  if (settings_.kind == TopicKind::kRequest) {
    trace_calls_->rmw_take_request(rmw_handle(), message, gid_of(call.writer).data(), call.sequence, 1);
  } else {
    const bool stamped = delivery.source_timestamp_ns != PERFLAB_TIME_UNKNOWN;
    trace_calls_->rmw_take_response(rmw_handle(), message, call.sequence, stamped ? delivery.source_timestamp_ns : 0, 1);
  }
}

namespace {

// rcl also traces a take that returned nothing.
void tell_take(const perflab_ros2_tracepoints& trace, const void* reader, perflab_status status,
               const perflab_sample& sample) noexcept {
  if (status < 0) return;
  const bool taken = status == PERFLAB_OK;
  const void* const message = taken ? sample.data : nullptr;
  const bool stamped = taken && sample.source_timestamp_ns != PERFLAB_TIME_UNKNOWN;
  trace.rmw_take(reader, message, stamped ? sample.source_timestamp_ns : 0, taken ? 1 : 0);
  trace.rcl_take(message);
  if (taken) trace.rclcpp_take(message);
}

}  // namespace

bool DdsRuntime::DdsSubscription::FromMiddleware::take(perflab_sample& sample) noexcept {
  perflab_error error;
  const perflab_status status = reader->take(sample, error);
  if (subscription.trace_takes_ != nullptr && (status == PERFLAB_OK || !subscription.polled_)) [[unlikely]]
    tell_take(*subscription.trace_takes_, subscription.rmw_handle(), status, sample);
  if (status == PERFLAB_OK) [[likely]]
    return true;
  if (status < 0) subscription.sink_.on_failure(subscription.clock_.now(), error.text);
  return false;
}

void DdsRuntime::DdsSubscription::FromMiddleware::handle(perflab_sample& sample) noexcept {
  subscription.handle(*this, {{sample.data, sample.size},
                              sample.writer,
                              sample.sequence,
                              sample.related,
                              sample.reception_ns,
                              sample.source_timestamp_ns});
  reader->return_sample(sample);
}

DdsRuntime::MessageSource::Turn DdsRuntime::DdsSubscription::FromMiddleware::run_one() noexcept {
  perflab_sample sample;
  if (!take(sample)) return Turn::kNothing;
  handle(sample);
  return Turn::kMore;
}

DdsRuntime::MessageSource::Turn DdsRuntime::DdsSubscription::FromProcess::take(Ring::Entry& entry) noexcept {
  switch (ring.pop(entry)) {
    case Ring::Popped::kNothing:
      return Turn::kNothing;
    case Ring::Popped::kLast:
      return Turn::kLast;
    case Ring::Popped::kMore:
      break;
  }
  return Turn::kMore;
}

void DdsRuntime::DdsSubscription::FromProcess::handle(const Ring::Entry& entry) noexcept {
  const Message& message = *entry.message;
  Delivery delivery{message.bytes(), message.writer,   message.sequence,
                    message.related, entry.arrived_ns, message.source_timestamp_ns};
  if (message.object() != nullptr) delivery.object = message.object()->data();
  subscription.handle(*this, delivery);
}

DdsRuntime::MessageSource::Turn DdsRuntime::DdsSubscription::FromProcess::run_one() noexcept {
  Ring::Entry entry;
  const Turn taken = take(entry);
  if (taken != Turn::kNothing) handle(entry);
  return taken;
}

void DdsRuntime::DdsSubscription::FromProcess::accept(MessageRef message) noexcept {
  ring.push({std::move(message), subscription.clock_.now()});
  subscription.executor_.on_ready(*this);
}

}  // namespace perflab::runtime
