// Scheduler events from the BPF programs of scheduler.bpf.c, which are embedded in this program. Needs Linux
// 5.12 with type information (BTF), and CAP_BPF with CAP_PERFMON (or root); neither tracefs nor a compiler.
//
// Compared to perf's ring buffers it filters by process tree in the kernel, needs one descriptor per
// tracepoint instead of one per tracepoint and CPU, and filtered events take no buffer space.
#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <linux/membarrier.h>
#include <sys/epoll.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <map>
#include <optional>
#include <string>
#include <system_error>

#include "base/proc.h"
#include "base/time.h"
#include "tracing/scheduler/ebpf_record.h"
#include "tracing/scheduler/ebpf_ring.h"
#include "tracing/scheduler/source.h"

// scheduler.bpf.o, as embedded by the linker.
extern const char _binary_scheduler_bpf_o_start[], _binary_scheduler_bpf_o_end[];

namespace perflab::tracing {
namespace {

constexpr std::size_t kBatch = 1024;  // events per handler call

struct Free {
  void operator()(bpf_object* object) const noexcept { bpf_object__close(object); }
  void operator()(bpf_link* link) const noexcept { bpf_link__destroy(link); }
};
using Object = std::unique_ptr<bpf_object, Free>;
using Link = std::unique_ptr<bpf_link, Free>;

static_assert(STATE_UNKNOWN == kStateUnknown);

constexpr const char* kCame = "sched_exit_tp";  // the tracepoint of on_came
// Indexed by EventKind.
constexpr std::array<const char*, kKernelEvents> kPrograms = {
    "on_switch", "on_waking", "on_wakeup", "on_wakeup_new", "on_migrate", "on_fork", "on_exec", "on_exit"};
constexpr std::array<const char*, 2> kFutexPrograms = {"on_call", "on_return"};
// True if the programs know the location of system call arguments.
#if defined(__x86_64__) || defined(__aarch64__)
constexpr bool kKnowsCalls = true;
#else
constexpr bool kKnowsCalls = false;
#endif
constexpr const char* kTypes = "/sys/kernel/btf/vmlinux";
// linux/capability.h
constexpr unsigned kCapSysAdmin = 21, kCapPerfmon = 38, kCapBpf = 39;

std::string kernel_release() {
  utsname name{};
  uname(&name);
  return name.release;
}

std::string not_permitted(const std::string& what) {
  const std::string status = read_file("/proc/self/status").value_or("");
  const auto at = status.find("CapEff:");
  const std::uint64_t held = at == std::string::npos ? 0 : std::stoull(status.substr(at + 7), nullptr, 16);
  const auto has = [held](unsigned capability) { return (held >> capability & 1) != 0; };
  std::string missing;
  if (!has(kCapBpf) && !has(kCapSysAdmin)) missing = "CAP_BPF";
  if (!has(kCapPerfmon) && !has(kCapSysAdmin))
    missing += missing.empty() ? "CAP_PERFMON" : " and CAP_PERFMON";
  if (!missing.empty()) {
    const std::string setting = first_line("/proc/sys/kernel/unprivileged_bpf_disabled");
    std::error_code error;
    const std::string program = std::filesystem::read_symlink("/proc/self/exe", error);
    return "eBPF: " + what + " is not permitted: this process lacks " + missing +
           (setting.empty() ? "" : " (kernel.unprivileged_bpf_disabled is " + setting + ")") +
           ": run it as root, or `sudo setcap cap_bpf,cap_perfmon+ep " + program + "`";
  }
  const std::string lockdown = first_line("/sys/kernel/security/lockdown");
  if (lockdown.find("[integrity]") != std::string::npos ||
      lockdown.find("[confidentiality]") != std::string::npos)
    return "eBPF: " + what + " is not permitted: /sys/kernel/security/lockdown says " + lockdown +
           ": boot with lockdown=none (Secure Boot may have to be off)";
  return "eBPF: " + what +
         " is not permitted although the capabilities are present: a seccomp filter or a user name space (of "
         "a container) prevents it: run it on the host, or `docker run --privileged --pid=host`";
}

// The verifier's last line before its statistics has the reason.
std::string complaint(std::string_view log) {
  std::string last;
  while (!log.empty()) {
    const auto end = std::min(log.find('\n'), log.size());
    const std::string_view line = log.substr(0, end);
    if (!line.empty() && !line.starts_with("processed ") && !line.starts_with("verification time ") &&
        !line.starts_with("stack depth "))
      last = line;
    log.remove_prefix(std::min(end + 1, log.size()));
  }
  return last;
}

// Throws if the programs cannot work on this machine at all.
void require_kernel() {
  const std::string release = kernel_release();
  int major = 0, minor = 0;
  if (std::sscanf(release.c_str(), "%d.%d", &major, &minor) == 2 && (major < 5 || (major == 5 && minor < 12)))
    throw Unsupported("eBPF: the programs need Linux 5.12, but this is " + release +
                      "; use the source perf_event");
  if (access(kTypes, F_OK) != 0)
    throw Unsupported("eBPF: this kernel (" + release + ") has no type information (" + kTypes +
                      "): it needs CONFIG_DEBUG_INFO_BTF=y; use the source perf_event");
}

void require_futexes() {
  if (!kKnowsCalls)
    throw Unsupported(
        "eBPF: on this machine the programs do not know the location of system call arguments, and so cannot "
        "record waits for locks; record without locks");
}

// Throws with the kernel's reason for refusing `what` and a command that helps. `verifier`: the verifier's
// output, if it got that far.
[[noreturn]] void refuse(const std::string& what, int reason, std::string_view verifier = {}) {
  if (const std::string why = complaint(verifier); !why.empty())
    throw Unsupported("eBPF: the verifier of this kernel (" + kernel_release() + ") refuses " + what + ": " +
                      why + "; use the source perf_event");
  if (reason == ENOSYS)
    throw Unsupported("eBPF: this kernel (" + kernel_release() +
                      ") has no bpf(2): it needs CONFIG_BPF_SYSCALL=y; use the source perf_event");
  if (reason == EPERM || reason == EACCES) throw Unsupported(not_permitted(what));
  throw Unsupported("eBPF: " + what + " (kernel " + kernel_release() + "): " + std::strerror(reason));
}

// How often the kernel skipped the program because it was already running on that CPU (not counted before
// Linux 5.12).
std::uint64_t missed_runs(int program) noexcept {
  bpf_prog_info info{};
  __u32 size = sizeof info;
  return bpf_obj_get_info_by_fd(program, &info, &size) == 0 ? info.recursion_misses : 0;
}

// Waits until all program runs that started before have ended, on all CPUs. False if this kernel lacks the
// system call.
bool wait_for_running_programs() noexcept {
  return syscall(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0;
}

// Ignores bytes after the end of the name.
Comm comm_of(const char (&bytes)[kCommBytes]) noexcept {
  Comm comm{};
  std::copy_n(bytes, strnlen(bytes, kCommBytes - 1), comm.begin());
  return comm;
}

// The event in a record; empty if it is not one of the programs' records. `filename` points into the record.
std::optional<SchedulerEvent> event_of(const scheduler_record& record,
                                       std::span<const std::byte> bytes) noexcept {
  if (record.kind >= kEventNames.size() || bytes.size() < kShortRecordBytes) return std::nullopt;
  SchedulerEvent event{.time_ns = static_cast<std::int64_t>(record.time_ns),
                       .kind = static_cast<EventKind>(record.kind),
                       .pid = static_cast<std::int32_t>(record.pid),
                       .tid = static_cast<std::int32_t>(record.tid),
                       .subject = record.subject,
                       .subject_priority = record.subject_priority,
                       .subject_comm = comm_of(record.subject_comm),
                       .other = record.other,
                       .other_pid = record.other_pid,
                       .from_cpu = record.from_cpu,
                       .target_cpu = record.target_cpu,
                       .filename = {}};
  const auto* const rest = reinterpret_cast<const char*>(bytes.data()) + kShortRecordBytes;
  if (event.kind == EventKind::exec) {
    event.filename = {rest, strnlen(rest, bytes.size() - kShortRecordBytes)};
  } else if (event.kind == EventKind::wakeup_recovered || event.kind == EventKind::cpu_held) {
    if (bytes.size() < sizeof record) return std::nullopt;
    event.waited_ns = record.waited_ns;
    event.held_ns = record.held_ns;
  } else if (event.kind == EventKind::futex_wait || event.kind == EventKind::futex_return) {
    if (bytes.size() < kFutexRecordBytes) return std::nullopt;
    futex_call call{};
    std::memcpy(&call, rest, sizeof call);
    event.address = static_cast<std::int64_t>(call.address);
    event.operation = call.operation;
    event.result = call.result;
  } else if (bytes.size() >= kLongRecordBytes) {
    event.other_priority = record.other_priority;
    event.other_comm = comm_of(record.other_comm);
    event.state = record.state;
  }
  return event;
}

class EbpfSource final : public Source {
 public:
  explicit EbpfSource(const SourceSettings& settings)
      : cpus_(cpus_to_record(settings)),
        all_cpus_(settings.cpus.empty()),
        futexes_(settings.futexes),
        possible_cpus_(static_cast<unsigned>(std::max(0, libbpf_num_possible_cpus()))) {
    if (possible_cpus_ > kMostCpus)
      throw Unsupported("eBPF: this machine supports " + std::to_string(possible_cpus_) +
                        " CPUs, but the programs at most " + std::to_string(kMostCpus) +
                        "; use the source perf_event");
    require_kernel();
    if (settings.futexes) require_futexes();
    make_rings(settings.buffer_bytes);
    load(settings);
    attach();
    batch_.reserve(kBatch);
    for (const std::int32_t root : settings.roots) add_root(root);
  }
  ~EbpfSource() override { stop(); }

  [[nodiscard]] const char* name() const noexcept override { return "ebpf"; }
  [[nodiscard]] bool filters() const noexcept override { return true; }
  [[nodiscard]] bool has_futexes() const noexcept override { return futexes_; }
  [[nodiscard]] std::vector<unsigned> cpus() const override { return cpus_; }

  void start() override {
    if (started_) return;
    started_ = true;
    for (Attached& attached : programs_) attached.missed = missed_runs(attached.program);
    missed_after_ns_ = read_clock(CLOCK_MONOTONIC);
    set_recording(true);
  }

  // The programs stay attached until the source is destroyed: detaching waits for the kernel, once per
  // tracepoint.
  void stop() noexcept override {
    if (stopped_) return;
    stopped_ = true;
    if (!shared_) return;
    set_recording(false);
    if (!wait_for_running_programs())
      for (Attached& attached : programs_) attached.link.reset();
    stop_ns_ = read_clock(CLOCK_MONOTONIC);
    for (Attached& attached : programs_) attached.missed_at_stop = missed_runs(attached.program);
  }

  void drain(const Handler& handler, std::int64_t timeout_ns) override {
    if (!stopped_ && timeout_ns > 0) wait(timeout_ns);
    // First, because a loss ends before the events passed on after it is known, and must not delay them.
    if (started_) {
      if (all_cpus_) take_losses_of_other_cpus();
      take_missed_runs();
    }
    for (Ring& ring : rings_) drain(ring, handler);
  }

  // Losses before drained events are known; stop() determines the end of the others.
  std::vector<Loss> take_losses() override {
    if (stopped_)
      for (Ring& ring : rings_) take_losses_of_ring(ring);
    return std::exchange(losses_, {});
  }

  // Threads created after their creator was entered are entered by the fork program; those created just
  // before are found in the next round.
  void add_root(std::int32_t pid) override {
    if (read_shared(shared().filter) == kFilterOff) set_filter(kFilterFollow);
    shared().root = pid;
    shared().found = 0;
    std::uint64_t before = 0;
    do {
      before = read_shared(shared().entered);
      enter_threads();
    } while (read_shared(shared().entered) != before);
    if (read_shared(shared().found) == 0)
      throw BadInput("there is no process " + std::to_string(pid) + " to keep");
    set_filter(kFilterOn);
  }

  std::uint64_t recovered() const noexcept override {
    std::uint64_t switches = 0;
    for (const unsigned cpu : cpus_) switches += read_shared(shared().cpus[cpu].recovered);
    return switches;
  }

  // Only for threads of trees: for others the time of falling asleep is not kept.
  std::optional<std::uint64_t> recovered_wakeups() const noexcept override {
    if (read_shared(shared().filter) == kFilterOff || read_shared(shared().recovers_wakeups) == 0)
      return std::nullopt;
    std::uint64_t wakeups = 0;
    for (const unsigned cpu : cpus_) wakeups += read_shared(shared().cpus[cpu].recovered_wakeups);
    return wakeups;
  }

  std::uint64_t filtered_out() const noexcept override {
    std::uint64_t events = 0;
    for (const unsigned cpu : cpus_) events += read_shared(shared().cpus[cpu].filtered);
    return events;
  }

 private:
  struct Ring {
    unsigned cpu;
    Descriptor map;
    EbpfRing reader;
    std::int64_t last_ns = 0;  // time of the last event passed on
    std::uint32_t lost = 0;    // cpu_counts.lost at that event
  };
  struct Attached {
    int program = -1;  // the object's
    Link link;
    std::uint64_t missed = 0;  // reported already
    std::uint64_t missed_at_stop = 0;
  };

  void make_rings(std::size_t bytes) {
    epoll_ = Descriptor(epoll_create1(EPOLL_CLOEXEC));
    if (!epoll_.open()) throw std::system_error(errno, std::generic_category(), "eBPF: epoll_create1");
    for (const unsigned cpu : cpus_) {
      Descriptor map(
          bpf_map_create(BPF_MAP_TYPE_RINGBUF, "perflab_ring", 0, 0, static_cast<__u32>(bytes), nullptr));
      if (!map.open()) refuse("creating a ring buffer", errno);
      // Edge-triggered: the kernel wakes us when another quarter is full. Level-triggered it would be
      // immediately, because there is always something.
      epoll_event event{};
      event.events = EPOLLIN | EPOLLET;
      if (epoll_ctl(epoll_.number(), EPOLL_CTL_ADD, map.number(), &event) != 0)
        throw std::system_error(errno, std::generic_category(), "eBPF: epoll_ctl");
      EbpfRing reader(map.number(), bytes);
      rings_.push_back({cpu, std::move(map), std::move(reader)});
    }
  }

  // Recovery of events needs more kernel features than the rest: if the kernel refuses, the programs are
  // loaded without it, and the events stay missing.
  void load(const SourceSettings& settings) {
    libbpf_set_print(nullptr);  // its output is in the exceptions
    if (!load_programs(true, settings)) load_programs(false, settings);
    share(settings.buffer_bytes);
  }

  // False: the kernel refuses recovery, or everything.
  bool load_programs(bool recovering, const SourceSettings& settings) {
    const std::vector<char> code(_binary_scheduler_bpf_o_start, _binary_scheduler_bpf_o_end);  // aligned
    std::vector<char> verifier(1 << 20);
    LIBBPF_OPTS(bpf_object_open_opts, options);
    options.object_name = "perflab";
    options.kernel_log_buf = verifier.data();
    options.kernel_log_size = verifier.size();
    object_.reset(bpf_object__open_mem(code.data(), code.size(), &options));
    if (!object_) refuse("reading the programs", errno);
    for (const EventKind kind : settings.unheard) leave_out(kPrograms.at(static_cast<std::size_t>(kind)));
    for (const char* const program : kFutexPrograms)
      if (!settings.futexes) leave_out(program);
    // Since Linux 6.15.
    if (!recovering || libbpf_find_vmlinux_btf_id(kCame, BPF_TRACE_RAW_TP) < 0) leave_out("on_came");
    set_constant(".rodata.recover", recovering);
    set_constant(".rodata.futex", long{SYS_futex});
    const int error = bpf_object__load(object_.get());
    if (error != 0 && !recovering) refuse("loading the programs", -error, verifier.data());
    return error == 0;
  }

  void leave_out(const char* program) {
    bpf_program__set_autoload(bpf_object__find_program_by_name(object_.get(), program), false);
  }

  template <typename Value>
  void set_constant(const char* section, const Value& value) {
    bpf_map* const constant = bpf_object__find_map_by_name(object_.get(), section);
    if (bpf_map__set_initial_value(constant, &value, sizeof value) != 0)
      refuse("preparing the programs", errno);
  }

  void share(std::size_t ring_bytes) {
    const int shared = bpf_object__find_map_fd_by_name(object_.get(), ".bss");
    const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
    shared_ = map_shared(shared, 0, (sizeof(scheduler_shared) + page - 1) / page * page);
    if (!shared_) throw std::system_error(errno, std::generic_category(), "eBPF: mapping what is shared");
    this->shared().ring_bytes = static_cast<__u32>(ring_bytes);
    const int rings = bpf_object__find_map_fd_by_name(object_.get(), "rings");
    for (const Ring& ring : rings_) {
      const int map = ring.map.number();
      if (bpf_map_update_elem(rings, &ring.cpu, &map, BPF_ANY) != 0)
        refuse("giving a CPU its ring buffer", errno);
    }
  }

  // The programs run from here on, but record nothing before start().
  void attach() {
    bpf_program* program = nullptr;
    bpf_object__for_each_program(program, object_.get()) {
      if (!bpf_program__autoload(program)) continue;
      const std::string name = bpf_program__name(program);
      Link link(bpf_program__attach(program));
      if (!link) refuse("attaching the program " + name, errno);
      if (name == "enter") {
        enter_ = std::move(link);
      } else {
        programs_.push_back({bpf_program__fd(program), std::move(link)});
      }
    }
  }

  void wait(std::int64_t timeout_ns) {
    std::array<epoll_event, 16> ready;
    const std::int64_t timeout_ms = std::min<std::int64_t>((timeout_ns + 999'999) / 1'000'000, 1'000'000);
    if (epoll_wait(epoll_.number(), ready.data(), ready.size(), static_cast<int>(timeout_ms)) < 0 &&
        errno != EINTR)
      throw std::system_error(errno, std::generic_category(), "eBPF: epoll_wait");
  }

  void drain(Ring& ring, const Handler& handler) {
    const std::uint64_t end = ring.reader.written();
    const auto hand_over = [&] {
      if (!batch_.empty()) handler(ring.cpu, batch_);
      batch_.clear();
      ring.reader.release();
    };
    for (auto bytes = ring.reader.next(end); !bytes.empty(); bytes = ring.reader.next(end)) {
      scheduler_record record{};
      std::memcpy(&record, bytes.data(), std::min(bytes.size(), sizeof record));
      auto event = event_of(record, bytes);
      if (!event)
        throw std::runtime_error("eBPF: a record of " + std::to_string(bytes.size()) + " bytes of CPU " +
                                 std::to_string(ring.cpu) + " is not from its programs");
      // A wake-up that interrupts a fork may take its time before but its place after the fork's, and the
      // kernel's clock for programs may step back by nanoseconds while its rate is adjusted.
      event->time_ns = std::max(event->time_ns, ring.last_ns);
      if (const auto more = static_cast<std::int32_t>(record.lost - ring.lost); more > 0) {
        losses_.push_back({ring.cpu, ring.last_ns, event->time_ns, static_cast<std::uint64_t>(more)});
        ring.lost = record.lost;
      }
      ring.last_ns = event->time_ns;
      batch_.push_back(*event);
      if (batch_.size() == kBatch) hand_over();
    }
    hand_over();
  }

  void take_losses_of_ring(Ring& ring) {
    const std::uint32_t lost = read_shared(shared().cpus[ring.cpu].lost);
    if (lost == ring.lost || ring.reader.position() < ring.reader.written()) return;
    losses_.push_back({ring.cpu, ring.last_ns, stop_ns_, lost - ring.lost});
    ring.lost = lost;
  }

  // CPUs that came online later have no ring.
  void take_losses_of_other_cpus() {
    for (unsigned cpu = 0; cpu < possible_cpus_; ++cpu) {
      if (std::ranges::binary_search(cpus_, cpu)) continue;
      const std::uint32_t lost = read_shared(shared().cpus[cpu].lost);
      std::uint32_t& said = lost_elsewhere_[cpu];
      if (lost == said) continue;
      losses_.push_back(
          {std::nullopt, missed_after_ns_, stopped_ ? stop_ns_ : read_clock(CLOCK_MONOTONIC), lost - said});
      said = lost;
    }
  }

  // The kernel does not run a program on a CPU where it is already running, so an event in an interrupt at
  // that moment is missed. The kernel counts these, but not per CPU. With a filter some of them may not
  // belong to the tree.
  void take_missed_runs() {
    std::uint64_t events = 0;
    for (Attached& attached : programs_) {
      const std::uint64_t missed = stopped_ ? attached.missed_at_stop : missed_runs(attached.program);
      events += missed - attached.missed;
      attached.missed = missed;
    }
    const std::uint64_t not_followed = read_shared(shared().not_followed);
    events +=
        not_followed - not_followed_;  // threads of the tree whose events are missing
    not_followed_ = not_followed;
    const std::int64_t now = stopped_ ? stop_ns_ : read_clock(CLOCK_MONOTONIC);
    if (events > 0) losses_.push_back({std::nullopt, missed_after_ns_, now, events});
    missed_after_ns_ = now;
  }

  // Reading the iterator runs its program on every thread of the machine; it produces no text.
  void enter_threads() {
    const Descriptor threads(bpf_iter_create(bpf_link__fd(enter_.get())));
    std::array<char, 64> text;
    ssize_t got = threads.open() ? 1 : -1;
    while (got > 0 || (got < 0 && threads.open() && (errno == EAGAIN || errno == EINTR)))
      got = read(threads.number(), text.data(), text.size());
    if (got < 0)
      throw std::system_error(errno, std::generic_category(), "eBPF: looking for the threads of a tree");
  }

  scheduler_shared& shared() const noexcept { return *reinterpret_cast<scheduler_shared*>(shared_.get()); }
  template <typename Number>
  static Number read_shared(Number& number) noexcept {
    return std::atomic_ref(number).load(std::memory_order_relaxed);
  }
  void set_recording(bool on) noexcept {
    std::atomic_ref(shared().recording).store(on ? 1 : 0, std::memory_order_release);
  }
  void set_filter(filter to) noexcept {
    std::atomic_ref(shared().filter).store(to, std::memory_order_release);
  }

  const std::vector<unsigned> cpus_;
  const bool all_cpus_, futexes_;
  const unsigned possible_cpus_;
  Descriptor epoll_;
  std::vector<Ring> rings_;
  Object object_;
  Mapping shared_;
  std::vector<Attached> programs_;
  Link enter_;
  std::vector<SchedulerEvent> batch_;
  std::vector<Loss> losses_;
  std::map<unsigned, std::uint32_t> lost_elsewhere_;  // by CPU without a ring: reported already
  std::int64_t missed_after_ns_ = 0;
  std::uint64_t not_followed_ = 0;  // reported already
  bool started_ = false, stopped_ = false;
  std::int64_t stop_ns_ = 0;
};

}  // namespace

std::unique_ptr<Source> open_ebpf_source(const SourceSettings& settings) {
  return std::make_unique<EbpfSource>(settings);
}

}  // namespace perflab::tracing
