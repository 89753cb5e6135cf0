#include "middleware/udp/reader.h"

#include <sys/random.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "base/error.h"
#include "middleware/support/status.h"
#include "middleware/types.h"
#include "middleware/udp/participant.h"
#include "middleware/udp/socket.h"
#include "middleware/udp/waitset.h"

namespace perflab::middleware::udp {
namespace {

// The kernel's minimum charge for a datagram in a socket's buffer.
constexpr std::size_t kLeastInBuffer = 512;
// A longer history only takes memory when that many messages are there.
constexpr std::size_t kMadeBefore = 64;

std::uint64_t random_key() {
  std::uint64_t key = 0;
  if (getrandom(&key, sizeof key, 0) != sizeof key) fail("no random numbers");
  return key;
}

std::size_t pieces_of(std::size_t size) noexcept { return (size + kLargestPiece - 1) / kLargestPiece; }

}  // namespace

Reader::Reader(Participant& of, const perflab_endpoint_settings& settings, const perflab_listener* called)
    : Entity(of, false, settings, called),
      tells_identities_(settings.related_samples),
      fixed_size_(settings.fixed_size),
      datagram_bytes_(settings.fixed_size > 0 ? std::min(settings.fixed_size, kLargestPiece) : kLargestPiece),
      socket_(of.open_receiving()),
      room_(receive_room(socket_)),
      largest_(of.largest_message(room_)),
      key_(random_key()),
      at_once_(keeps_all() ? kAtOnce
                           : std::min<std::size_t>(static_cast<std::size_t>(info.qos.depth), kAtOnce)),
      most_queued_(room_ / kLeastInBuffer + at_once_),
      most_ready_(!keeps_all()  ? static_cast<std::size_t>(info.qos.depth)
                  : is_called() ? static_cast<std::size_t>(kDeepest)
                                : at_once_),
      next_(at_once_),
      pieces_(2 * at_once_),
      messages_(at_once_) {
  const std::size_t kept = std::min(most_ready_, kMadeBefore);
  ready_.reserve(kept);
  for (auto& slot : next_) slot = datagram_slot();
  std::vector<std::unique_ptr<Slot>> made;
  for (std::size_t i = 0; i <= kept; ++i) made.push_back(datagram_slot());
  for (auto& slot : made) give_back(std::move(slot));
  for (std::size_t i = 0; fixed_size_ > kLargestPiece && i < 2; ++i) made[i] = large_slot(fixed_size_);
  for (auto& slot : made)
    if (slot != nullptr) give_back(std::move(slot));
  participant.enter(*this);
}

Reader::~Reader() {
  participant.leave(*this);
  if (waitset_ != nullptr) waitset_->forget(*this);
}

std::size_t Reader::matched() const noexcept {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::ranges::count_if(sources_, [](const auto& source) { return source->matched; }));
}

// ---- the path of a message ----

perflab_status Reader::take(perflab_sample* sample, perflab_error* error) {
  const std::lock_guard lock(mutex_);
  if (!is_called() && (!keeps_all() || ready_.empty())) read_socket();
  if (ready_.empty()) {
    if (problem_.empty()) return PERFLAB_NO_DATA;
    support::set_error(error, std::exchange(problem_, {}));
    return PERFLAB_FAILED;
  }
  std::unique_ptr<Slot> slot = ready_.pop_front();
  ready_count_.store(ready_.size(), std::memory_order_release);
  sample->data = slot->data.get();
  sample->size = slot->head.size;
  sample->writer = slot->head.writer;
  sample->sequence = tells_identities_ ? slot->head.sequence : 0;
  sample->related = tells_identities_ ? slot->head.related : perflab_sample_identity{};
  sample->source_timestamp_ns = slot->head.source_ns;
  sample->reception_ns = PERFLAB_TIME_UNKNOWN;
  sample->loan = slot.release();
  return PERFLAB_OK;
}

void Reader::return_sample(perflab_sample* sample) noexcept {
  const std::lock_guard lock(mutex_);
  give_back(std::unique_ptr<Slot>(static_cast<Slot*>(sample->loan)));
  sample->loan = nullptr;
  sample->data = nullptr;
}

bool Reader::receive() noexcept {
  const std::lock_guard lock(mutex_);
  bool has_more = false;
  try {
    has_more = read_socket();
  } catch (const std::exception& failure) {
    problem_ = failure.what();
  }
  if (waitset_ != nullptr) waitset_->look_again();
  return has_more;
}

// Reads until the socket is empty, or keep_all's limit is reached; at most what was there at the start,
// because more may come meanwhile. False if the socket is empty.
bool Reader::read_socket() {
  for (std::size_t read = 0; read < most_queued_; read += at_once_) {
    if (read_some() < at_once_) {
      if (some_are_gone_) note_those_gone();
      return false;
    }
    if (keeps_all() && !is_called() && !ready_.empty()) break;
  }
  return true;
}

std::size_t Reader::read_some() {
  for (std::size_t i = 0; i < at_once_; ++i) {
    if (next_[i] == nullptr) next_[i] = datagram_slot();
    iovec* const pieces = &pieces_[2 * i];
    pieces[0] = {&next_[i]->head, sizeof(Head)};
    pieces[1] = {next_[i]->data.get(), next_[i]->capacity};
    messages_[i] = {};
    messages_[i].msg_hdr.msg_iov = pieces;
    messages_[i].msg_hdr.msg_iovlen = 2;
  }
  int count = -1;
  do {
    count =
        recvmmsg(socket_.number(), messages_.data(), static_cast<unsigned>(at_once_), MSG_DONTWAIT, nullptr);
  } while (count < 0 && errno == EINTR);
  if (count < 0 && errno == EAGAIN) return 0;
  if (count < 0) fail("cannot read from a socket");
  const auto read = static_cast<std::size_t>(count);
  for (std::size_t i = 0; i < read; ++i)
    accept(next_[i], messages_[i].msg_len, (messages_[i].msg_hdr.msg_flags & MSG_TRUNC) != 0);
  ready_count_.store(ready_.size(), std::memory_order_release);
  return read;
}

// A queued message takes the slot. Anything that is not a message of one of its writers is ignored.
void Reader::accept(std::unique_ptr<Slot>& slot, std::size_t size, bool is_cut) {
  const Head& head = slot->head;
  Source* const source =
      size < sizeof(Head) || is_cut || head.magic != kMagic || head.key != key_ ? nullptr : find(head.writer);
  const std::size_t piece = size - std::min(size, sizeof(Head));
  const std::size_t right =
      std::min<std::size_t>(head.size - std::min(head.size, head.offset), kLargestPiece);
  if (source == nullptr || head.size > largest_ || piece != right || head.offset % kLargestPiece != 0 ||
      (piece == 0 && head.size > 0) || head.sequence <= 0 || head.sequence == INT64_MAX) {
    foreign_.fetch_add(1, std::memory_order_relaxed);
    return;
  }
  const Assembly& under_way = source->assembly;
  const bool continues = under_way.slot != nullptr && under_way.slot->head.sequence == head.sequence;
  if (!continues && is_late(*source, head.sequence)) return;
  if (piece == head.size) {
    push(*source, std::move(slot));
  } else {
    join(*source, head, slot->data.get(), piece);
  }
}

// Counts the messages between the last one and this one as lost. True if a later one came before: then it
// stays lost.
bool Reader::is_late(Source& source, std::int64_t sequence) noexcept {
  if (source.next != 0 && sequence < source.next) return true;
  give_up(source);
  if (source.next != 0) source.lost += static_cast<std::uint64_t>(sequence - source.next);
  if (source.next == 0) source.first = sequence;
  source.next = sequence + 1;
  if (source.lost > 0) participant.poke();
  return false;
}

void Reader::give_up(Source& source) {
  if (source.assembly.slot == nullptr) return;
  give_back(std::move(source.assembly.slot));
  incomplete_.fetch_add(1, std::memory_order_relaxed);
  ++source.lost;
}

void Reader::join(Source& source, const Head& head, const std::uint8_t* piece, std::size_t size) {
  Assembly& assembly = source.assembly;
  const std::size_t index = head.offset / kLargestPiece;
  if (assembly.slot == nullptr) {
    assembly.slot = large_slot(head.size);
    assembly.slot->head = head;
    assembly.missing = pieces_of(head.size);
    assembly.has.assign(assembly.missing, false);
  }
  if (head.size != assembly.slot->head.size || assembly.has[index]) return;
  std::memcpy(assembly.slot->data.get() + head.offset, piece, size);
  assembly.has[index] = true;
  if (--assembly.missing == 0) push(source, std::move(assembly.slot));
}

// If the history is full, drops the oldest message, or with keep_all the new one.
void Reader::push(Source& source, std::unique_ptr<Slot> slot) {
  if (ready_.size() < most_ready_) {
    ready_.push_back(std::move(slot));
  } else if (keeps_all()) {
    give_back(std::move(slot));
    ++source.lost;
    participant.poke();
  } else {
    give_back(ready_.pop_front());
    ready_.push_back(std::move(slot));
  }
}

std::unique_ptr<Slot> Reader::datagram_slot() {
  if (free_.empty()) {
    free_.reserve(++made_);  // so that returning all of them never allocates
    return std::make_unique<Slot>(datagram_bytes_);
  }
  std::unique_ptr<Slot> slot = std::move(free_.back());
  free_.pop_back();
  return slot;
}

std::unique_ptr<Slot> Reader::large_slot(std::size_t size) {
  if (free_large_.empty()) {
    free_large_.reserve(++made_large_);
    return std::make_unique<Slot>(size);
  }
  std::unique_ptr<Slot> slot = std::move(free_large_.back());
  free_large_.pop_back();
  if (slot->capacity < size) *slot = Slot(size);
  return slot;
}

void Reader::give_back(std::unique_ptr<Slot> slot) noexcept {
  (slot->capacity > datagram_bytes_ ? free_large_ : free_).push_back(std::move(slot));
}

Source* Reader::find(const perflab_identity& writer) noexcept {
  const auto at =
      std::ranges::find_if(sources_, [&](const auto& source) { return same(source->writer, writer); });
  return at == sources_.end() ? nullptr : at->get();
}

// The socket is empty, so everything from writers that have left has been read. The control thread removes
// them.
void Reader::note_those_gone() {
  for (const auto& source : sources_) {
    if (!source->gone) continue;
    give_up(*source);
    source->is_read = true;
  }
  some_are_gone_ = false;
  participant.poke();
}

void Reader::attach(WaitSet& waitset) {
  const std::lock_guard lock(mutex_);
  if (waitset_ != nullptr) throw Failed("udp: the reader is attached to a wait-set already");
  waitset_ = &waitset;
}

void Reader::detach() noexcept {
  const std::lock_guard lock(mutex_);
  waitset_ = nullptr;
}

// ---- on the control thread ----

void Reader::expect(const perflab_identity& writer) {
  const std::lock_guard lock(mutex_);
  if (find(writer) != nullptr) return;
  sources_.push_back(std::make_unique<Source>(Source{.writer = writer}));
  if (fixed_size_ > kLargestPiece) sources_.back()->assembly.has.reserve(pieces_of(fixed_size_));
}

void Reader::start(const perflab_identity& writer, std::int64_t first) {
  const std::lock_guard lock(mutex_);
  Source* const source = find(writer);
  if (source == nullptr || source->matched || source->gone || first <= 0) return;
  source->matched = true;
  // Messages may have come before this letter, and some before these been lost.
  if (source->next == 0) {
    source->next = first;
  } else if (source->first > first) {
    source->lost += static_cast<std::uint64_t>(source->first - first);
  }
  source->first = first;
  participant.report(*this, PERFLAB_MATCHED, writer, 1);
}

void Reader::peer_gone(const perflab_identity& writer) {
  const std::lock_guard lock(mutex_);
  Source* const source = find(writer);
  if (source == nullptr) return;
  if (source->matched) participant.report(*this, PERFLAB_UNMATCHED, writer, 1);
  source->matched = false;
  source->gone = true;
  some_are_gone_ = true;
}

void Reader::tick() {
  const std::lock_guard lock(mutex_);
  for (const auto& source : sources_) {
    if (source->lost == 0) continue;
    participant.note_lost(source->lost);
    const auto count = static_cast<std::int32_t>(std::min<std::uint64_t>(source->lost, INT32_MAX));
    participant.report(*this, PERFLAB_SAMPLE_LOST, source->writer, count);
    source->lost = 0;
  }
  std::erase_if(sources_, [](const auto& source) { return source->is_read; });
}

}  // namespace perflab::middleware::udp
