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
      // Of the domain: one of a participant takes no readers of another.
      waitset_(dds_create_waitset(participant.domain().entity.get()), "cannot create a wait-set"),
      guard_(dds_create_guardcondition(participant.domain().entity.get()),
             "cannot create a guard condition") {
  const dds_return_t code = dds_waitset_attach(waitset_.get(), guard_.get(), kWake);
  if (code != DDS_RETCODE_OK) fail("cannot attach the guard condition", code);
}

WaitSet::~WaitSet() {
  for (const Attachment& attachment : attachments_) {
    if (attachment.reader != nullptr) attachment.reader->attached_to = nullptr;
  }
}

void WaitSet::attach(Reader& reader, std::uint64_t cookie) {
  if (reader.attached_to != nullptr) {
    throw support::StatusError(PERFLAB_FAILED, "cyclonedds: the reader is attached to a wait-set already");
  }
  Entity condition(dds_create_readcondition(reader.handle(), DDS_ANY_STATE),
                   "cannot create a read condition");
  triggered_.resize(attachments_.size() + 2);
  attachments_.push_back({&reader, cookie, std::move(condition), false});
  const dds_return_t code = dds_waitset_attach(waitset_.get(), attachments_.back().condition.get(),
                                               static_cast<dds_attach_t>(attachments_.size() - 1));
  if (code != DDS_RETCODE_OK) {
    attachments_.pop_back();
    fail("cannot attach a reader", code);
  }
  reader.attached_to = this;
}

void WaitSet::forget(const Reader& reader) noexcept {
  // Indices are known to Cyclone, so the place stays, empty.
  for (Attachment& attachment : attachments_) {
    if (attachment.reader != &reader) continue;
    attachment.condition.reset();
    attachment.reader->attached_to = nullptr;
    attachment.reader = nullptr;
  }
}

perflab_status WaitSet::wait(std::int64_t timeout_ns, std::uint64_t* ready, std::size_t capacity,
                             std::size_t* ready_count, perflab_error* error) noexcept {
  const bool look_only = timeout_ns <= 0;
  // With a time-out of 0 the kernel still sleeps for the thread's timer slack (50 us unless it was changed).
  if (look_only) dds_set_guardcondition(guard_.get(), true);
  const dds_return_t count = dds_waitset_wait(waitset_.get(), triggered_.data(), triggered_.size(),
                                              std::max<std::int64_t>(timeout_ns, 0));
  if (count < 0) [[unlikely]] {
    support::set_error(error, dds_strretcode(count));
    return PERFLAB_FAILED;
  }
  *ready_count = 0;
  if (count == 0) return PERFLAB_TIMEOUT;

  // Cyclone reports in an order of its own.
  const std::size_t reported = std::min(static_cast<std::size_t>(count), triggered_.size());
  bool woken = false;
  for (std::size_t i = 0; i < reported; ++i) {
    if (triggered_[i] == kWake) {
      bool was_set;
      dds_take_guardcondition(guard_.get(), &was_set);
      woken = woken_.exchange(false, std::memory_order_acq_rel) || !look_only;
    } else {
      attachments_[static_cast<std::size_t>(triggered_[i])].ready = true;
    }
  }
  const std::size_t places = attachments_.size();
  const std::size_t start = first_;
  bool all_fitted = true;
  first_ = 0;
  for (std::size_t i = 0; i < places; ++i) {
    const std::size_t at = (start + i) % places;
    Attachment& attachment = attachments_[at];
    if (!attachment.ready) continue;
    attachment.ready = false;
    if (*ready_count < capacity) {
      ready[(*ready_count)++] = attachment.cookie;
    } else if (all_fitted) {
      all_fitted = false;
      first_ = at;  // the next wait starts here
    }
  }
  return *ready_count > 0 || woken ? PERFLAB_OK : PERFLAB_TIMEOUT;
}

void WaitSet::wake() noexcept {
  woken_.store(true, std::memory_order_release);
  dds_set_guardcondition(guard_.get(), true);
}

}  // namespace perflab::middleware::cyclonedds
