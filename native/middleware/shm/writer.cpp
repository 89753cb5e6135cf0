#include "middleware/shm/writer.h"

#include <algorithm>
#include <utility>

#include "middleware/shm/participant.h"
#include "middleware/support/status.h"
#include "middleware/types.h"

namespace perflab::middleware::shm {
namespace {

// The first of the last `depth` messages, if `next` is the number of the following one.
std::uint64_t last(std::int32_t depth, std::uint64_t next) noexcept {
  const auto count = static_cast<std::uint64_t>(std::max(depth, 1));
  return next > count ? next - count : 1;
}

}  // namespace

Writer::Writer(Participant& of, const perflab_endpoint_settings& settings, const perflab_listener* called)
    : Entity(of, true, settings, called), asserted_ns_(of.host_now_ns()), deadline_(info.qos.deadline_ns) {
  if (info.qos.durability == PERFLAB_TRANSIENT_LOCAL) make_ring();
  participant.enter(*this);
}

Writer::~Writer() {
  participant.leave(*this);
  if (bell_ != 0) participant.board().return_bell(bell_);
}

std::size_t Writer::matched() const noexcept {
  const std::lock_guard lock(mutex_);
  return targets_.size();
}

// ---- the path of a message ----

perflab_status Writer::write(const perflab_bytes* parts, std::size_t part_count,
                             const perflab_sample_identity* related, std::int64_t* sequence,
                             perflab_error* error) {
  const std::int64_t stamp_ns = std::exchange(next_stamp_ns_, 0);
  const std::size_t size = size_of(parts, part_count);
  if (size > kLargestMessage) {
    support::set_error(error, "shm: not sent: a message of more than 1 GiB");
    return PERFLAB_FAILED;
  }
  std::unique_lock lock(mutex_);
  if (ring_) {
    Room room = make_room(size, error);
    if (room == Room::later) room = wait_for_room(lock, size, error);
    if (room != Room::there) return PERFLAB_FAILED;
    put_together(parts, part_count, ring_->place(size));
  }
  written_ns_ = participant.host_now_ns();
  const bool asserts = info.qos.liveliness == PERFLAB_MANUAL_BY_TOPIC;
  if (asserts) asserted_ns_ = written_ns_;
  if (ring_) {
    if (asserts) ring_->assert_alive(written_ns_);
    ring_->publish({.number = 0,
                    .offset = 0,
                    .size = size,
                    .published_ns = written_ns_,
                    .source_ns = stamp_ns != 0 ? stamp_ns : wall_ns(),
                    .related = related != nullptr ? *related : perflab_sample_identity{}});
  }
  if (sequence != nullptr) *sequence = static_cast<std::int64_t>(next_);
  ++next_;
  for (const Target& target : targets_) {
    for (const auto& bell : target.board->cell(target.cell).bells) target.board->ring(bell.load());
  }
  return PERFLAB_OK;
}

// If the ring is full, first drops messages that no reader needs any more, then grows, then drops messages
// that were not guaranteed.
Writer::Room Writer::make_room(std::size_t size, perflab_error* error) noexcept {
  while (!ring_->has_room(size)) {
    const std::uint64_t history = history_from();
    std::uint64_t needed = history;
    bool is_waited_for = false;
    for (Target& target : targets_) {
      const std::uint64_t from = needed_from(target);
      needed = std::min(needed, from);
      is_waited_for = is_waited_for || (from == ring_->oldest() && target.qos.history == PERFLAB_KEEP_ALL &&
                                        target.qos.reliability == PERFLAB_RELIABLE);
    }
    const std::uint64_t oldest = ring_->oldest();
    if (needed > oldest) {
      ring_->forget_before(needed);
    } else if (ring_->grow(size)) {
      continue;
    } else if (is_waited_for) {
      return Room::later;
    } else if (oldest == ring_->next()) {
      support::set_error(error, "shm: not sent: no memory for a message");
      return Room::never;
    } else if (history == oldest && info.qos.history == PERFLAB_KEEP_ALL) {
      support::set_error(error, "shm: not sent: the history of a writer that keeps all is full");
      return Room::never;
    } else {
      ring_->forget_before(oldest + 1);
    }
  }
  return Room::there;
}

Writer::Room Writer::wait_for_room(std::unique_lock<std::mutex>& lock, std::size_t size,
                                   perflab_error* error) {
  if (bell_ == 0) bell_ = participant.board().take_bell();
  ring_->set_waiting(bell_);
  lock.unlock();  // readers may be added and removed meanwhile
  Room room = Room::later;
  const std::int64_t until_ns = support::monotonic_after(participant.settings().max_blocking_time_ns);
  participant.board().bell(bell_).wait_until(until_ns, [&] {
    const std::lock_guard again(mutex_);
    room = make_room(size, error);
    return room != Room::later;
  });
  lock.lock();
  ring_->set_waiting(0);
  if (room == Room::later)
    support::set_error(error, "shm: not sent: a reliable reader took nothing within max_blocking_time");
  return room;
}

// The oldest message that the reader may still take.
std::uint64_t Writer::needed_from(Target& target) {
  const std::uint64_t next = ring_->next();
  const std::uint32_t taken = target.board->cell(target.cell).taken.load();
  // The counter wraps around, but never by a full turn at once. A reader with an implausible counter is not
  // waited for.
  const auto more = taken - static_cast<std::uint32_t>(target.done - target.first);
  target.done += std::min<std::uint64_t>(more, next - target.done);
  const bool keeps_all = target.qos.history == PERFLAB_KEEP_ALL;
  return keeps_all ? target.done : std::max(target.done, last(target.qos.depth, next));
}

// The oldest message for readers that join later.
std::uint64_t Writer::history_from() const noexcept {
  const std::uint64_t next = ring_->next();
  if (info.qos.durability == PERFLAB_VOLATILE) return next;
  if (info.qos.history == PERFLAB_KEEP_LAST) return last(info.qos.depth, next);
  return ring_->oldest_living(participant.host_now_ns(), info.qos.lifespan_ns);
}

// ---- on the control thread ----

void Writer::make_ring() {
  if (!ring_) ring_.emplace(next_, asserted_ns_);
}

std::pair<Descriptor, std::uint64_t> Writer::add(Target target) {
  const std::lock_guard lock(mutex_);
  const auto is_this = [&](const Target& known) { return same(known.reader, target.reader); };
  if (std::ranges::any_of(targets_, is_this)) return {};
  make_ring();
  target.first = ring_->next();
  if (target.qos.durability == PERFLAB_TRANSIENT_LOCAL) {
    target.first = ring_->oldest();
    if (info.qos.history == PERFLAB_KEEP_LAST)
      target.first = std::max(target.first, last(info.qos.depth, ring_->next()));
  }
  target.done = target.first;
  std::pair<Descriptor, std::uint64_t> shown(duplicate(ring_->file()), target.first);
  participant.report(*this, PERFLAB_MATCHED, target.reader, 1);
  targets_.push_back(std::move(target));
  return shown;
}

void Writer::peer_gone(const perflab_identity& reader) {
  const std::lock_guard lock(mutex_);
  if (std::erase_if(targets_, [&](const Target& target) { return same(target.reader, reader); }) == 0) return;
  participant.report(*this, PERFLAB_UNMATCHED, reader, 1);
  if (bell_ != 0) participant.board().ring(bell_);  // it may have waited for this reader
}

std::int64_t Writer::tick(std::int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  const std::int32_t missed = deadline_.missed(now_ns, written_ns_);
  if (missed > 0) participant.report(*this, PERFLAB_DEADLINE_MISSED, {}, missed);
  std::int64_t due_ns = deadline_.due_ns(now_ns);
  const std::int64_t lease_ns = info.qos.lease_duration_ns;
  if (finite(lease_ns) && info.qos.liveliness == PERFLAB_AUTOMATIC) {
    asserted_ns_ = now_ns;
    if (ring_) ring_->assert_alive(now_ns);
    due_ns = std::min(due_ns, now_ns + part_of(lease_ns));
  } else if (finite(lease_ns)) {
    const bool alive = now_ns - asserted_ns_ < lease_ns;
    if (alive_ && !alive) participant.report(*this, PERFLAB_LIVELINESS_LOST, {}, 1);
    alive_ = alive;
    due_ns = std::min(due_ns, alive ? asserted_ns_ + lease_ns : now_ns + part_of(lease_ns));
  }
  return due_ns;
}

}  // namespace perflab::middleware::shm
