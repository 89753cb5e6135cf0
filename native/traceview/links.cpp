#include "traceview/links.h"

namespace perflab::traceview {

LinkedHandles linked_handles(const BoundEvent& bound, const ctf::Event& event, std::size_t field) noexcept {
  const BoundField& list = bound.fields[field];
  if (list.slot < 0 || !list.integers) return {};
  const auto slot = static_cast<std::size_t>(list.slot);
  return {reinterpret_cast<const std::uint64_t*>(event.slots[slot]),
          static_cast<std::size_t>(event.slots[slot + 1])};
}

}  // namespace perflab::traceview
