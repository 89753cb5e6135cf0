// The scheduler's events by BPF programs at its tracepoints, written with raw bpf(2): no libbpf, no compiler,
// no BTF. Needs Linux 5.8, CAP_BPF with CAP_PERFMON (or root), and tracefs for the places of the fields.
//
// Against perf's ring buffers: it filters by process tree in the kernel, it takes one descriptor per
// tracepoint and not one per tracepoint and CPU, and what is left out costs no place in a buffer.
#include <linux/membarrier.h>
#include <sys/epoll.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <bit>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <map>
#include <string>
#include <system_error>

#include "tracing/scheduler/ebpf_kernel.h"
#include "tracing/scheduler/ebpf_programs.h"
#include "tracing/scheduler/process_tree.h"
#include "tracing/scheduler/source.h"

namespace perflab::tracing {
namespace {

// Threads of all trees at one time. Their places are made beforehand: the scheduler's programs cannot
// allocate.
constexpr std::uint32_t kTreeThreads = 32768;
constexpr std::uint32_t kBirths = 1024;  // threads that are being made at one time
constexpr std::size_t kBatch = 1024;     // events per call of the handler
// /proc/self/ns/pid of the initial name space (PROC_PID_INIT_INO)
constexpr ino_t kInitialPidNamespace = 0xEFFFFFFC;

std::int64_t now_ns() noexcept {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return time.tv_sec * 1'000'000'000ll + time.tv_nsec;
}

std::string file_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

// "0-3,6" as sysfs writes it.
std::vector<unsigned> parse_cpu_list(const std::string& path) {
  const std::string text = file_line(path);
  std::vector<unsigned> cpus;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    unsigned first = 0;
    auto [next, error] = std::from_chars(at, end, first);
    unsigned last = first;
    if (error == std::errc() && next < end && *next == '-') {
      const auto range = std::from_chars(next + 1, end, last);
      next = range.ptr, error = range.ec;
    }
    if (error != std::errc() || last < first || last > 0xffff || (next < end && *next != ',')) {
      cpus.clear();
      break;
    }
    for (unsigned cpu = first; cpu <= last; ++cpu) cpus.push_back(cpu);
    at = next + 1;
  }
  if (cpus.empty()) throw Unavailable("eBPF: " + path + " is no list of CPUs: \"" + text + "\"; mount sysfs");
  return cpus;
}

// Ends when no program is running on any CPU that began before. False where this kernel has no such call.
bool wait_for_running_programs() noexcept {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0;
}

class EbpfSource final : public Source {
 public:
  explicit EbpfSource(const SourceSettings& settings);
  ~EbpfSource() override { stop(); }

  [[nodiscard]] const char* name() const noexcept override { return "ebpf"; }
  [[nodiscard]] bool filters() const noexcept override { return true; }
  [[nodiscard]] std::vector<unsigned> cpus() const override { return cpus_; }
  void start() override;
  void stop() noexcept override;
  void drain(const Handler& handler, std::int64_t timeout_ns) override;
  [[nodiscard]] std::vector<Loss> take_losses() override;
  void add_root(std::int32_t pid) override;
  [[nodiscard]] std::uint64_t filtered_out() const noexcept override;

 private:
  struct Ring {
    unsigned cpu;
    bpf::Descriptor map;
    bpf::RingReader reader;
    std::int64_t last_ns = 0;  // of its events that were handed over
    std::uint32_t lost = 0;    // CpuCounts::lost at that event
  };
  struct Loaded {
    bpf::Descriptor program, attachment;
    bool writes = true;
    std::uint64_t missed = 0;  // said already
    std::uint64_t missed_at_stop = 0;
  };

  void choose_cpus(const SourceSettings& settings);
  void make_rings(std::size_t bytes_of_one);
  void load();
  void wait(std::int64_t timeout_ns);
  void drain(Ring& ring, const Handler& handler);
  bool enter(const ProcThread& thread);
  void take_losses_of_ring(Ring& ring);
  void take_losses_of_other_cpus();
  void take_missed_runs();

  bpf::Shared& shared() const noexcept { return *reinterpret_cast<bpf::Shared*>(shared_.data()); }
  bpf::CpuCounts& counts(unsigned cpu) const noexcept {
    return reinterpret_cast<bpf::CpuCounts*>(shared_.data() + sizeof(bpf::Shared))[cpu];
  }
  std::uint32_t lost_on(unsigned cpu) const noexcept {
    return std::atomic_ref(counts(cpu).lost).load(std::memory_order_relaxed);
  }
  void set_recording(bool on) noexcept {
    std::atomic_ref(shared().recording).store(on ? 1 : 0, std::memory_order_release);
  }
  void set_filter(bpf::Filter filter) noexcept {
    std::atomic_ref(shared().filter).store(filter, std::memory_order_release);
  }

  std::vector<unsigned> cpus_;
  bool all_cpus_ = true;
  unsigned possible_cpus_ = 0;
  std::size_t ring_bytes_ = 0;
  bpf::Descriptor shared_map_, tree_, births_, rings_map_, epoll_;
  bpf::Mapping shared_;
  std::vector<Ring> rings_;
  std::vector<Loaded> programs_;
  std::vector<SchedulerEvent> batch_;
  std::vector<Loss> losses_;
  std::map<unsigned, std::uint32_t> lost_elsewhere_;  // by CPU without a ring, said already
  std::int64_t missed_after_ns_ = 0;
  std::uint64_t not_followed_ = 0;  // said already
  bool started_ = false, stopped_ = false;
  std::int64_t stop_ns_ = 0;
};

EbpfSource::EbpfSource(const SourceSettings& settings) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  if (settings.buffer_bytes < page || !std::has_single_bit(settings.buffer_bytes / page) ||
      settings.buffer_bytes % page != 0)
    throw std::invalid_argument("eBPF: buffers of " + std::to_string(settings.buffer_bytes) +
                                " bytes: a power of two times " + std::to_string(page) + " would be right");
  struct stat name_space {};
  if (stat("/proc/self/ns/pid", &name_space) == 0 && name_space.st_ino != kInitialPidNamespace)
    throw Unavailable(
        "eBPF: this is a PID name space of its own, in which threads have other numbers than in the kernel's "
        "events: record on the host, or `docker run --pid=host`");
  choose_cpus(settings);
  make_rings(settings.buffer_bytes);

  const std::size_t shared_bytes = bpf::shared_bytes(possible_cpus_);
  shared_map_ = bpf::create_map(
      {"perflab_shared", BPF_MAP_TYPE_ARRAY, 4, static_cast<std::uint32_t>(shared_bytes), 1, BPF_F_MMAPABLE});
  shared_ =
      bpf::Mapping(shared_map_.get(), 0, (shared_bytes + page - 1) / page * page, true, "what is shared");
  tree_ = bpf::create_map({"perflab_tree", BPF_MAP_TYPE_HASH, 4, 4, kTreeThreads});
  births_ = bpf::create_map({"perflab_births", BPF_MAP_TYPE_LRU_HASH, 4, 4, kBirths});

  load();
  batch_.reserve(kBatch);
  for (const std::int32_t root : settings.roots) add_root(root);
}

void EbpfSource::choose_cpus(const SourceSettings& settings) {
  possible_cpus_ = parse_cpu_list("/sys/devices/system/cpu/possible").back() + 1;
  const std::vector<unsigned> online = parse_cpu_list("/sys/devices/system/cpu/online");
  all_cpus_ = settings.cpus.empty();
  cpus_ = all_cpus_ ? online : settings.cpus;
  std::ranges::sort(cpus_);
  cpus_.erase(std::unique(cpus_.begin(), cpus_.end()), cpus_.end());
  for (const unsigned cpu : cpus_)
    if (!std::ranges::binary_search(online, cpu))
      throw std::invalid_argument("eBPF: CPU " + std::to_string(cpu) +
                                  " is not online: " + file_line("/sys/devices/system/cpu/online") + " are");
}

// `bytes_of_all` is for all CPUs; each gets the same share, at least a page.
void EbpfSource::make_rings(std::size_t bytes_of_one) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  ring_bytes_ = std::max(page, std::bit_floor(bytes_of_one));
  const auto make = [&] {
    return bpf::create_map(
        {"perflab_ring", BPF_MAP_TYPE_RINGBUF, 0, 0, static_cast<std::uint32_t>(ring_bytes_)});
  };
  epoll_ = bpf::Descriptor(epoll_create1(EPOLL_CLOEXEC));
  if (epoll_.get() < 0) throw std::system_error(errno, std::generic_category(), "eBPF: epoll_create1");
  for (const unsigned cpu : cpus_) {
    bpf::Descriptor map = make();
    if (rings_map_.get() < 0)
      rings_map_ =
          bpf::create_map({"perflab_rings", BPF_MAP_TYPE_ARRAY_OF_MAPS, 4, 4, possible_cpus_, 0, map.get()});
    const int descriptor = map.get();
    bpf::set_entry(rings_map_.get(), &cpu, &descriptor, "giving a CPU its ring buffer");
    // Edges: the kernel wakes when another quarter is full. By level it would be at once, since there is
    // always something.
    epoll_event event{};
    event.events = EPOLLIN | EPOLLET;
    if (epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, descriptor, &event) != 0)
      throw std::system_error(errno, std::generic_category(), "eBPF: epoll_ctl");
    bpf::RingReader reader(descriptor, ring_bytes_);
    rings_.push_back({cpu, std::move(map), std::move(reader)});
  }
}

// The programs run from here on, but write nothing down before start(). Those that follow the tree come
// first.
void EbpfSource::load() {
  const bpf::Maps maps{.shared = shared_map_.get(),
                       .rings = rings_map_.get(),
                       .tree = tree_.get(),
                       .births = births_.get(),
                       .possible_cpus = possible_cpus_,
                       .ring_bytes = ring_bytes_,
                       .all_cpus = all_cpus_};
  for (const bpf::Program& program : bpf::make_programs(maps)) {
    Loaded& loaded = programs_.emplace_back();
    loaded.program = bpf::load_tracepoint_program(program.name.c_str(), program.code, program.reads_memory);
    loaded.writes = program.writes;
    loaded.attachment =
        bpf::attach(loaded.program.get(), program.tracepoint, program.tracepoint_id, cpus_.front());
  }
}

void EbpfSource::start() {
  if (started_) return;
  started_ = true;
  for (Loaded& loaded : programs_) loaded.missed = bpf::missed_runs(loaded.program.get());
  missed_after_ns_ = now_ns();
  set_recording(true);
}

// The programs stay until the source goes: taking them away waits for the kernel, once per tracepoint.
void EbpfSource::stop() noexcept {
  if (stopped_) return;
  stopped_ = true;
  set_recording(false);
  if (!wait_for_running_programs())
    for (Loaded& loaded : programs_) loaded.attachment.reset();
  stop_ns_ = now_ns();
  for (Loaded& loaded : programs_) loaded.missed_at_stop = bpf::missed_runs(loaded.program.get());
}

void EbpfSource::drain(const Handler& handler, std::int64_t timeout_ns) {
  if (!stopped_ && timeout_ns > 0) wait(timeout_ns);
  // First: a loss ends before the events that are handed over after it is known, and must not put them later.
  if (started_) {
    if (all_cpus_) take_losses_of_other_cpus();
    take_missed_runs();
  }
  for (Ring& ring : rings_) drain(ring, handler);
}

void EbpfSource::wait(std::int64_t timeout_ns) {
  std::array<epoll_event, 16> ready;
  const std::int64_t timeout_ms = std::min<std::int64_t>((timeout_ns + 999'999) / 1'000'000, 1'000'000);
  if (epoll_wait(epoll_.get(), ready.data(), ready.size(), static_cast<int>(timeout_ms)) < 0 &&
      errno != EINTR)
    throw std::system_error(errno, std::generic_category(), "eBPF: epoll_wait");
}

void EbpfSource::drain(Ring& ring, const Handler& handler) {
  const std::uint64_t end = ring.reader.written();
  const auto hand_over = [&] {
    if (!batch_.empty()) handler(ring.cpu, batch_);
    batch_.clear();
    ring.reader.release();
  };
  for (auto record = ring.reader.next(end); !record.empty(); record = ring.reader.next(end)) {
    SchedulerEvent& event = batch_.emplace_back();
    const auto head = bpf::head_of(record);
    if (!head || !bpf::decode(record, event)) {
      batch_.pop_back();
      throw std::runtime_error("eBPF: a record of " + std::to_string(record.size()) + " bytes of CPU " +
                               std::to_string(ring.cpu) + " is none of its programs'");
    }
    // The kernel's clock for programs may step back by nanoseconds while its rate is being adjusted.
    event.time_ns = std::max(event.time_ns, ring.last_ns);
    if (head->lost != ring.lost) {
      losses_.push_back({ring.cpu, ring.last_ns, event.time_ns, head->lost - ring.lost});
      ring.lost = head->lost;
    }
    ring.last_ns = event.time_ns;
    if (batch_.size() == kBatch) hand_over();
  }
  hand_over();
}

// Known are those before events that were drained; of the others stop() tells the end.
std::vector<Loss> EbpfSource::take_losses() {
  if (stopped_)
    for (Ring& ring : rings_) take_losses_of_ring(ring);
  return std::exchange(losses_, {});
}

void EbpfSource::take_losses_of_ring(Ring& ring) {
  const std::uint32_t lost = lost_on(ring.cpu);
  if (lost == ring.lost || ring.reader.position() < ring.reader.written()) return;
  losses_.push_back({ring.cpu, ring.last_ns, stop_ns_, lost - ring.lost});
  ring.lost = lost;
}

// CPUs that came online later have no ring.
void EbpfSource::take_losses_of_other_cpus() {
  for (unsigned cpu = 0; cpu < possible_cpus_; ++cpu) {
    if (std::ranges::binary_search(cpus_, cpu)) continue;
    const std::uint32_t lost = lost_on(cpu);
    std::uint32_t& said = lost_elsewhere_[cpu];
    if (lost == said) continue;
    losses_.push_back({std::nullopt, missed_after_ns_, stopped_ ? stop_ns_ : now_ns(), lost - said});
    said = lost;
  }
}

// The kernel runs no program of a tracepoint on a CPU where one is running, or where bpf(2) changes a map; an
// interrupt that wakes a thread just then is not seen. It counts them, but not by CPU. With a filter some of
// them may not have been of the tree.
void EbpfSource::take_missed_runs() {
  std::uint64_t events = 0;
  for (Loaded& loaded : programs_) {
    const std::uint64_t missed = stopped_ ? loaded.missed_at_stop : bpf::missed_runs(loaded.program.get());
    if (loaded.writes) events += missed - loaded.missed;
    loaded.missed = missed;
  }
  const std::uint64_t not_followed = std::atomic_ref(shared().not_followed).load(std::memory_order_relaxed);
  events += not_followed - not_followed_;  // threads whose events are left out although they are of the tree
  not_followed_ = not_followed;
  const std::int64_t now = stopped_ ? stop_ns_ : now_ns();
  if (events > 0) losses_.push_back({std::nullopt, missed_after_ns_, now, events});
  missed_after_ns_ = now;
}

// Threads that begin after their creator was entered are entered by the kernel's program; those that began
// just before are found in the next round.
void EbpfSource::add_root(std::int32_t pid) {
  if (std::atomic_ref(shared().filter).load(std::memory_order_relaxed) == bpf::Filter::off)
    set_filter(bpf::Filter::follow);
  bool found = false;
  for (bool news = true; news;) {
    news = false;
    for (const ProcThread& thread : threads_below(pid)) {
      news |= enter(thread);
      found = true;
    }
  }
  if (!found) throw std::invalid_argument("eBPF: there is no process " + std::to_string(pid) + " to keep");
  set_filter(bpf::Filter::on);
}

// False if it was there.
bool EbpfSource::enter(const ProcThread& thread) {
  const bool waits = thread.runnable && thread.cpu >= 0 && static_cast<unsigned>(thread.cpu) < possible_cpus_;
  const std::uint32_t where = waits ? static_cast<std::uint32_t>(thread.cpu) : bpf::kNeither;
  // It may be running there; its next switch tells. Counted first, since the programs count it down once it
  // is entered.
  if (waits) std::atomic_ref(counts(where).waiting).fetch_add(1);
  const bool is_new = bpf::add_entry(tree_.get(), &thread.tid, &where, "entering a thread of the tree");
  if (waits && !is_new) std::atomic_ref(counts(where).waiting).fetch_sub(1);
  return is_new;
}

std::uint64_t EbpfSource::filtered_out() const noexcept {
  std::uint64_t events = 0;
  for (const unsigned cpu : cpus_)
    events += std::atomic_ref(counts(cpu).filtered).load(std::memory_order_relaxed);
  return events;
}

}  // namespace

std::unique_ptr<Source> open_ebpf_source(const SourceSettings& settings) {
  return std::make_unique<EbpfSource>(settings);
}

}  // namespace perflab::tracing
