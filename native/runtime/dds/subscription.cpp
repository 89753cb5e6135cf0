#include "runtime/dds/subscription.h"

#include "runtime/dds/executor.h"

namespace perflab::runtime {

DdsRuntime::DdsSubscription::DdsSubscription(const measure::Clock& clock, MessageHandler& handler,
                                             EventSink& sink, DdsExecutor& executor,
                                             const EndpointSettings& settings, std::size_t ring_depth)
    : clock_(clock), handler_(handler), sink_(sink), executor_(executor), settings_(settings) {
  if (ring_depth > 0) from_process_.emplace(*this, ring_depth);
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

DdsRuntime::MessageSource::Turn DdsRuntime::DdsSubscription::FromMiddleware::run_one() noexcept {
  perflab_sample sample;
  perflab_error error;
  const perflab_status status = reader->take(sample, error);
  if (status == PERFLAB_OK) [[likely]] {
    subscription.handler_.on_message({{sample.data, sample.size},
                                      sample.writer,
                                      sample.sequence,
                                      sample.related,
                                      sample.reception_ns,
                                      sample.source_timestamp_ns});
    reader->return_sample(sample);
    return Turn::kMore;
  }
  if (status < 0) subscription.sink_.on_failure(subscription.clock_.now(), error.text);
  return Turn::kNothing;
}

DdsRuntime::MessageSource::Turn DdsRuntime::DdsSubscription::FromProcess::run_one() noexcept {
  Ring::Entry entry;
  const Ring::Popped popped = ring.pop(entry);
  if (popped == Ring::Popped::kNothing) return Turn::kNothing;
  const Message& message = *entry.message;
  subscription.handler_.on_message(
      {message.bytes(), message.writer, message.sequence, message.related, entry.arrived_ns, kUnknownTime});
  return popped == Ring::Popped::kLast ? Turn::kLast : Turn::kMore;
}

void DdsRuntime::DdsSubscription::FromProcess::accept(MessageRef message) noexcept {
  ring.push({std::move(message), subscription.clock_.now()});
  subscription.executor_.on_ready(*this);
}

}  // namespace perflab::runtime
