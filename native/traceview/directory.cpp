#include "traceview/directory.h"

#include <algorithm>
#include <limits>

namespace perflab::traceview {

namespace {

// A thread without a known first event counts as existing from the beginning.
std::int64_t first_of(const Directory::Thread& thread) noexcept {
  return thread.first_ns.value_or(std::numeric_limits<std::int64_t>::min());
}

}  // namespace

std::int32_t Directory::host(std::string_view name, std::string_view boot) {
  const auto found = std::find_if(hosts_.begin(), hosts_.end(), [&](const Host& known) {
    return known.name == name && (boot.empty() || known.boot.empty() || known.boot == boot);
  });
  if (found != hosts_.end()) {
    if (found->boot.empty()) found->boot = boot;
    return static_cast<std::int32_t>(found - hosts_.begin());
  }
  hosts_.push_back({std::string(name), std::string(boot)});
  return static_cast<std::int32_t>(hosts_.size() - 1);
}

std::int32_t Directory::process(std::int32_t host, std::int32_t pid) {
  const std::uint64_t key = number_key(host, pid);
  if (const std::int32_t row = process_by_pid_.find(key); row >= 0) return row;
  const auto row = static_cast<std::int32_t>(processes_.size());
  Process& process = processes_.emplace_back();
  process.host = host;
  process.pid = pid;
  process_by_pid_.set(key, row);
  return row;
}

std::int32_t Directory::append(std::int32_t host, std::int32_t tid, std::optional<std::int32_t> process) {
  const auto row = static_cast<std::int32_t>(threads_.size());
  Thread& thread = threads_.emplace_back();
  thread.host = host;
  thread.process = process;
  thread.tid = tid;
  thread.older = newest_by_tid_.find(number_key(host, tid));
  newest_by_tid_.set(number_key(host, tid), row);
  return row;
}

std::int32_t Directory::thread_of(std::int32_t process, std::int32_t tid) {
  const std::int32_t host = process_row(process).host;
  const std::int32_t newest = newest_by_tid_.find(number_key(host, tid));
  for (std::int32_t row = newest; row >= 0; row = thread_row(row).older) {
    if (const Thread& thread = thread_row(row); thread.process == process && !thread.ended) return row;
  }
  // A thread that the scheduler named before its process was known.
  if (newest >= 0 && !thread_row(newest).process && !thread_row(newest).ended) {
    thread_row(newest).process = process;
    return newest;
  }
  return append(host, tid, process);
}

std::int32_t Directory::thread_at(std::int32_t host, std::int32_t tid, std::int64_t time_ns) {
  std::int32_t living = -1;  // the last thread that had begun by then
  std::int32_t next = -1;    // the first thread whose first event is later
  for (std::int32_t row = newest_by_tid_.find(number_key(host, tid)); row >= 0; row = thread_row(row).older) {
    const std::int64_t first = first_of(thread_row(row));
    if (first <= time_ns) {
      if (living < 0 || first > first_of(thread_row(living))) living = row;
    } else if (!thread_row(row).ended && (next < 0 || first < first_of(thread_row(next)))) {
      next = row;
    }
  }
  if (living >= 0 && !thread_row(living).ended) return living;
  // The thread started before its first user-space event.
  if (next >= 0) return next;
  return add_thread(host, tid, std::nullopt, time_ns);
}

std::int32_t Directory::add_thread(std::int32_t host, std::int32_t tid, std::optional<std::int32_t> process,
                                   std::int64_t first_ns) {
  const std::int32_t row = append(host, tid, process);
  thread_row(row).first_ns = first_ns;
  return row;
}

std::optional<std::int64_t> Directory::reused_ns(std::int32_t thread) const {
  const Thread& self = threads_[at(thread)];
  std::optional<std::int64_t> reused;
  for (std::int32_t row = newest_by_tid_.find(number_key(self.host, self.tid)); row >= 0;
       row = threads_[at(row)].older) {
    const std::int64_t first = first_of(threads_[at(row)]);
    if (row != thread && first > first_of(self) && (!reused || first < *reused)) reused = first;
  }
  return reused;
}

void Directory::end_thread(std::int32_t thread, std::int64_t time_ns) {
  thread_row(thread).ended = true;
  thread_row(thread).ended_ns = time_ns;
}

Hosts Directory::host_table() const {
  Hosts table;
  for (const Host& host : hosts_) table.push(text_or_null(host.name));
  return table;
}

Processes Directory::process_table() const {
  Processes table;
  for (const Process& process : processes_) {
    table.push(process.host, process.pid, text_or_null(process.name),
               text_or_null(process.tracetools_version), process.first_ns, process.last_ns, process.events);
  }
  return table;
}

Threads Directory::thread_table() const {
  Threads table;
  for (const Thread& thread : threads_) {
    table.push(thread.host, thread.process, thread.tid, text_or_null(thread.name), thread.first_ns,
               thread.last_ns, thread.events);
  }
  return table;
}

}  // namespace perflab::traceview
