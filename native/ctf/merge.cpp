#include "ctf/merge.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <span>
#include <thread>
#include <utility>

#include "ctf/decoder.h"

namespace perflab::ctf {
namespace {

constexpr std::size_t kBatchEvents = 256;  // small enough that the batches of all inputs stay in the cache
constexpr std::size_t kBatches = 8;        // per input, with worker threads
constexpr std::size_t kFewestBatches = 2;  // per input, if there are many inputs
constexpr std::size_t kFewestEvents = 16;
constexpr std::size_t kSlotsOfEvent = 16;  // an estimate; most events need fewer
constexpr std::size_t kMostElements = 64 * 1024;
constexpr std::size_t kRound = 4096;  // events sorted together, unless there are many inputs
constexpr std::size_t kFewestOfRound = 64;

// Limit of all batches of all inputs, in words of 8 bytes; exceeded only if the inputs are so many that the
// smallest batches need more.
constexpr std::size_t kAllWords = (std::size_t{64} << 20U) / sizeof(std::uint64_t);
constexpr std::size_t kWordsOfEvent = sizeof(Event) / sizeof(std::uint64_t) + kSlotsOfEvent;

// Limits on decoding ahead, per input.
struct Share {
  std::size_t batches = 0;  // in addition to the current one
  std::size_t events = 0;   // per batch
  std::size_t slots = 0;
  std::size_t elements = 0;

  Share(std::size_t inputs, bool ahead) {
    const std::size_t words = kAllWords / std::max<std::size_t>(inputs, 1);  // per input
    if (ahead)
      batches = std::clamp(words / (kBatchEvents * kWordsOfEvent), kFewestBatches + 1, kBatches + 1) - 1;
    const std::size_t of_batch = words / (batches + 1);
    events = std::clamp(of_batch / kWordsOfEvent, kFewestEvents, kBatchEvents);
    slots = kSlotsOfEvent * events;
    elements = std::clamp(of_batch, kSlotsOfEvent * kFewestEvents, kMostElements);
  }
};

// Events of one input, decoded ahead, and the memory that they point to.
struct Batch {
  std::vector<Event> events;
  std::vector<std::uint64_t> keys;  // sort keys: event times, raised to the predecessor's key if that is later
  std::size_t count = 0;
  std::vector<std::uint64_t> slots;
  ElementMemory elements;
};

struct Input {
  Input(const MergeInput& from, const Share& of_input)
      : reader(*from.trace, from.stream, from.wanted, from.in_place), shift_ns(from.shift_ns), share(of_input) {}

  StreamReader reader;
  std::int64_t shift_ns;
  Share share;
  std::size_t most_events = kFewestEvents;  // limit of the next batch; starts small, as many streams are short
  std::atomic<std::size_t> words{0};        // in all batches

  // Only accessed by the consumer thread.
  std::unique_ptr<Batch> current = std::make_unique<Batch>();

  // Guarded by the mutex.
  std::deque<std::unique_ptr<Batch>> ready;
  std::vector<std::unique_ptr<Batch>> empty;
  bool busy = false;  // a thread decodes
  bool done = false;
  std::exception_ptr error;

  static std::size_t words_of(const Batch& batch) {
    return batch.events.capacity() * (sizeof(Event) / sizeof(std::uint64_t)) + batch.keys.capacity() +
           batch.slots.capacity() + batch.elements.capacity();
  }

  // False at the end of the stream.
  bool fill(Batch& batch) {
    batch.count = 0;
    if (reader.at_end()) return false;
    const std::size_t before = words_of(batch);
    const std::size_t slots = std::max<std::size_t>(kSlotsOfEvent * most_events, reader.slots());
    if (batch.events.size() < most_events) {
      batch.events = std::vector<Event>(most_events);
      batch.keys = std::vector<std::uint64_t>(most_events);
    }
    if (batch.slots.size() < slots) batch.slots = std::vector<std::uint64_t>(slots);
    batch.elements.clear();
    batch.count = reader.next(std::span(batch.events).first(most_events), std::span(batch.slots),
                              batch.elements, share.elements);
    words.fetch_add(words_of(batch) - before, std::memory_order_relaxed);
    most_events = std::min(share.events, 4 * most_events);
    if (shift_ns != 0) {
      for (Event& event : std::span(batch.events).first(batch.count)) {
        event.time_ns = static_cast<std::int64_t>(static_cast<std::uint64_t>(event.time_ns) +
                                                  static_cast<std::uint64_t>(shift_ns));
      }
    }
    std::uint64_t latest = 0;
    for (std::size_t i = 0; i < batch.count; ++i) {
      latest = std::max(latest, ordered_time(batch.events[i].time_ns));
      batch.keys[i] = latest;
    }
    return batch.count != 0;
  }

  // Maps signed times to unsigned numbers in the same order.
  static std::uint64_t ordered_time(std::int64_t time_ns) noexcept {
    return static_cast<std::uint64_t>(time_ns) ^ (std::uint64_t{1} << 63U);
  }
};

// Position of an input in its current batch.
struct Lane {
  const Event* events = nullptr;
  const std::uint64_t* keys = nullptr;
  std::size_t left = 0;
  bool ended = false;
  std::uint32_t trace_index = 0;
};

// Selects one of two pointers without a branch, as the branch predictor cannot guess which stream comes next.
template <typename T>
[[gnu::always_inline]] inline const T* either(bool second, const T* one, const T* other) noexcept {
  const auto a = reinterpret_cast<std::uintptr_t>(one), b = reinterpret_cast<std::uintptr_t>(other);
  return reinterpret_cast<const T*>(a ^ ((a ^ b) & (std::uintptr_t{0} - static_cast<std::uintptr_t>(second))));
}

}  // namespace

struct Merger::State {
  std::vector<std::unique_ptr<Input>> inputs;
  std::vector<Lane> lanes;  // one per input
  std::vector<Ordered> ordered, merged;  // events of the round, and the output buffer of merge_pairs()
  std::vector<std::size_t> ends;         // ends of the sorted parts of `ordered`

  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::condition_variable work, result;
  std::size_t sleeping = 0;        // worker threads
  const Input* awaited = nullptr;  // by the consumer thread
  std::vector<std::thread> workers;

  ~State() {
    {
      const std::lock_guard lock(mutex);
      stop = true;
    }
    work.notify_all();
    for (auto& worker : workers) worker.join();
  }

  void start_workers(unsigned threads) {
    for (auto& input : inputs) {
      input->reader.stop_when(stop);
      for (std::size_t i = 0; i < input->share.batches; ++i)
        input->empty.push_back(std::make_unique<Batch>());
    }
    // The consumer thread counts as one of the threads.
    const std::size_t count = std::min<std::size_t>(threads - 1, inputs.size());
    for (std::size_t i = 0; i < count; ++i) workers.emplace_back([this] { decode_ahead(); });
  }

  // The input with the fewest batches ready, which the consumer will probably wait for first.
  Input* most_urgent() {
    Input* chosen = nullptr;
    for (auto& input : inputs) {
      if (input->busy || input->done || input->empty.empty()) continue;
      if (chosen == nullptr || input->ready.size() < chosen->ready.size()) chosen = input.get();
    }
    return chosen;
  }

  void decode_ahead() {
    std::unique_lock lock(mutex);
    while (!stop) {
      Input* const input = most_urgent();
      if (input == nullptr) {
        ++sleeping;
        work.wait(lock);
        --sleeping;
        continue;
      }
      auto batch = decode(*input, lock);
      (batch->count != 0 ? input->ready.push_back(std::move(batch))
                         : input->empty.push_back(std::move(batch)));
      if (awaited == input) result.notify_one();
    }
  }

  // Decodes a batch; releases the lock meanwhile.
  std::unique_ptr<Batch> decode(Input& input, std::unique_lock<std::mutex>& lock) {
    auto batch = std::move(input.empty.back());
    input.empty.pop_back();
    input.busy = true;
    lock.unlock();
    bool more = false;
    std::exception_ptr error;
    try {
      more = input.fill(*batch);
    } catch (...) {
      error = std::current_exception();
    }
    lock.lock();
    input.busy = false;
    input.done = !more;
    input.error = error;
    return batch;
  }

  // Replaces the input's current batch by the next one; false at the end of the input.
  bool refill(std::size_t number) {
    Input& input = *inputs[number];
    if (!(workers.empty() ? input.fill(*input.current) : take_batch(input))) return false;
    Lane& lane = lanes[number];
    lane.events = input.current->events.data();
    lane.keys = input.current->keys.data();
    lane.left = input.current->count;
    return true;
  }

  bool take_batch(Input& input) {
    std::unique_lock lock(mutex);
    if (input.current) input.empty.push_back(std::move(input.current));
    // Waking a thread costs more than decoding a batch, so a worker is woken only for several batches.
    if (sleeping != 0 && !input.done && input.empty.size() > input.share.batches / 2) work.notify_one();
    awaited = &input;
    result.wait(lock, [&] { return !input.busy || !input.ready.empty(); });
    awaited = nullptr;
    if (!input.ready.empty()) {
      input.current = std::move(input.ready.front());
      input.ready.pop_front();
      return true;
    }
    if (!input.done) input.current = decode(input, lock);
    if (!input.done) return true;
    if (input.error) std::rethrow_exception(std::exchange(input.error, nullptr));
    return false;
  }

  // A round takes from each input the events that precede all events not decoded yet, so that no pointers into a batch
  // remain when the batch is decoded again. These are the events up to the lowest of the inputs' last keys (the first
  // input's, if keys are equal), because keys only grow within an input.
  std::size_t merge() {
    const std::size_t most = std::max(kRound / std::max<std::size_t>(inputs.size(), 1), kFewestOfRound);
    std::uint64_t horizon = std::numeric_limits<std::uint64_t>::max();
    std::size_t last = inputs.size();  // the input with that key
    for (std::size_t number = 0; number < lanes.size(); ++number) {
      Lane& lane = lanes[number];
      if (lane.left == 0 && !lane.ended) lane.ended = !refill(number);
      if (lane.left == 0) continue;
      const std::uint64_t key = lane.keys[std::min(most, lane.left) - 1];
      if (last == inputs.size() || key < horizon) {
        horizon = key;
        last = number;
      }
    }
    ends.clear();
    std::size_t count = 0;
    for (std::size_t number = 0; number < lanes.size(); ++number) {
      const Lane& lane = lanes[number];
      const std::size_t taken = taken_of(lane, horizon, number <= last);
      if (taken != 0) ends.push_back(count += taken);
    }
    if (ordered.size() < count) ordered.resize(count), merged.resize(count);
    Ordered* out = ordered.data();
    for (std::size_t number = 0; number < lanes.size(); ++number) {
      Lane& lane = lanes[number];
      const std::size_t taken = taken_of(lane, horizon, number <= last);
      for (std::size_t i = 0; i < taken; ++i)
        *out++ = {lane.keys[i], lane.events + i, lane.trace_index, static_cast<std::uint32_t>(number)};
      lane.events += taken, lane.keys += taken, lane.left -= taken;
    }
    while (ends.size() > 1) merge_pairs();
    return count;
  }

  // Number of events in the batch before the horizon, or up to and including it (`with_it`).
  static std::size_t taken_of(const Lane& lane, std::uint64_t horizon, bool with_it) {
    if (lane.left == 0 || lane.keys[0] > horizon) return 0;
    const std::uint64_t* const end = lane.keys + lane.left;
    const auto* found = with_it ? std::upper_bound(lane.keys, end, horizon) : std::lower_bound(lane.keys, end, horizon);
    return static_cast<std::size_t>(found - lane.keys);
  }

  // Merges neighbouring parts in pairs. Stable: at equal keys the earlier input comes first.
  void merge_pairs() {
    std::size_t begin = 0, pairs = 0;
    for (std::size_t part = 0; part < ends.size(); part += 2) {
      const std::size_t middle = ends[part], end = ends[std::min(part + 1, ends.size() - 1)];
      const Ordered *a = ordered.data() + begin, *b = ordered.data() + middle;
      const Ordered *const a_end = b, *const b_end = ordered.data() + end;
      Ordered* out = merged.data() + begin;
      while (a != a_end && b != b_end) {
        const bool second = b->key < a->key;
        *out++ = *either(second, a, b);
        b += second ? 1 : 0;
        a += second ? 0 : 1;
      }
      out = std::copy(a, a_end, out);
      std::copy(b, b_end, out);
      ends[pairs++] = begin = end;
    }
    ends.resize(pairs);
    ordered.swap(merged);
  }
};

Merger::Merger(std::vector<MergeInput> inputs, unsigned threads) : state_(std::make_unique<State>()) {
  const Share share(inputs.size(), threads > 1);
  for (const auto& input : inputs) {
    state_->inputs.push_back(std::make_unique<Input>(input, share));
    state_->lanes.push_back({.trace_index = input.trace_index});
  }
  if (threads > 1 && !inputs.empty()) state_->start_workers(threads);
}

Merger::~Merger() = default;

bool Merger::merge() {
  const std::size_t count = state_->merge();
  at_ = state_->ordered.data();
  end_ = at_ + count;
  return count != 0;
}

std::size_t Merger::words() const {
  std::size_t all = 0;
  for (const auto& input : state_->inputs) all += input->words.load(std::memory_order_relaxed);
  return all;
}

const StreamReader& Merger::reader(std::size_t input) const { return state_->inputs.at(input)->reader; }

}  // namespace perflab::ctf
