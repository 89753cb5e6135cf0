#include "middleware/shm/reader.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "middleware/shm/participant.h"
#include "middleware/shm/waitset.h"
#include "middleware/support/status.h"
#include "middleware/types.h"

namespace perflab::middleware::shm {

Reader::Reader(Participant& of, const perflab_endpoint_settings& settings, const perflab_listener* called)
    : Entity(of, false, settings, called),
      tells_identities_(settings.related_samples),
      deadline_(info.qos.deadline_ns) {
  participant.enter(*this);
}

Reader::~Reader() {
  participant.leave(*this);
  if (waitset_ != nullptr) waitset_->forget(*this);
  for (const auto& source : sources_) participant.board().return_cell(source->cell);
}

std::size_t Reader::matched() const noexcept {
  const std::lock_guard lock(mutex_);
  return static_cast<std::size_t>(
      std::ranges::count_if(sources_, [](const auto& source) { return source->matched; }));
}

// ---- the path of a message ----

perflab_status Reader::take(perflab_sample* sample, perflab_error* error) {
  const std::lock_guard lock(mutex_);
  for (;;) {
    // Takes the oldest message of all writers; the history applies to all of them together.
    Source* first = nullptr;
    Entry entry{};
    std::uint64_t there = 0;
    for (const auto& source : sources_) {
      Entry next;
      if (!find_next(*source, next)) {
        if (source->problem.empty() || std::exchange(source->is_told, true)) continue;
        participant.poke();
        support::set_error(error, source->problem);
        return PERFLAB_FAILED;
      }
      there += source->end - source->at;
      if (first != nullptr && next.published_ns >= entry.published_ns) continue;
      first = source.get();
      entry = next;
    }
    if (first == nullptr) return PERFLAB_NO_DATA;
    if (!keeps_all() && there > static_cast<std::uint64_t>(info.qos.depth)) {
      done_with(*first, first->at + 1);
      continue;
    }
    auto copy = room_for(entry.size);
    if (!first->ring->copy(entry, copy->bytes.get())) {
      free_.push_back(std::move(copy));
      continue;
    }
    done_with(*first, first->at + 1);
    sample->data = copy->bytes.get();
    sample->size = entry.size;
    sample->writer = first->writer;
    sample->sequence = tells_identities_ ? static_cast<std::int64_t>(entry.number) : 0;
    sample->related = tells_identities_ ? entry.related : perflab_sample_identity{};
    sample->source_timestamp_ns = entry.source_ns;
    sample->reception_ns = entry.published_ns;
    sample->loan = copy.release();
    return PERFLAB_OK;
  }
}

void Reader::return_sample(perflab_sample* sample) noexcept {
  free_.emplace_back(static_cast<Copy*>(sample->loan));
  sample->loan = nullptr;
  sample->data = nullptr;
}

std::unique_ptr<Reader::Copy> Reader::room_for(std::size_t size) {
  if (free_.empty()) {
    free_.reserve(++copies_);  // so that returning all of them never allocates
    free_.push_back(std::make_unique<Copy>());
  }
  auto copy = std::move(free_.back());
  free_.pop_back();
  if (copy->capacity < size) {
    copy->capacity = std::bit_ceil(size);
    copy->bytes.reset(new std::uint8_t[copy->capacity]);
  }
  return copy;
}

// Finds the next message of a writer; false if there is none. Skips messages that the history drops, that
// were lost, or that have expired.
bool Reader::find_next(Source& source, Entry& entry) {
  if (!source.ring || !source.problem.empty()) return false;
  try {
    for (;;) {
      const std::uint64_t oldest = source.ring->oldest();
      const std::uint64_t end = source.ring->next();
      if (end < source.end || oldest > end) throw Rubbish("its counters go backwards");
      source.end = end;
      const auto depth = static_cast<std::uint64_t>(info.qos.depth);
      if (!keeps_all() && end - source.at > depth) done_with(source, end - depth);
      if (oldest > source.at) {
        source.lost += oldest - source.at;
        done_with(source, oldest);
        participant.poke();
      }
      if (source.at == end) {
        if (source.gone) participant.poke();
        return false;
      }
      if (!source.ring->find(source.at, entry)) continue;
      const std::int64_t lifespan_ns = source.qos.lifespan_ns;
      if (!finite(lifespan_ns) || participant.host_now_ns() - entry.published_ns < lifespan_ns) return true;
      done_with(source, source.at + 1);
    }
  } catch (const Rubbish& why) {
    close(source, why.what());
    return false;
  }
}

void Reader::done_with(Source& source, std::uint64_t before) {
  source.at = before;
  participant.board().cell(source.cell).taken.store(static_cast<std::uint32_t>(before - source.first));
  source.board->ring(source.ring->waiting());
}

void Reader::close(Source& source, const std::string& why) {
  source.problem = "shm: " + info.topic + ": a writer's ring is invalid: " + why +
                   "; it is no longer read";
}

bool Reader::has_data() {
  const std::lock_guard lock(mutex_);
  Entry entry;
  return std::ranges::any_of(sources_, [&](const auto& source) {
    return find_next(*source, entry) || (!source->problem.empty() && !source->is_told);
  });
}

bool Reader::has_news() {
  const std::lock_guard lock(mutex_);
  bool news = false;
  for (const auto& source : sources_) {
    constexpr std::uint64_t kProblem = UINT64_MAX;
    const std::uint64_t there = !source->problem.empty() ? kProblem
                                : source->ring           ? source->ring->next()
                                                         : source->called_for;
    news = news || source->called_for != there;
    source->called_for = there;
  }
  return news;
}

// ---- wait-sets ----

void Reader::attach(WaitSet& waitset, std::uint32_t bell) {
  const std::lock_guard lock(mutex_);
  if (waitset_ != nullptr) throw Failed("shm: the reader is attached to a wait-set already");
  waitset_ = &waitset;
  set_bell(bell);
}

void Reader::detach() noexcept {
  const std::lock_guard lock(mutex_);
  waitset_ = nullptr;
  set_bell(0);
}

void Reader::set_bell(std::uint32_t bell) noexcept {
  waitset_bell_ = bell;
  for (const auto& source : sources_) participant.board().cell(source->cell).bells[0].store(bell);
}

void Reader::ring_own_bells() const noexcept {
  participant.board().ring(waitset_bell_);
  if (listener.on_data != nullptr) participant.board().ring(participant.data_bell());
}

// ---- on the control thread ----

std::uint32_t Reader::expect(const perflab_identity& writer, const perflab_qos& offered,
                             std::shared_ptr<Board> board) {
  const std::lock_guard lock(mutex_);
  auto source = std::make_unique<Source>(Source{
      .writer = writer, .qos = offered, .board = std::move(board), .cell = participant.board().take_cell()});
  Cell& cell = participant.board().cell(source->cell);
  cell.bells[0].store(waitset_bell_);
  if (listener.on_data != nullptr) cell.bells[1].store(participant.data_bell());
  return sources_.emplace_back(std::move(source))->cell;
}

std::int64_t Reader::lifespan(const perflab_identity& writer) noexcept {
  const std::lock_guard lock(mutex_);
  const Source* const source = find(writer);
  return source == nullptr ? PERFLAB_DURATION_INFINITE : source->qos.lifespan_ns;
}

Source* Reader::find(const perflab_identity& writer) noexcept {
  const auto at =
      std::ranges::find_if(sources_, [&](const auto& source) { return same(source->writer, writer); });
  return at == sources_.end() ? nullptr : at->get();
}

void Reader::start(const perflab_identity& writer, const Descriptor& ring, std::uint64_t first) {
  const std::lock_guard lock(mutex_);
  Source* const source = find(writer);
  if (source == nullptr || source->ring) return;
  try {
    source->ring.emplace(ring);
    source->first = source->at = source->end = source->called_for = first;
    source->matched = true;
    source->matched_ns = participant.host_now_ns();
    participant.report(*this, PERFLAB_MATCHED, writer, 1);
    set_alive(*source, is_alive(*source, source->matched_ns));
  } catch (const std::exception& failure) {
    close(*source, failure.what());
  }
  ring_own_bells();  // messages may have come before the ring
}

void Reader::peer_gone(const perflab_identity& writer) {
  const std::lock_guard lock(mutex_);
  Source* const source = find(writer);
  if (source == nullptr) return;
  source->gone = true;
  set_unmatched(*source);
  ring_own_bells();  // the writer may have died before it rang
}

bool Reader::is_alive(const Source& source, std::int64_t now_ns) const noexcept {
  return !finite(source.qos.lease_duration_ns) ||
         now_ns - source.ring->asserted_ns() < source.qos.lease_duration_ns;
}

void Reader::set_alive(Source& source, bool alive) {
  if (!source.matched || source.alive == alive) return;
  source.alive = alive;
  participant.report(*this, PERFLAB_LIVELINESS_CHANGED, source.writer, alive ? 1 : -1);
}

void Reader::set_unmatched(Source& source) {
  if (!source.matched) return;
  set_alive(source, false);
  source.matched = false;
  participant.report(*this, PERFLAB_UNMATCHED, source.writer, 1);
}

std::int64_t Reader::tick(std::int64_t now_ns) {
  const std::lock_guard lock(mutex_);
  std::int64_t due_ns = PERFLAB_DURATION_INFINITE;
  std::int64_t last_ns = 0;
  std::erase_if(sources_, [&](const auto& source) {
    Entry entry;
    const bool has_more = find_next(*source, entry);
    if (source->lost > 0) {
      participant.note_lost(source->lost);
      const auto count = static_cast<std::int32_t>(std::min<std::uint64_t>(source->lost, INT32_MAX));
      participant.report(*this, PERFLAB_SAMPLE_LOST, source->writer, count);
      source->lost = 0;
    }
    const bool is_closed = source->is_told;
    if (is_closed) {
      set_unmatched(*source);
      participant.note_closed(source->problem);
    }
    if (is_closed || (source->gone && !has_more && source->problem.empty())) {
      participant.board().return_cell(source->cell);
      return true;
    }
    if (!source->matched) return false;
    // A history exists as soon as the writer does.
    if (source->ring->next() > source->first)
      last_ns = std::max({last_ns, source->ring->written_ns(), source->matched_ns});
    const std::int64_t lease_ns = source->qos.lease_duration_ns;
    if (finite(lease_ns)) {
      const bool alive = is_alive(*source, now_ns);
      set_alive(*source, alive);
      due_ns = std::min(due_ns, alive ? source->ring->asserted_ns() + lease_ns : now_ns + part_of(lease_ns));
    }
    return false;
  });
  const std::int32_t missed = deadline_.missed(now_ns, last_ns);
  if (missed > 0) participant.report(*this, PERFLAB_DEADLINE_MISSED, {}, missed);
  return std::min(due_ns, deadline_.due_ns(now_ns));
}

}  // namespace perflab::middleware::shm
