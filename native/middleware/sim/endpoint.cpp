#include "middleware/sim/endpoint.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <span>
#include <utility>

#include "middleware/sim/clock.h"
#include "middleware/sim/participant.h"
#include "middleware/sim/qos.h"
#include "middleware/sim/waitset.h"
#include "middleware/support/status.h"

namespace perflab::middleware::sim {

using support::set_error;
using support::StatusError;

// ---- writer ----

Writer::Writer(Participant& participant, Announcement info, const perflab_listener* listener)
    : participant_(participant),
      info_(std::move(info)),
      listener_(listener != nullptr ? *listener : perflab_listener{}),
      identity_(participant.next_identity()),
      asserted_ns_(monotonic_ns()) {
  check(info_.qos);
  targets_.reserve(16);
  sending_.reserve(16);
  participant_.enter(*this);
  if (info_.qos.liveliness == PERFLAB_MANUAL_BY_TOPIC && finite(info_.qos.lease_duration_ns)) {
    participant_.scheduler().at(asserted_ns_ + info_.qos.lease_duration_ns, this, [this] { check_lease(); });
  }
}

Writer::~Writer() { participant_.leave(*this); }

std::size_t Writer::matched() const noexcept {
  const std::lock_guard lock(participant_.mutex());
  return targets_.size();
}

perflab_status Writer::write(const perflab_bytes* parts, std::size_t part_count,
                             perflab_error* error) noexcept {
  const std::int64_t stamp_ns = std::exchange(next_stamp_ns_, 0);
  std::size_t size = 0;
  for (std::size_t i = 0; i < part_count; ++i) size += parts[i].size;
  if (size > kLargestPayload) {
    set_error(error, "sim: a message of more than 1 GiB");
    return PERFLAB_FAILED;
  }
  try {
    {
      std::unique_lock lock(participant_.mutex());
      if (!wait_for_room(lock)) {
        set_error(error, "sim: not sent: a reliable reader consumed nothing within max_blocking_time");
        return PERFLAB_FAILED;
      }
    }
    const std::lock_guard order(send_mutex_);
    bool keep = part_count > Connection::kMostParts;
    {
      const std::lock_guard lock(participant_.mutex());
      keep =
          keep || info_.qos.durability == PERFLAB_TRANSIENT_LOCAL ||
          std::any_of(targets_.begin(), targets_.end(), [](const Target& t) { return t.local != nullptr; });
    }
    // Copied only where someone in this process keeps it; to other processes the parts are sent from where
    // they are.
    const PacketRef packet = keep ? copy(parts, part_count, size) : PacketRef();
    Frame frame = make_frame(FrameKind::data, identity_);
    {
      const std::lock_guard lock(participant_.mutex());
      frame.sent_ns = monotonic_ns();
      frame.source_ns = stamp_ns == 0 ? wall_ns() : stamp_ns;
      frame.sequence = next_sequence_++;
      if (packet) {
        packet->sequence = frame.sequence;
        packet->sent_ns = frame.sent_ns;
        packet->source_ns = frame.source_ns;
        packet->writer = identity_;
        if (info_.qos.durability == PERFLAB_TRANSIENT_LOCAL) remember(packet, frame.sent_ns);
      }
      assert_liveliness(frame.sent_ns);
      sending_.clear();
      for (Target& target : targets_) {
        target.sent.add(size);
        if (target.local != nullptr) {
          participant_.offer(*target.local, packet, frame.sent_ns);
        } else if (std::find(sending_.begin(), sending_.end(), target.out) == sending_.end()) {
          sending_.push_back(target.out);  // once per process, however many readers it has
        }
      }
    }
    if (sending_.empty()) return PERFLAB_OK;
    const perflab_bytes whole{packet ? packet->bytes() : nullptr, size};
    const bool gather = part_count > Connection::kMostParts;
    if (send_to_others(gather ? &whole : parts, gather ? 1 : part_count, frame)) return PERFLAB_OK;
    set_error(error, "sim: not sent to a process that received nothing within max_blocking_time");
  } catch (const std::exception& failure) {
    set_error(error, failure.what());
  }
  return PERFLAB_FAILED;
}

bool Writer::send_to_others(const perflab_bytes* parts, std::size_t part_count, Frame frame) {
  bool all = true;
  for (const auto& out : sending_) {
    const auto result =
        out->send(frame, std::span(parts, part_count), participant_.program().max_blocking_time_ns);
    if (result != Connection::Result::full) continue;
    all = false;
    std::size_t size = 0;
    for (std::size_t i = 0; i < part_count; ++i) size += parts[i].size;
    const std::lock_guard lock(participant_.mutex());
    for (Target& target : targets_) {
      if (target.out != out) continue;
      --target.sent.messages;
      target.sent.bytes -= size;
    }
  }
  return all;
}

PacketRef Writer::copy(const perflab_bytes* parts, std::size_t part_count, std::size_t size) {
  PacketRef packet = participant_.pool().get(size);
  std::uint8_t* to = packet->bytes();
  for (std::size_t i = 0; i < part_count; ++i) {
    if (parts[i].size > 0) std::memcpy(to, parts[i].data, parts[i].size);
    to += parts[i].size;
  }
  return packet;
}

// False when a reliable reader has had a full window for too long.
bool Writer::wait_for_room(std::unique_lock<std::mutex>& lock) {
  const auto full = [this] {
    return std::any_of(targets_.begin(), targets_.end(), [](const Target& target) {
      return target.reliable && exceeds(target.sent, target.consumption(), kWindow);
    });
  };
  if (!full()) return true;
  const std::int64_t until_ns = monotonic_ns() + participant_.program().max_blocking_time_ns;
  while (full()) {
    if (!participant_.wait_for_consumption(lock, until_ns)) return false;
  }
  return true;
}

void Writer::remember(const PacketRef& packet, std::int64_t now_ns) {
  history_.push_back(packet);
  const bool bounded = info_.qos.history == PERFLAB_KEEP_LAST;
  while (bounded && history_.size() > static_cast<std::size_t>(info_.qos.depth)) {
    history_.front().reset();
    history_.pop_front();
  }
  while (finite(info_.qos.lifespan_ns) && !history_.empty() &&
         now_ns - history_.front()->sent_ns >= info_.qos.lifespan_ns) {
    history_.front().reset();
    history_.pop_front();
  }
}

std::vector<PacketRef> Writer::living_history() {
  std::vector<PacketRef> living;
  const std::int64_t now_ns = monotonic_ns();
  for (std::size_t i = 0; i < history_.size(); ++i) {
    const bool expired =
        finite(info_.qos.lifespan_ns) && now_ns - history_[i]->sent_ns >= info_.qos.lifespan_ns;
    if (!expired) living.push_back(history_[i]);
  }
  return living;
}

void Writer::add_target(Target target, const perflab_identity& reader) {
  targets_.push_back(std::move(target));
  sending_.reserve(targets_.size());
  participant_.report(*this, PERFLAB_MATCHED, reader, 1);
}

void Writer::start_local(Edge& edge) {
  const std::lock_guard order(send_mutex_);
  const std::lock_guard lock(participant_.mutex());
  if (edge.reader == nullptr || edge.local_writer != this || edge.matched) return;
  add_target({.reader = edge.reader_identity,
              .local = &edge,
              .peer = nullptr,
              .out = nullptr,
              .reliable = edge.reliable,
              .sent = {},
              .consumed = {}},
             edge.reader_identity);
  participant_.set_matched(edge, next_sequence_, alive_);
  if (edge.reader->info().qos.durability != PERFLAB_TRANSIENT_LOCAL) return;
  Target& target = targets_.back();
  for (const PacketRef& packet : living_history()) {
    target.sent.add(packet->size);
    participant_.offer(edge, packet, monotonic_ns());
  }
}

void Writer::start_remote(const perflab_identity& reader, const perflab_identity& peer_identity,
                          bool reliable, bool with_history) {
  const std::lock_guard order(send_mutex_);
  std::vector<PacketRef> history;
  std::shared_ptr<Connection> out;
  Frame start = make_frame(FrameKind::start, identity_, reader);
  {
    const std::lock_guard lock(participant_.mutex());
    Peer* const peer = participant_.find_peer(peer_identity);
    if (peer == nullptr || peer->out == nullptr || !peer->endpoints.contains(reader)) return;
    if (std::any_of(targets_.begin(), targets_.end(),
                    [&](const Target& t) { return same(t.reader, reader); }))
      return;
    out = peer->out;
    Target target{.reader = reader,
                  .local = nullptr,
                  .peer = peer,
                  .out = out,
                  .reliable = reliable,
                  .sent = {},
                  .consumed = {}};
    if (with_history) history = living_history();
    for (const PacketRef& packet : history) target.sent.add(packet->size);
    add_target(std::move(target), reader);
    start.sequence = next_sequence_;
    start.source_ns = alive_ ? 1 : 0;
  }
  out->send(start);
  for (const PacketRef& packet : history) {
    Frame frame = make_frame(FrameKind::data, identity_, reader);
    frame.sequence = packet->sequence;
    frame.sent_ns = packet->sent_ns;
    frame.source_ns = packet->source_ns;
    out->send(frame, std::span<const std::uint8_t>(packet->bytes(), packet->size));
  }
}

void Writer::remove_target(const perflab_identity& reader) {
  if (std::erase_if(targets_, [&](const Target& target) { return same(target.reader, reader); }) > 0) {
    participant_.report(*this, PERFLAB_UNMATCHED, reader, 1);
  }
}

void Writer::remove_targets_of(const Peer& peer) {
  for (const Target& target : targets_) {
    if (target.peer == &peer) participant_.report(*this, PERFLAB_UNMATCHED, target.reader, 1);
  }
  std::erase_if(targets_, [&](const Target& target) { return target.peer == &peer; });
}

void Writer::consumed_remotely(const perflab_identity& reader, const Flow& flow) noexcept {
  for (Target& target : targets_) {
    if (same(target.reader, reader)) target.consumed = flow;
  }
}

// ---- liveliness and deadline of a writer ----

// Under the mutex, with every message.
void Writer::assert_liveliness(std::int64_t now_ns) {
  asserted_ns_ = now_ns;
  if (finite(info_.qos.deadline_ns)) {
    if (deadline_from_ns_ == 0) {
      participant_.scheduler().at(now_ns + info_.qos.deadline_ns, this, [this] { check_deadline(); });
    }
    deadline_from_ns_ = now_ns;
  }
  if (alive_) return;
  alive_ = true;
  announce_liveliness(true);
  participant_.scheduler().at(now_ns + info_.qos.lease_duration_ns, this, [this] { check_lease(); });
}

void Writer::announce_liveliness(bool alive) {
  const Frame frame = make_frame(alive ? FrameKind::alive : FrameKind::not_alive, identity_);
  for (const Target& target : targets_) {
    if (target.local != nullptr) {
      participant_.set_alive(*target.local, alive);
    } else {
      participant_.scheduler().at(0, this, [out = target.out, frame] { out->send(frame); });
    }
  }
}

void Writer::check_lease() {
  const std::lock_guard lock(participant_.mutex());
  const std::int64_t ends_ns = asserted_ns_ + info_.qos.lease_duration_ns;
  if (monotonic_ns() < ends_ns) {
    participant_.scheduler().at(ends_ns, this, [this] { check_lease(); });
    return;
  }
  alive_ = false;
  participant_.report(*this, PERFLAB_LIVELINESS_LOST, {}, 1);
  announce_liveliness(false);
}

void Writer::check_deadline() {
  const std::lock_guard lock(participant_.mutex());
  const std::int64_t now_ns = monotonic_ns();
  if (now_ns - deadline_from_ns_ >= info_.qos.deadline_ns) {
    deadline_from_ns_ += info_.qos.deadline_ns;
    participant_.report(*this, PERFLAB_DEADLINE_MISSED, {}, 1);
  }
  participant_.scheduler().at(deadline_from_ns_ + info_.qos.deadline_ns, this, [this] { check_deadline(); });
}

// ---- reader ----

Reader::Reader(Participant& participant, Announcement info, const perflab_listener* listener)
    : participant_(participant),
      info_(std::move(info)),
      listener_(listener != nullptr ? *listener : perflab_listener{}),
      identity_(participant.next_identity()) {
  check(info_.qos);
  participant_.enter(*this);
}

Reader::~Reader() {
  participant_.leave(*this);
  if (waitset_ != nullptr) waitset_->forget(*this);
}

std::size_t Reader::matched() const noexcept {
  const std::lock_guard lock(participant_.mutex());
  return participant_.matched(*this);
}

void Reader::deliver(Edge& edge, PacketRef packet, bool copy) {
  if (finite(info_.qos.deadline_ns)) {
    if (deadline_from_ns_ == 0) {
      participant_.scheduler().at(monotonic_ns() + info_.qos.deadline_ns, this, [this] { check_deadline(); });
    }
    deadline_from_ns_ = monotonic_ns();
  }
  const std::int64_t lifespan_ns = edge.writer_qos.lifespan_ns;
  const std::int64_t expires_ns = finite(lifespan_ns) ? packet->sent_ns + lifespan_ns : INT64_MAX;
  {
    const std::lock_guard lock(mutex_);
    if (!keeps_all() && cache_.size() >= static_cast<std::size_t>(info_.qos.depth)) {
      cache_.front().packet.reset();
      cache_.pop_front();
    }
    cache_.push_back({std::move(packet), &edge, expires_ns, participant_.host_now_ns(), copy});
    if (waitset_ != nullptr) waitset_->signal();
  }
  if (listener_.on_data != nullptr) listener_.on_data(listener_.context);
}

void Reader::drop_expired(std::int64_t now_ns) noexcept {
  while (!cache_.empty() && cache_.front().expires_ns <= now_ns) {
    // Not consumed in the sense of flow control only with keep_all, where that happens on taking.
    if (keeps_all() && !cache_.front().copy) {
      Edge* const edge = cache_.front().edge;
      participant_.scheduler().at(0, this, [this, edge, size = cache_.front().packet->size] {
        const std::lock_guard lock(participant_.mutex());
        participant_.consume(*edge, size);
      });
    }
    cache_.front().packet.reset();
    cache_.pop_front();
  }
}

bool Reader::has_data() noexcept {
  const std::lock_guard lock(mutex_);
  if (!cache_.empty() && cache_.front().expires_ns != INT64_MAX) drop_expired(monotonic_ns());
  return !cache_.empty();
}

perflab_status Reader::take(perflab_sample* sample, perflab_error*) {
  Entry entry;
  {
    const std::lock_guard lock(mutex_);
    if (!cache_.empty() && cache_.front().expires_ns != INT64_MAX) drop_expired(monotonic_ns());
    if (cache_.empty()) return PERFLAB_NO_DATA;
    entry = std::move(cache_.front());
    cache_.pop_front();
  }
  if (keeps_all() && !entry.copy) {
    const std::lock_guard lock(participant_.mutex());
    participant_.consume(*entry.edge, entry.packet->size);
  }
  sample->data = entry.packet->bytes();
  sample->size = entry.packet->size;
  sample->writer = entry.packet->writer;
  sample->sequence = 0;
  sample->related = {};
  sample->source_timestamp_ns = entry.packet->source_ns;
  sample->reception_ns = entry.reception_ns;
  sample->loan = entry.packet.release();
  return PERFLAB_OK;
}

void Reader::return_sample(perflab_sample* sample) noexcept {
  PacketRef(static_cast<Packet*>(sample->loan)).reset();
  sample->loan = nullptr;
  sample->data = nullptr;
}

void Reader::attach(WaitSet* waitset) {
  const std::lock_guard lock(mutex_);
  if (waitset_ != nullptr)
    throw StatusError(PERFLAB_FAILED, "sim: the reader is attached to a wait-set already");
  waitset_ = waitset;
}

void Reader::detach() noexcept {
  const std::lock_guard lock(mutex_);
  waitset_ = nullptr;
}

void Reader::check_deadline() {
  if (matched() == 0) {  // nobody promises anything; the next message begins anew
    deadline_from_ns_ = 0;
    return;
  }
  if (monotonic_ns() - deadline_from_ns_ >= info_.qos.deadline_ns) {
    deadline_from_ns_ += info_.qos.deadline_ns;
    const std::lock_guard lock(participant_.mutex());
    participant_.report(*this, PERFLAB_DEADLINE_MISSED, {}, 1);
  }
  participant_.scheduler().at(deadline_from_ns_ + info_.qos.deadline_ns, this, [this] { check_deadline(); });
}

}  // namespace perflab::middleware::sim
