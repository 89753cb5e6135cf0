#include "traceview/folded.h"

#include <algorithm>
#include <span>
#include <stdexcept>
#include <unordered_map>

namespace perflab::traceview {
namespace {

// A phase, callback or function call on a thread, with begin and end.
struct Frame {
  enum class Kind : std::uint8_t { function, phase, callback };
  std::int64_t begin_ns = 0, end_ns = 0;
  std::int32_t text = 0;
  Kind kind = Kind::function;
};

struct Stretch {
  std::int64_t begin_ns, end_ns;
};

// Stacks as a tree with one node per frame and parent.
class Stacks {
 public:
  // Number of a text; characters that separate frames and lines are replaced.
  std::int32_t text(std::string name) {
    std::replace(name.begin(), name.end(), ';', ',');
    std::replace_if(
        name.begin(), name.end(), [](char c) { return static_cast<unsigned char>(c) < 0x20; }, ' ');
    const auto [found, is_new] = text_by_name_.try_emplace(name, static_cast<std::int32_t>(texts_.size()));
    if (is_new) texts_.push_back(std::move(name));
    return found->second;
  }
  // Node of a frame below another; kNone is the parent of the outermost.
  std::int32_t under(std::int32_t node, std::int32_t text) {
    const auto key =
        static_cast<std::uint64_t>(static_cast<std::uint32_t>(node)) << 32 | static_cast<std::uint32_t>(text);
    const auto [found, is_new] = node_by_key_.try_emplace(key, static_cast<std::int32_t>(nodes_.size()));
    if (is_new) nodes_.push_back({node, text, 0});
    return found->second;
  }
  void add(std::int32_t node, std::int64_t ns) { nodes_[at(node)].ns += ns; }

  [[nodiscard]] std::vector<std::string> lines() const {
    std::vector<std::string> out;
    for (const Node& node : nodes_) {
      if (node.ns > 0) out.push_back(path(node) + " " + std::to_string(node.ns));
    }
    std::sort(out.begin(), out.end());
    return out;
  }

 private:
  struct Node {
    std::int32_t above, text;
    std::int64_t ns;
  };

  [[nodiscard]] std::string path(const Node& node) const {
    const std::string& own = texts_[at(node.text)];
    return node.above == kNone ? own : path(nodes_[at(node.above)]) + ";" + own;
  }

  std::unordered_map<std::string, std::int32_t> text_by_name_;
  std::vector<std::string> texts_;
  std::unordered_map<std::uint64_t, std::int32_t> node_by_key_;
  std::vector<Node> nodes_;
};

// Attributes a thread's stretches of time to the stacks that were open during them.
class Thread {
 public:
  Thread(Stacks& stacks, std::int32_t root, std::int32_t executor, std::int32_t other)
      : stacks_(stacks), root_(root), executor_(executor), other_(other) {}

  // Both are ordered by begin; stretches do not overlap.
  void fold(std::span<const Frame> frames, std::span<const Stretch> stretches) {
    struct Change {
      std::int64_t time_ns;
      bool opens;
      std::size_t frame;
    };
    std::vector<Change> changes;
    changes.reserve(2 * frames.size());
    for (std::size_t i = 0; i < frames.size(); ++i) {
      if (frames[i].end_ns <= frames[i].begin_ns) continue;
      changes.push_back({frames[i].begin_ns, true, i});
      changes.push_back({frames[i].end_ns, false, i});
    }
    std::stable_sort(changes.begin(), changes.end(), [](const Change& a, const Change& b) {
      return a.time_ns != b.time_ns ? a.time_ns < b.time_ns : !a.opens && b.opens;
    });
    stretches_ = stretches;
    for (std::size_t i = 0; i < changes.size();) {
      const std::int64_t time_ns = changes[i].time_ns;
      account(frames, time_ns);
      for (; i < changes.size() && changes[i].time_ns == time_ns; ++i) {
        if (changes[i].opens) {
          open_.push_back(changes[i].frame);
        } else {
          open_.erase(std::find(open_.begin(), open_.end(), changes[i].frame));
        }
      }
      is_known_ = false;
    }
    account(frames, std::numeric_limits<std::int64_t>::max());
  }

 private:
  // Adds the time of the stretches before `until` to the stack of open frames.
  void account(std::span<const Frame> frames, std::int64_t until_ns) {
    std::int64_t ns = 0;
    while (next_ < stretches_.size() && stretches_[next_].begin_ns < until_ns) {
      const Stretch& stretch = stretches_[next_];
      const std::int64_t begin = std::max(stretch.begin_ns, reached_ns_);
      ns += std::max<std::int64_t>(0, std::min(stretch.end_ns, until_ns) - begin);
      if (stretch.end_ns > until_ns) break;
      ++next_;
    }
    reached_ns_ = until_ns;
    if (ns > 0) stacks_.add(node(frames), ns);
  }

  // Stack of the open frames. Functions that called the executor are above it in reality; they appear only
  // where no callback runs, so that each callback has one place.
  std::int32_t node(std::span<const Frame> frames) {
    if (is_known_) return node_;
    const auto is = [&](Frame::Kind kind) {
      return [&, kind](std::size_t i) { return frames[i].kind == kind; };
    };
    const auto callback = std::find_if(open_.begin(), open_.end(), is(Frame::Kind::callback));
    const bool runs = callback != open_.end();
    node_ = root_;
    bool has_phase = false;
    for (auto i = open_.begin(); i != open_.end(); ++i) {
      if (frames[*i].kind == Frame::Kind::function && i < callback) continue;
      has_phase |= frames[*i].kind == Frame::Kind::phase;
      node_ = stacks_.under(node_, frames[*i].text);
    }
    if (!runs) {
      node_ = stacks_.under(node_, has_phase ? executor_ : other_);
      for (const std::size_t i : open_) {
        if (frames[i].kind == Frame::Kind::function) node_ = stacks_.under(node_, frames[i].text);
      }
    }
    is_known_ = true;
    return node_;
  }

  Stacks& stacks_;
  std::int32_t root_, executor_, other_;
  std::span<const Stretch> stretches_;
  std::size_t next_ = 0;
  std::int64_t reached_ns_ = std::numeric_limits<std::int64_t>::min();
  std::vector<std::size_t> open_;  // frames, ordered by begin
  std::int32_t node_ = kNone;
  bool is_known_ = false;  // node_ matches open_
};

class FoldedWriter {
 public:
  FoldedWriter(const ExportTables& tables, const ExportOptions& options) : t_(tables), options_(options) {}

  ExportCounts write(const ExportSink& sink) {
    const std::size_t threads = t_.threads->tid.size();
    frames_.resize(threads), stretches_.resize(threads);
    options_.wall ? find_life() : find_running();
    find_frames();
    std::uint64_t total = 0, written = 0, unknown = 0;
    const std::int32_t executor = stacks_.text("[executor]"), other = stacks_.text("[other]");
    for (std::size_t i = 0; i < threads; ++i) {
      if (stretches_[i].empty()) {
        unknown += !frames_[i].empty();
        continue;
      }
      std::stable_sort(frames_[i].begin(), frames_[i].end(), [](const Frame& a, const Frame& b) {
        return a.begin_ns != b.begin_ns ? a.begin_ns < b.begin_ns : a.end_ns > b.end_ns;
      });
      ++written;
      for (const Stretch& stretch : stretches_[i]) {
        total += static_cast<std::uint64_t>(stretch.end_ns - stretch.begin_ns);
      }
      Thread(stacks_, root(i), executor, other).fold(frames_[i], stretches_[i]);
    }
    std::uint64_t bytes = 0;
    const auto lines = stacks_.lines();
    for (const std::string& line : lines) {
      bytes += line.size() + 1;
      sink(line + "\n");
    }
    return {{"stacks", lines.size()},      {"threads", written},
            {"total_ns", total},           {"threads_without_scheduler", unknown},
            {"without_end", without_end_}, {"bytes", bytes}};
  }

 private:
  void find_running() {
    const ThreadStates& states = *t_.thread_states;
    if (states.thread.size() == 0) {
      throw std::invalid_argument(
          "the trace has no scheduler events, so time on a CPU is unknown; record them, too, or weigh "
          "wall time "
          "with --wall");
    }
    for (std::size_t row = 0; row < states.thread.size(); ++row) {  // ordered by thread and time
      if (states.state[row] != ThreadState::running) continue;
      stretches_[at(states.thread[row])].push_back({states.start_ns[row], states.end_ns[row]});
    }
  }

  void find_life() {
    const Threads& threads = *t_.threads;
    for (std::size_t i = 0; i < threads.tid.size(); ++i) {
      if (!threads.process.valid(i) || !threads.first_ns.valid(i) || !threads.last_ns.valid(i)) continue;
      if (threads.first_ns[i] < threads.last_ns[i])
        stretches_[i].push_back({threads.first_ns[i], threads.last_ns[i]});
    }
  }

  void find_frames() {
    for (std::size_t row = 0; row < t_.phases->thread.size(); ++row) {
      const char* name = names(PhaseKind{})[static_cast<std::size_t>(t_.phases->phase[row])];
      add(*t_.phases, row, Frame::Kind::phase, [&] { return stacks_.text(name); });
    }
    std::vector<std::int32_t> callbacks(t_.callbacks->handle.size(), kNone),
        functions(options_.functions.size(), kNone);
    for (std::size_t row = 0; row < t_.callback_instances->thread.size(); ++row) {
      const Int32& callback = t_.callback_instances->callback;
      add(*t_.callback_instances, row, Frame::Kind::callback, [&] {
        if (!callback.valid(row)) return stacks_.text("a callback that is not known");
        return text_of(callbacks, options_.callbacks, callback[row]);
      });
    }
    for (std::size_t row = 0; row < t_.function_calls->thread.size(); ++row) {
      add(*t_.function_calls, row, Frame::Kind::function,
          [&] { return text_of(functions, options_.functions, t_.function_calls->function[row]); });
    }
  }

  template <typename Table, typename F>
  void add(const Table& table, std::size_t row, Frame::Kind kind, F&& text) {
    if (!table.thread.valid(row)) return;
    if (!table.end_ns.valid(row)) {
      ++without_end_;
      return;
    }
    frames_[at(table.thread[row])].push_back({table.start_ns[row], table.end_ns[row], text(), kind});
  }

  std::int32_t text_of(std::vector<std::int32_t>& known, const std::vector<std::string>& names,
                       std::int32_t row) {
    if (row < 0 || at(row) >= known.size()) return stacks_.text(export_name(names, row));
    std::int32_t& text = known[at(row)];
    if (text == kNone) text = stacks_.text(export_name(names, row));
    return text;
  }

  // Process and thread with their numbers: a program may run several times, and threads have the name of
  // their program.
  std::int32_t root(std::size_t thread) {
    std::string process = "[no process known]";
    if (t_.threads->process.valid(thread)) {
      const std::int32_t row = t_.threads->process[thread];
      process =
          export_name(options_.processes, row) + " (" + std::to_string(t_.processes->pid[at(row)]) + ")";
    }
    if (options_.wall) process += " [wall time]";
    const std::string name = export_name(options_.threads, static_cast<std::int32_t>(thread)) + " (" +
                             std::to_string(t_.threads->tid[thread]) + ")";
    return stacks_.under(stacks_.under(kNone, stacks_.text(process)), stacks_.text(name));
  }

  const ExportTables& t_;
  const ExportOptions& options_;
  Stacks stacks_;
  std::vector<std::vector<Frame>> frames_;       // by thread
  std::vector<std::vector<Stretch>> stretches_;  // by thread
  std::uint64_t without_end_ = 0;
};

}  // namespace

ExportCounts write_folded(const ExportTables& tables, const ExportOptions& options, const ExportSink& sink) {
  return FoldedWriter(tables, options).write(sink);
}

}  // namespace perflab::traceview
