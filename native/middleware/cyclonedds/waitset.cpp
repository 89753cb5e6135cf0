#include "middleware/cyclonedds/waitset.h"

#include <algorithm>

#include "middleware/cyclonedds/endpoint.h"
#include "middleware/support/status.h"

namespace perflab::middleware::cyclonedds {
namespace {

constexpr dds_attach_t kWake = -1;

}  // namespace

WaitSet::WaitSet(Participant& participant)
    : triggered_(1),
      // Created on the domain: a participant's wait-set does not accept readers of another participant.
      waitset_(dds_create_waitset(participant.domain().entity.get()), "cannot create a wait-set"),
      guard_(dds_create_guardcondition(participant.domain().entity.get()),
             "cannot create a guard condition") {
  const dds_return_t code = dds_waitset_attach(waitset_.get(), guard_.get(), kWake);
  if (code != DDS_RETCODE_OK) fail("cannot attach the guard condition", code);
}

void WaitSet::attach(Reader& reader, std::uint64_t cookie) {
  const std::size_t place = places_.add(reader, cookie);
  try {
    triggered_.resize(place + 2);
    const dds_return_t code =
        dds_waitset_attach(waitset_.get(), reader.make_condition(), static_cast<dds_attach_t>(place));
    if (code != DDS_RETCODE_OK) fail("cannot attach a reader", code);
  } catch (...) {
    places_.remove(place);
    throw;
  }
}

perflab_status WaitSet::wait(std::int64_t timeout_ns, std::uint64_t* ready, std::size_t capacity,
                             std::size_t* ready_count, perflab_error* error) noexcept {
  const bool look_only = timeout_ns <= 0;
  // With a timeout of 0 the kernel would still sleep for the thread's timer slack (50 us by default).
  if (look_only) dds_set_guardcondition(guard_.get(), true);
  const dds_return_t count = dds_waitset_wait(waitset_.get(), triggered_.data(), triggered_.size(),
                                              std::max<std::int64_t>(timeout_ns, 0));
  if (count < 0) [[unlikely]] {
    support::set_error(error, dds_strretcode(count));
    return PERFLAB_FAILED;
  }
  *ready_count = 0;
  if (count == 0) return PERFLAB_TIMEOUT;

  // Cyclone reports in its own order. Readers move to the front.
  const std::size_t reported = std::min(static_cast<std::size_t>(count), triggered_.size());
  bool woken = false;
  std::size_t readers = 0;
  for (std::size_t i = 0; i < reported; ++i) {
    if (triggered_[i] == kWake) {
      bool was_set;
      dds_take_guardcondition(guard_.get(), &was_set);
      woken = woken_.exchange(false, std::memory_order_acq_rel) || !look_only;
    } else {
      triggered_[readers++] = triggered_[i];
    }
  }
  if (readers == 1 && capacity > 0) {
    ready[0] = places_.collect_only(static_cast<std::size_t>(triggered_[0]));
    *ready_count = 1;
  } else if (readers > 0) {
    for (std::size_t i = 0; i < readers; ++i) places_.mark(static_cast<std::size_t>(triggered_[i]));
    *ready_count = places_.collect(ready, capacity, [](const support::Attachment&) { return true; });
    places_.unmark_all();
  }
  return *ready_count > 0 || woken ? PERFLAB_OK : PERFLAB_TIMEOUT;
}

void WaitSet::wake() noexcept {
  woken_.store(true, std::memory_order_release);
  dds_set_guardcondition(guard_.get(), true);
}

}  // namespace perflab::middleware::cyclonedds
