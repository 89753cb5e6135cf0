#include "middleware/udp/writer.h"

#include <algorithm>
#include <cerrno>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/time.h"
#include "middleware/support/status.h"
#include "middleware/types.h"
#include "middleware/udp/participant.h"

namespace perflab::middleware::udp {
namespace {

constexpr std::size_t kUsualParts = 8;

}  // namespace

Writer::Writer(Participant& of, const perflab_endpoint_settings& settings, const perflab_listener* called)
    : Entity(of, true, settings, called), socket_(of.open_sending()) {
  participant.enter(*this);
}

Writer::~Writer() { participant.leave(*this); }

std::size_t Writer::matched() const noexcept {
  const std::lock_guard lock(mutex_);
  return targets_.size();
}

perflab_status Writer::write(const perflab_bytes* parts, std::size_t part_count,
                             const perflab_sample_identity* related, std::int64_t* sequence,
                             perflab_error* error) {
  const std::int64_t stamp_ns = std::exchange(next_stamp_ns_, 0);
  const std::size_t size = size_of(parts, part_count);
  const std::lock_guard lock(mutex_);
  for (const Target& target : targets_) {
    if (size <= target.largest) continue;
    support::set_error(error, "udp: not sent on '" + info.topic + "': " + participant.too_large(size));
    return PERFLAB_FAILED;
  }
  const std::int64_t source_ns = stamp_ns != 0 ? stamp_ns : read_clock(CLOCK_REALTIME);
  for (Target& target : targets_) {
    target.head.size = static_cast<std::uint32_t>(size);
    target.head.sequence = next_;
    target.head.source_ns = source_ns;
    target.head.related = related != nullptr ? *related : perflab_sample_identity{};
  }
  if (sequence != nullptr) *sequence = next_;
  ++next_;
  if (targets_.empty()) return PERFLAB_OK;
  make_room(part_count);
  std::size_t offset = 0;
  do {
    const std::size_t piece = std::min(size - offset, kLargestPiece);
    lay_out(parts, part_count, offset, piece);
    if (const perflab_status status = send_piece(error); status != PERFLAB_OK) return status;
    offset += piece;
  } while (offset < size);
  return PERFLAB_OK;
}

void Writer::make_room(std::size_t part_count) {
  messages_.resize(targets_.size());
  const std::size_t most = targets_.size() * (part_count + 1);
  if (pieces_.size() < most) pieces_.resize(most);
}

// The same bytes for each target, after its own header.
void Writer::lay_out(const perflab_bytes* parts, std::size_t part_count, std::size_t offset,
                     std::size_t size) {
  iovec* const first = pieces_.data();
  std::size_t count = 1;  // the first is the header
  std::size_t skip = offset;
  std::size_t left = size;
  for (std::size_t i = 0; i < part_count && left > 0; ++i) {
    const std::size_t skipped = std::min(skip, parts[i].size);
    skip -= skipped;
    const std::size_t length = std::min(parts[i].size - skipped, left);
    if (length == 0) continue;
    auto* const bytes = static_cast<std::uint8_t*>(const_cast<void*>(parts[i].data));
    first[count++] = {bytes + skipped, length};
    left -= length;
  }
  for (std::size_t t = 0; t < targets_.size(); ++t) {
    Target& target = targets_[t];
    iovec* const own = first + t * count;
    if (t > 0) std::copy(first + 1, first + count, own + 1);
    target.head.offset = static_cast<std::uint32_t>(offset);
    own[0] = {&target.head, sizeof target.head};
    messages_[t].msg_hdr = {.msg_name = &target.address,
                            .msg_namelen = sizeof target.address,
                            .msg_iov = own,
                            .msg_iovlen = count,
                            .msg_control = nullptr,
                            .msg_controllen = 0,
                            .msg_flags = 0};
  }
}

// Sends once to each target. What does not fit into the kernel's buffers is lost, like anywhere else on its
// way.
perflab_status Writer::send_piece(perflab_error* error) {
  for (std::size_t sent = 0; sent < messages_.size();) {
    const auto left = static_cast<unsigned>(messages_.size() - sent);
    const int count = sendmmsg(socket_.number(), messages_.data() + sent, left, 0);
    if (count > 0) {
      sent += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN || errno == ENOBUFS) {
      participant.note_unsent();
      ++sent;
    } else if (errno != EINTR) {
      support::set_error(error, "udp: not sent on '" + info.topic + "': " + reason_of(errno));
      return PERFLAB_FAILED;
    }
  }
  return PERFLAB_OK;
}

// ---- on the control thread ----

std::uint64_t Writer::add(const Target& target) {
  const std::lock_guard lock(mutex_);
  const auto is_this = [&](const Target& known) { return same(known.reader, target.reader); };
  if (std::ranges::none_of(targets_, is_this)) {
    targets_.push_back(target);
    targets_.back().head.writer = id;
    messages_.reserve(targets_.size());
    pieces_.resize(std::max(pieces_.size(), targets_.size() * (kUsualParts + 1)));
    participant.report(*this, PERFLAB_MATCHED, target.reader, 1);
  }
  return static_cast<std::uint64_t>(next_);
}

void Writer::peer_gone(const perflab_identity& reader) {
  const std::lock_guard lock(mutex_);
  if (std::erase_if(targets_, [&](const Target& target) { return same(target.reader, reader); }) > 0)
    participant.report(*this, PERFLAB_UNMATCHED, reader, 1);
}

}  // namespace perflab::middleware::udp
