#include "ctf/merge.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <deque>
#include <exception>
#include <limits>
#include <mutex>
#include <thread>
#include <utility>

#include "ctf/decoder.h"

namespace perflab::ctf {
namespace {

constexpr std::size_t kBatchEvents = 1024;
constexpr std::size_t kBatchSlots = 16 * 1024;
constexpr std::size_t kBatchElements = 64 * 1024;  // slots; a batch ends at the first event beyond
constexpr std::size_t kBatches = 3;                // of each input

// Events of one input, decoded ahead, with all that they point to.
struct Batch {
  std::vector<Event> events;
  std::size_t used = 0;  // slots
  std::vector<std::uint64_t> slots;
  ElementMemory elements;
};

struct Input {
  Input(const MergeInput& from, std::uint32_t number)
      : reader(*from.trace, from.stream, from.wanted),
        layouts(&from.trace->layouts),
        shift_ns(from.shift_ns),
        trace_index(from.trace_index),
        index(number) {}

  StreamReader reader;
  const std::vector<EventLayout>* layouts;
  std::int64_t shift_ns;
  std::uint32_t trace_index;
  std::uint32_t index;
  Event head;

  // Of the consumer, where worker threads decode.
  std::unique_ptr<Batch> current;
  std::size_t at = 0;

  // Under the mutex.
  std::deque<std::unique_ptr<Batch>> ready;
  std::vector<std::unique_ptr<Batch>> empty;
  bool queued = false;  // waits for a worker, or has one
  bool done = false;
  std::exception_ptr error;

  // False at the end of the stream.
  bool fill(Batch& batch) {
    const std::size_t room = reader.slots();
    batch.slots.resize(std::max(kBatchSlots, 4 * room));
    batch.events.clear();
    batch.used = 0;
    batch.elements.clear();
    while (batch.events.size() < kBatchEvents && batch.slots.size() - batch.used >= room &&
           batch.elements.used() < kBatchElements) {
      Event event;
      if (!reader.next(event, batch.slots.data() + batch.used, batch.elements)) return false;
      batch.used += (*layouts)[event.class_index].slots;
      batch.events.push_back(event);
    }
    return true;
  }
};

std::int64_t shifted(std::int64_t time_ns, std::int64_t shift_ns) noexcept {
  return static_cast<std::int64_t>(static_cast<std::uint64_t>(time_ns) +
                                   static_cast<std::uint64_t>(shift_ns));
}

}  // namespace

struct Merger::State {
  // Inputs that are at their end come last.
  struct Key {
    std::int64_t time_ns = 0;
    std::uint32_t order = 0;  // the input; with kEnded added at its end

    [[nodiscard]] bool before(const Key& other) const noexcept {
      return time_ns < other.time_ns || (time_ns == other.time_ns && order < other.order);
    }
  };
  static constexpr std::uint32_t kEnded = std::uint32_t{1} << 31U;

  std::vector<std::unique_ptr<Input>> inputs;
  std::vector<Key>
      losers;  // [0] is the winner, [1, n) the losers of the matches: node i plays for node i / 2
  bool started = false;
  bool pending = false;  // the winner was handed out: its stream moves on with the next call

  std::atomic<bool> stop{false};
  std::mutex mutex;
  std::condition_variable work, result;
  std::deque<Input*> queue;
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
      for (std::size_t i = 0; i < kBatches; ++i) input->empty.push_back(std::make_unique<Batch>());
      input->queued = true;
      queue.push_back(input.get());
    }
    // The thread that takes the events is one of them.
    const std::size_t count = std::min<std::size_t>(threads - 1, inputs.size());
    for (std::size_t i = 0; i < count; ++i) workers.emplace_back([this] { decode_ahead(); });
  }

  void decode_ahead() {
    std::unique_lock lock(mutex);
    while (true) {
      work.wait(lock, [&] { return stop || !queue.empty(); });
      if (stop) return;
      Input& input = *queue.front();
      queue.pop_front();
      auto batch = std::move(input.empty.back());
      input.empty.pop_back();
      lock.unlock();

      bool more = false;
      std::exception_ptr error;
      try {
        more = input.fill(*batch);
      } catch (...) {
        error = std::current_exception();
      }

      lock.lock();
      input.error = error;
      input.done = !more;
      input.ready.push_back(std::move(batch));
      input.queued = more && !input.empty.empty();
      if (input.queued) {
        queue.push_back(&input);
        work.notify_one();
      }
      result.notify_one();
    }
  }

  // The next event of the input becomes its head; false at its end.
  bool advance(Input& input) {
    if (workers.empty()) return input.reader.next(input.head);
    while (!input.current || input.at == input.current->events.size()) {
      std::unique_lock lock(mutex);
      if (input.current) input.empty.push_back(std::move(input.current));
      if (!input.queued && !input.done && !input.empty.empty()) {
        input.queued = true;
        // Where this thread has to wait for it, before what others decode ahead.
        if (input.ready.empty()) {
          queue.push_front(&input);
        } else {
          queue.push_back(&input);
        }
        work.notify_one();
      }
      result.wait(lock, [&] { return !input.ready.empty() || input.done; });
      if (input.ready.empty()) {
        if (input.error) std::rethrow_exception(std::exchange(input.error, nullptr));
        return false;
      }
      input.current = std::move(input.ready.front());
      input.ready.pop_front();
      input.at = 0;
    }
    input.head = input.current->events[input.at++];
    return true;
  }

  Key next_key(std::uint32_t number) {
    Input& input = *inputs[number];
    if (!advance(input)) return {std::numeric_limits<std::int64_t>::max(), number | kEnded};
    input.head.time_ns = shifted(input.head.time_ns, input.shift_ns);
    return {input.head.time_ns, number};
  }

  // The winner of the matches below that node.
  Key play(std::size_t node) {
    const std::size_t count = inputs.size();
    if (node >= count) return next_key(static_cast<std::uint32_t>(node - count));
    const Key left = play(2 * node);
    const Key right = play(2 * node + 1);
    losers[node] = left.before(right) ? right : left;
    return left.before(right) ? left : right;
  }

  void replay() {
    const std::uint32_t number = losers[0].order & ~kEnded;
    Key winner = next_key(number);
    for (std::size_t node = (inputs.size() + number) / 2; node > 0; node /= 2) {
      if (losers[node].before(winner)) std::swap(losers[node], winner);
    }
    losers[0] = winner;
  }
};

Merger::Merger(std::vector<MergeInput> inputs, unsigned threads) : state_(std::make_unique<State>()) {
  std::uint32_t number = 0;
  for (const auto& input : inputs) state_->inputs.push_back(std::make_unique<Input>(input, number++));
  state_->losers.resize(std::max<std::size_t>(inputs.size(), 1));
  if (threads > 1 && !inputs.empty()) state_->start_workers(threads);
}

Merger::~Merger() = default;

bool Merger::next(MergedEvent& event) {
  State& state = *state_;
  if (state.inputs.empty()) return false;
  if (!state.started) {
    state.started = true;
    state.losers[0] = state.play(1);
  } else if (state.pending) {
    state.replay();
  }
  const State::Key winner = state.losers[0];
  state.pending = (winner.order & State::kEnded) == 0;
  if (!state.pending) return false;
  const Input& input = *state.inputs[winner.order];
  event.event = input.head;
  event.trace_index = input.trace_index;
  event.input = winner.order;
  return true;
}

const StreamReader& Merger::reader(std::size_t input) const { return state_->inputs.at(input)->reader; }

}  // namespace perflab::ctf
