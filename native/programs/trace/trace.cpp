// Implements perflab_trace.h on top of View. No exception crosses the C boundary.
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>
#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <new>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "base/error.h"
#include "perflab_trace.h"
#include "traceview/arrow.h"
#include "traceview/column.h"
#include "traceview/export_input.h"
#include "traceview/folded.h"
#include "traceview/perfetto.h"
#include "traceview/plain.h"
#include "traceview/view.h"

struct perflab_trace {
  std::shared_ptr<const perflab::traceview::View> view;
  std::size_t threads = 0;  // number of rows of the table of threads

  // Keeps a text that was returned to the caller until the trace is closed.
  const char* keep(std::string text) {
    const std::lock_guard lock(mutex);
    return texts.emplace_back(std::move(text)).c_str();
  }
  std::mutex mutex;
  std::list<std::string> texts;
};

namespace {

using namespace perflab::traceview;

// Writes a message of one line, truncated at a character boundary.
void say(std::string_view text, char* error, std::size_t size) noexcept {
  if (error == nullptr || size == 0) return;
  std::size_t length = std::min(text.size(), size - 1);
  const auto continues = [&](std::size_t at) {
    return (static_cast<unsigned char>(text[at]) & 0xc0u) == 0x80u;
  };
  if (length < text.size()) {
    while (length > 0 && continues(length)) --length;
  }
  std::transform(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(length), error,
                 [](char c) { return static_cast<unsigned char>(c) < 0x20 ? ' ' : c; });
  error[length] = '\0';
}

// Calls f(table) with the named table.
template <typename V, typename F>
void with_table(const V& view, std::string_view name, F&& f) {
  bool found = false;
  std::string known;
  view.tables([&](std::string_view one, const auto& table) {
    known += known.empty() ? "" : ", ";
    known += one;
    if (found || one != name) return;
    f(table);
    found = true;
  });
  if (!found) throw std::invalid_argument("no table " + std::string(name) + "; there are " + known);
}

// Returns the result of `f`; if it throws, returns `failed` and writes the error message.
template <typename R, typename F>
R guarded(R failed, char* error, std::size_t size, F&& f) noexcept {
  try {
    return f();
  } catch (const std::bad_alloc&) {
    say("there is not enough memory for this trace", error, size);
  } catch (const std::exception& caught) {
    say(caught.what(), error, size);
  } catch (...) {
    say("the trace reader failed for an unknown reason", error, size);
  }
  return failed;
}

// Columns of interval splits.
struct Splits {
  Int64 on_cpu_ns, preempted_ns, blocked_ns, wake_up_ns;
  UInt32 migrations;
  template <typename F>
  void columns(F&& f) const {
    f("on_cpu_ns", on_cpu_ns), f("preempted_ns", preempted_ns), f("blocked_ns", blocked_ns),
        f("wake_up_ns", wake_up_ns), f("migrations", migrations);
  }
};

// Time intervals given by the caller.
struct Stretches {
  std::span<const std::int32_t> threads;
  std::span<const std::int64_t> begins, ends;
  std::size_t known_threads = 0;

  [[nodiscard]] bool sensible(std::size_t i) const {
    return threads[i] >= 0 && static_cast<std::size_t>(threads[i]) < known_threads && begins[i] <= ends[i];
  }
};

Splits split(const View& view, const Stretches& stretches) {
  Splits out;
  const std::size_t n = stretches.threads.size();
  out.on_cpu_ns.reserve(n), out.preempted_ns.reserve(n), out.blocked_ns.reserve(n), out.wake_up_ns.reserve(n);
  out.migrations.reserve(n);
  const auto& scheduler = view.scheduler();
  const bool known = !scheduler.empty();
  for (std::size_t i = 0; i < n; ++i) {
    const auto one = known && stretches.sensible(i)
                         ? scheduler.split(stretches.threads[i], stretches.begins[i], stretches.ends[i])
                         : std::nullopt;
    if (one) {
      out.on_cpu_ns.push(one->on_cpu_ns), out.preempted_ns.push(one->preempted_ns);
      out.blocked_ns.push(one->blocked_ns), out.wake_up_ns.push(one->wake_up_ns);
      out.migrations.push(one->migrations);
    } else {
      out.on_cpu_ns.push_null(), out.preempted_ns.push_null(), out.blocked_ns.push_null();
      out.wake_up_ns.push_null(), out.migrations.push_null();
    }
  }
  return out;
}

auto holds(const View& view, const Stretches& stretches) {
  using HoldsOf = decltype(view.scheduler().holds_of(stretches.threads, stretches.begins, stretches.ends));
  if (view.scheduler().empty()) return HoldsOf{};
  std::vector<std::uint32_t> which;
  std::vector<std::int32_t> threads;
  std::vector<std::int64_t> begins, ends;
  for (std::size_t i = 0; i < stretches.threads.size(); ++i) {
    if (!stretches.sensible(i)) continue;
    which.push_back(static_cast<std::uint32_t>(i));
    threads.push_back(stretches.threads[i]);
    begins.push_back(stretches.begins[i]);
    ends.push_back(stretches.ends[i]);
  }
  HoldsOf out = view.scheduler().holds_of(threads, begins, ends);
  for (std::size_t row = 0; row < out.interval.size(); ++row) out.interval.set(row, which[out.interval[row]]);
  return out;
}

// Exports a table that was created for a single call.
template <typename F>
int answer(const perflab_trace& trace, F&& make, const std::int32_t* threads, const std::int64_t* begins,
           const std::int64_t* ends, std::size_t n, ArrowArrayStream* out) {
  const Stretches stretches{{threads, n}, {begins, n}, {ends, n}, trace.threads};
  const auto table =
      std::make_shared<const decltype(make(*trace.view, stretches))>(make(*trace.view, stretches));
  export_table(*table, table, out);
  return 0;
}

// A file that is overwritten from its beginning. Throws if writing fails.
class OutputFile {
 public:
  explicit OutputFile(std::string path)
      : path_(std::move(path)), file_(::open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666)) {
    if (!file_.open()) fail();
  }

  void write(std::string_view bytes) {
    buffer_ += bytes;
    if (buffer_.size() >= kBuffer) flush();
  }
  // Returns when everything is on disk.
  void finish() {
    flush();
    if (::fsync(file_.number()) != 0 && errno != EINVAL && errno != EROFS) fail();  // a pipe or device has no
                                                                                    // disk
    if (!file_.close()) fail();
  }

 private:
  static constexpr std::size_t kBuffer = std::size_t{1} << 20;

  void flush() {
    if (!perflab::write_all(file_, buffer_)) fail();
    buffer_.clear();
  }
  [[noreturn]] void fail() const { throw perflab::Failed("cannot write " + path_ + ": " + perflab::reason_of(errno)); }

  std::string path_;
  perflab::Descriptor file_;
  std::string buffer_;
};

ExportCounts export_to(const View& view, std::string_view format, const char* path, const char* options) {
  const bool is_perfetto = format == "perfetto";
  if (!is_perfetto && format != "folded") {
    throw std::invalid_argument("no format " + std::string(format) + "; there are perfetto, folded");
  }
  if (!view.is_whole()) throw std::invalid_argument("the trace was opened for some of its columns only");
  const ExportOptions parsed = parse_export_options(options);
  OutputFile file(path);
  const auto sink = [&file](std::string_view bytes) { file.write(bytes); };
  const auto write = is_perfetto ? write_perfetto : write_folded;
  const ExportCounts counts = write(export_tables(view), parsed, sink);
  file.finish();
  return counts;
}

std::string json_of(const ExportCounts& counts) {
  std::string out = "{";
  for (const auto& [name, n] : counts) {
    if (out.size() > 1) out += ", ";
    out.append("\"").append(name).append("\": ").append(std::to_string(n));
  }
  return out + "}";
}

}  // namespace

extern "C" {

perflab_trace* perflab_trace_open(const char* const* paths, size_t count, unsigned threads,
                                  const char* const* columns, size_t column_count, char* error,
                                  size_t error_size) {
  return guarded<perflab_trace*>(nullptr, error, error_size, [&] {
    const std::vector<std::filesystem::path> all(paths, paths + count);
    auto trace = std::make_unique<perflab_trace>();
    ViewOptions options{.threads = threads};
    if (columns != nullptr) options.columns.emplace(columns, columns + column_count);
    trace->view = View::open(all, options);
    trace->view->tables([&](std::string_view name, const auto& table) {
      if (name != "threads") return;
      table.columns([&](const char*, const auto& column) { trace->threads = column.size(); });
    });
    return trace.release();
  });
}

void perflab_trace_close(perflab_trace* trace) { delete trace; }

const char* perflab_trace_facts(const perflab_trace* trace) { return trace->view->facts().c_str(); }

int perflab_trace_table(perflab_trace* trace, const char* name, ArrowArrayStream* out, char* error,
                        size_t error_size) {
  return guarded(-1, error, error_size, [&] {
    with_table(*trace->view, name, [&](const auto& table) { export_table(table, trace->view, out); });
    return 0;
  });
}

const char* perflab_trace_rows(perflab_trace* trace, const char* name, char* error, size_t error_size) {
  return guarded<const char*>(nullptr, error, error_size, [&] {
    std::string json;
    with_table(*trace->view, name, [&](const auto& table) { json = rows_json(plain_columns(table)); });
    return trace->keep(std::move(json));
  });
}

const char* perflab_trace_count(perflab_trace* trace, const char* question, char* error, size_t error_size) {
  return guarded<const char*>(nullptr, error, error_size, [&] {
    const CountQuestion asked = parse_count(question);
    std::string json;
    with_table(*trace->view, asked.table, [&](const auto& table) { json = count_json(plain_columns(table), asked); });
    return trace->keep(std::move(json));
  });
}

int perflab_trace_split(perflab_trace* trace, const int32_t* threads, const int64_t* begins,
                        const int64_t* ends, size_t n, ArrowArrayStream* out, char* error,
                        size_t error_size) {
  return guarded(-1, error, error_size, [&] { return answer(*trace, split, threads, begins, ends, n, out); });
}

int perflab_trace_holds(perflab_trace* trace, const int32_t* threads, const int64_t* begins,
                        const int64_t* ends, size_t n, ArrowArrayStream* out, char* error,
                        size_t error_size) {
  return guarded(-1, error, error_size, [&] { return answer(*trace, holds, threads, begins, ends, n, out); });
}

int perflab_trace_export(perflab_trace* trace, const char* format, const char* path, const char* options,
                         char* counts, size_t counts_size, char* error, size_t error_size) {
  return guarded(-1, error, error_size, [&] {
    say(json_of(export_to(*trace->view, format, path, options)), counts, counts_size);
    return 0;
  });
}

}  // extern "C"
