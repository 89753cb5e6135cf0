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

constexpr std::size_t kBatchEvents = 256;  // of all inputs together they should stay in the cache
constexpr std::size_t kBatches = 8;        // of each input, where worker threads decode ahead
constexpr std::size_t kFewestBatches = 2;  // where there are many inputs
constexpr std::size_t kFewestEvents = 16;
constexpr std::size_t kSlotsOfEvent = 16;  // a guess that holds for most
constexpr std::size_t kMostElements = 64 * 1024;
constexpr std::size_t kOrdered = 256;

// Words of 8 bytes in all batches of all inputs, unless the fewest events of so many inputs take more.
constexpr std::size_t kAllWords = (std::size_t{64} << 20U) / sizeof(std::uint64_t);
constexpr std::size_t kWordsOfEvent = sizeof(Event) / sizeof(std::uint64_t) + kSlotsOfEvent;

// How much may be decoded ahead of each input.
struct Share {
  std::size_t batches = 0;  // beside the current one
  std::size_t events = 0;   // of a batch
  std::size_t slots = 0;
  std::size_t elements = 0;

  Share(std::size_t inputs, bool ahead) {
    const std::size_t words = kAllWords / std::max<std::size_t>(inputs, 1);  // of one input
    if (ahead)
      batches = std::clamp(words / (kBatchEvents * kWordsOfEvent), kFewestBatches + 1, kBatches + 1) - 1;
    const std::size_t of_batch = words / (batches + 1);
    events = std::clamp(of_batch / kWordsOfEvent, kFewestEvents, kBatchEvents);
    slots = kSlotsOfEvent * events;
    elements = std::clamp(of_batch, kSlotsOfEvent * kFewestEvents, kMostElements);
  }
};

// Events of one input, decoded ahead, with all that they point to.
struct Batch {
  std::vector<Event> events;
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
  std::size_t most_events = kFewestEvents;  // of the next batch: few at first, as most streams may be short
  std::atomic<std::size_t> words{0};        // of all batches

  // Of the thread that takes the events.
  std::unique_ptr<Batch> current = std::make_unique<Batch>();

  // Under the mutex.
  std::deque<std::unique_ptr<Batch>> ready;
  std::vector<std::unique_ptr<Batch>> empty;
  bool busy = false;  // a thread decodes
  bool done = false;
  std::exception_ptr error;

  static std::size_t words_of(const Batch& batch) {
    return batch.events.capacity() * (sizeof(Event) / sizeof(std::uint64_t)) + batch.slots.capacity() +
           batch.elements.capacity();
  }

  // False at the end of the stream.
  bool fill(Batch& batch) {
    batch.count = 0;
    if (reader.at_end()) return false;
    const std::size_t before = words_of(batch);
    const std::size_t slots = std::max<std::size_t>(kSlotsOfEvent * most_events, reader.slots());
    if (batch.events.size() < most_events + 1)
      batch.events = std::vector<Event>(most_events + 1);  // see Lane
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
    return batch.count != 0;
  }
};

std::uint64_t ordered_time(std::int64_t time_ns) noexcept {
  return static_cast<std::uint64_t>(time_ns) ^ (std::uint64_t{1} << 63U);
}

// Where an input stands in its current batch. The time of the event after the first is loaded before it is
// known that it is wanted; that after the last event of a batch is not used.
struct Lane {
  const Event* at = nullptr;
  const Event* end = nullptr;
  std::uint64_t next_time = 0;
  std::uint32_t trace_index = 0;
};

}  // namespace

struct Merger::State {
  // Inputs that are at their end come last.
  struct Key {
    std::uint64_t time = 0;   // in the order of the signed ones
    std::uint64_t order = 0;  // the input; with kEnded added at its end

    [[nodiscard]] std::uint64_t before(const Key& other) const noexcept {
      return static_cast<std::uint64_t>(time < other.time) |
             (static_cast<std::uint64_t>(time == other.time) &
              static_cast<std::uint64_t>(order < other.order));
    }
  };
  static constexpr std::uint64_t kEnded = std::uint64_t{1} << 32U;

  std::vector<std::unique_ptr<Input>> inputs;
  std::vector<Lane> lanes;  // of the inputs
  // [0] is the winner, [1, n) the losers of the matches: node i plays for node i / 2.
  std::vector<Key> losers;
  bool started = false;
  std::vector<Ordered> ordered = std::vector<Ordered>(kOrdered);

  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::condition_variable work, result;
  std::size_t sleeping = 0;        // worker threads
  const Input* awaited = nullptr;  // by the thread that takes the events
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
    // The thread that takes the events is one of them.
    const std::size_t count = std::min<std::size_t>(threads - 1, inputs.size());
    for (std::size_t i = 0; i < count; ++i) workers.emplace_back([this] { decode_ahead(); });
  }

  // The input that will be waited for first, as far as can be known.
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

  // Decodes a batch, during which the lock is not held.
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

  // A new batch becomes the input's current one; false at its end.
  bool refill(std::size_t number) {
    Input& input = *inputs[number];
    if (!(workers.empty() ? input.fill(*input.current) : take_batch(input))) return false;
    Lane& lane = lanes[number];
    lane.at = input.current->events.data();
    lane.end = lane.at + input.current->count;
    lane.next_time = ordered_time(lane.at[1].time_ns);
    return true;
  }

  bool take_batch(Input& input) {
    std::unique_lock lock(mutex);
    if (input.current) input.empty.push_back(std::move(input.current));
    // Waking a thread costs more than decoding a batch: it must be worth it.
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

  // Of the input's first event.
  Key key_of(std::size_t number) {
    if (lanes[number].at == lanes[number].end && !refill(number)) {
      return {std::numeric_limits<std::uint64_t>::max(), number | kEnded};
    }
    return {ordered_time(lanes[number].at->time_ns), number};
  }

  // The winner of the matches below that node.
  Key play(std::size_t node) {
    const std::size_t count = inputs.size();
    if (node >= count) return key_of(node - count);
    const Key left = play(2 * node);
    const Key right = play(2 * node + 1);
    losers[node] = left.before(right) != 0 ? right : left;
    return left.before(right) != 0 ? left : right;
  }

  [[gnu::always_inline]] Key replay(Key winner, std::size_t number) {
    Key* const all = losers.data();
    for (std::size_t node = (inputs.size() + number) / 2; node > 0; node /= 2) {
      const Key loser = all[node];
      // Swapped under a mask, without a branch: which stream comes next cannot be foreseen.
      const std::uint64_t mask = std::uint64_t{0} - loser.before(winner);
      const std::uint64_t order = (loser.order ^ winner.order) & mask;
      const std::uint64_t time = (loser.time ^ winner.time) & mask;
      all[node] = {loser.time ^ time, loser.order ^ order};
      winner = {winner.time ^ time, winner.order ^ order};
    }
    return winner;
  }

  // As many as are known to be in order: up to the end of any batch, as its events are pointed to.
  std::size_t merge() {
    if (inputs.empty()) return 0;
    if (!started) {
      started = true;
      losers[0] = play(1);
    } else if ((losers[0].order & kEnded) == 0) {
      const auto number = static_cast<std::size_t>(losers[0].order);
      losers[0] = replay(key_of(number), number);
    }
    Key winner = losers[0];
    std::size_t count = 0;
    Ordered* const out = ordered.data();
    while ((winner.order & kEnded) == 0) {
      const auto number = static_cast<std::size_t>(winner.order);
      Lane& lane = lanes[number];
      out[count++] = {lane.at, lane.trace_index, static_cast<std::uint32_t>(number)};
      const std::uint64_t time = lane.next_time;
      ++lane.at;
      if (lane.at == lane.end) break;
      lane.next_time = ordered_time(lane.at[1].time_ns);
      if (count == kOrdered) break;
      winner = replay({time, number}, number);
    }
    losers[0] = winner;
    return count;
  }
};

Merger::Merger(std::vector<MergeInput> inputs, unsigned threads) : state_(std::make_unique<State>()) {
  const Share share(inputs.size(), threads > 1);
  for (const auto& input : inputs) {
    state_->inputs.push_back(std::make_unique<Input>(input, share));
    state_->lanes.push_back({.trace_index = input.trace_index});
  }
  state_->losers.resize(std::max<std::size_t>(inputs.size(), 1));
  if (threads > 1 && !inputs.empty()) state_->start_workers(threads);
}

Merger::~Merger() = default;

bool Merger::merge() {
  at_ = state_->ordered.data();
  end_ = at_;
  end_ += state_->merge();
  return at_ != end_;
}

std::size_t Merger::words() const {
  std::size_t all = 0;
  for (const auto& input : state_->inputs) all += input->words.load(std::memory_order_relaxed);
  return all;
}

const StreamReader& Merger::reader(std::size_t input) const { return state_->inputs.at(input)->reader; }

}  // namespace perflab::ctf
