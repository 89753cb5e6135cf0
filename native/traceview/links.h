// Links between what a node takes and what it publishes, as the node itself declares them
// (ros2:message_link_*): the subscriptions whose messages go into what these publishers publish, though in no
// callback of theirs.
#pragma once

#include <cstdint>

#include "ctf/event.h"
#include "traceview/schema.h"
#include "traceview/tables.h"

namespace perflab::traceview {

// The handles that one declaration lists, in place: good as long as the event is.
struct LinkedHandles {
  const std::uint64_t* values = nullptr;
  std::size_t count = 0;
};

// A field of message_link_*: field::message_link. Empty where the event has no such list.
[[nodiscard]] LinkedHandles linked_handles(const BoundEvent& bound, const ctf::Event& event,
                                           std::size_t field) noexcept;

// Adds a row for each pair. `row_of_subscription(handle)` and `row_of_publisher(handle)` find rows of these
// tables.
template <typename Subscription, typename Publisher>
void declare_links(MessageLinks& table, const BoundEvent& bound, const ctf::Event& event,
                   std::int32_t process, Subscription&& row_of_subscription, Publisher&& row_of_publisher) {
  const LinkedHandles subscriptions = linked_handles(bound, event, field::message_link::subscriptions);
  const LinkedHandles publishers = linked_handles(bound, event, field::message_link::publishers);
  const LinkKind kind =
      bound.kind == Kind::message_link_partial_sync ? LinkKind::partial_sync : LinkKind::periodic_async;
  for (std::size_t s = 0; s < subscriptions.count; ++s) {
    for (std::size_t p = 0; p < publishers.count; ++p) {
      table.process.push(process);
      table.kind.push(kind);
      table.subscription.push(row_of_subscription(subscriptions.values[s]));
      table.publisher.push(row_of_publisher(publishers.values[p]));
      table.time_ns.push(event.time_ns);
    }
  }
}

}  // namespace perflab::traceview
