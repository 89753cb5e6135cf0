#include "tracing/scheduler/ebpf_kernel.h"

#include <linux/perf_event.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <system_error>
#include <vector>

#include "tracing/scheduler/source.h"

namespace perflab::tracing::bpf {
namespace {

// What programs declare to the kernel. It gives helpers that read its memory to GPL-compatible programs
// alone, so those that need one are offered that way too.
constexpr char kLicence[] = "Apache-2.0", kLicenceOfReaders[] = "Dual MIT/GPL";

// linux/capability.h
constexpr unsigned kCapSysAdmin = 21, kCapPerfmon = 38, kCapBpf = 39;

int bpf(bpf_cmd command, bpf_attr& attributes) noexcept {
  return static_cast<int>(syscall(SYS_bpf, command, &attributes, sizeof attributes));
}

std::uint64_t address(const void* of) noexcept { return reinterpret_cast<std::uintptr_t>(of); }

std::string first_line(const char* path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

std::uint64_t effective_capabilities() {
  std::ifstream status("/proc/self/status");
  std::string line;
  while (std::getline(status, line))
    if (line.starts_with("CapEff:")) return std::stoull(line.substr(7), nullptr, 16);
  return 0;
}

std::string kernel_release() {
  utsname name{};
  uname(&name);
  return name.release;
}

bool kernel_is_older_than(int major, int minor) {
  int its_major = 0, its_minor = 0;
  if (std::sscanf(kernel_release().c_str(), "%d.%d", &its_major, &its_minor) != 2) return false;
  return its_major < major || (its_major == major && its_minor < minor);
}

std::string this_program() {
  std::array<char, 4096> path;
  const ssize_t length = readlink("/proc/self/exe", path.data(), path.size());
  return length > 0 ? std::string(path.data(), static_cast<std::size_t>(length)) : "PROGRAM";
}

std::string not_permitted(const std::string& what) {
  const std::uint64_t held = effective_capabilities();
  const auto has = [held](unsigned capability) { return (held >> capability & 1) != 0; };
  std::string missing;
  if (!has(kCapBpf) && !has(kCapSysAdmin)) missing = "CAP_BPF";
  if (!has(kCapPerfmon) && !has(kCapSysAdmin))
    missing += missing.empty() ? "CAP_PERFMON" : " and CAP_PERFMON";
  if (!missing.empty()) {
    const std::string setting = first_line("/proc/sys/kernel/unprivileged_bpf_disabled");
    return "eBPF: " + what + " is not permitted: this process lacks " + missing +
           (setting.empty() ? "" : " (kernel.unprivileged_bpf_disabled is " + setting + ")") +
           ": run it as root, or `sudo setcap cap_bpf,cap_perfmon,cap_dac_read_search+ep " + this_program() +
           "`";
  }
  const std::string lockdown = first_line("/sys/kernel/security/lockdown");
  if (lockdown.find("[integrity]") != std::string::npos ||
      lockdown.find("[confidentiality]") != std::string::npos)
    return "eBPF: " + what + " is not permitted: /sys/kernel/security/lockdown says " + lockdown +
           ": boot with lockdown=none (Secure Boot may have to be off)";
  return "eBPF: " + what +
         " is not permitted although the capabilities are there: a seccomp filter or a user name space (of a "
         "container) is in the way: run it on the host, or `docker run --privileged --pid=host`";
}

[[noreturn]] void fail(const std::string& what, int reason) {
  if (reason == ENOSYS)
    throw Unavailable("eBPF: this kernel (" + kernel_release() +
                      ") has no bpf(2): it needs CONFIG_BPF_SYSCALL=y; use the source perf_event");
  if (reason == EPERM || reason == EACCES) throw Unavailable(not_permitted(what));
  throw Unavailable("eBPF: " + what + " (kernel " + kernel_release() + "): " + std::strerror(reason));
}

// Kernels before 5.11 count maps and programs as locked memory, and say EPERM where it does not suffice.
// False where it is not the limit, or it cannot be raised.
bool raise_locked_memory() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_MEMLOCK, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return false;
  limit.rlim_cur = limit.rlim_max = RLIM_INFINITY;
  return setrlimit(RLIMIT_MEMLOCK, &limit) == 0;
}

bool locked_memory_is_why(int reason) {
  rlimit limit{};
  return reason == EPERM && kernel_is_older_than(5, 11) && getrlimit(RLIMIT_MEMLOCK, &limit) == 0 &&
         limit.rlim_cur != RLIM_INFINITY;
}

int bpf_with_memory(bpf_cmd command, bpf_attr& attributes) noexcept {
  int descriptor = bpf(command, attributes);
  if (descriptor < 0 && errno == EPERM && kernel_is_older_than(5, 11) && raise_locked_memory()) {
    descriptor = bpf(command, attributes);
  }
  return descriptor;
}

void name_it(char (&to)[BPF_OBJ_NAME_LEN], const char* name) noexcept {
  std::strncpy(to, name, BPF_OBJ_NAME_LEN - 1);
}

// The last line of the verifier before its statistics says what it did not like.
std::string complaint(const std::vector<char>& log) {
  std::string last;
  std::string_view text(log.data(), std::strlen(log.data()));
  while (!text.empty()) {
    const auto end = std::min(text.find('\n'), text.size());
    const std::string_view line = text.substr(0, end);
    if (!line.empty() && !line.starts_with("processed ") && !line.starts_with("verification time ") &&
        !line.starts_with("stack depth "))
      last = line;
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return last;
}

}  // namespace

void Descriptor::reset() noexcept {
  if (number_ >= 0) close(number_);
  number_ = -1;
}

Mapping::Mapping(int descriptor, std::size_t offset, std::size_t bytes, bool writable, const char* what)
    : bytes_(bytes) {
  void* const place = mmap(nullptr, bytes, writable ? PROT_READ | PROT_WRITE : PROT_READ, MAP_SHARED,
                           descriptor, static_cast<off_t>(offset));
  if (place == MAP_FAILED)
    throw std::system_error(errno, std::generic_category(), std::string("eBPF: mapping ") + what);
  data_ = static_cast<std::byte*>(place);
}

Mapping::~Mapping() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

Descriptor create_map(const MapShape& shape) {
  bpf_attr attributes{};
  attributes.map_type = shape.type;
  attributes.key_size = shape.key_bytes;
  attributes.value_size = shape.value_bytes;
  attributes.max_entries = shape.entries;
  attributes.map_flags = shape.flags;
  if (shape.inner >= 0) attributes.inner_map_fd = static_cast<__u32>(shape.inner);
  name_it(attributes.map_name, shape.name);
  const int descriptor = bpf_with_memory(BPF_MAP_CREATE, attributes);
  if (descriptor >= 0) return Descriptor(descriptor);
  const int reason = errno;
  if (locked_memory_is_why(reason))
    throw Unavailable("eBPF: RLIMIT_MEMLOCK is too low for its buffers on this kernel (" + kernel_release() +
                      "): `ulimit -l unlimited` (permanently: `memlock` in /etc/security/limits.conf)");
  if (reason == EINVAL && shape.type == BPF_MAP_TYPE_RINGBUF && kernel_is_older_than(5, 8))
    throw Unavailable("eBPF: ring buffers of BPF came with Linux 5.8, this is " + kernel_release() +
                      "; use the source perf_event");
  fail(std::string("creating the map ") + shape.name, reason);
}

void set_entry(int map, const void* key, const void* value, const char* what) {
  bpf_attr attributes{};
  attributes.map_fd = static_cast<__u32>(map);
  attributes.key = address(key);
  attributes.value = address(value);
  attributes.flags = BPF_ANY;
  if (bpf(BPF_MAP_UPDATE_ELEM, attributes) != 0) fail(what, errno);
}

bool add_entry(int map, const void* key, const void* value, const char* what) {
  bpf_attr attributes{};
  attributes.map_fd = static_cast<__u32>(map);
  attributes.key = address(key);
  attributes.value = address(value);
  attributes.flags = BPF_NOEXIST;
  // The bucket is in use by a program that interrupted somebody there: it will be done at once.
  for (int attempt = 0;; ++attempt) {
    if (bpf(BPF_MAP_UPDATE_ELEM, attributes) == 0) return true;
    if (errno == EEXIST) return false;
    if (errno != EBUSY || attempt == 1000)
      throw std::system_error(errno, std::generic_category(), std::string("eBPF: ") + what);
  }
}

Descriptor load_tracepoint_program(const char* name, std::span<const bpf_insn> code, bool reads_memory) {
  bpf_attr attributes{};
  attributes.prog_type = BPF_PROG_TYPE_TRACEPOINT;
  attributes.insns = address(code.data());
  attributes.insn_cnt = static_cast<__u32>(code.size());
  attributes.license = address(reads_memory ? kLicenceOfReaders : kLicence);
  name_it(attributes.prog_name, name);
  int descriptor = bpf_with_memory(BPF_PROG_LOAD, attributes);
  if (descriptor >= 0) return Descriptor(descriptor);
  const int reason = errno;
  if (locked_memory_is_why(reason))
    throw Unavailable("eBPF: RLIMIT_MEMLOCK is too low for its programs on this kernel (" + kernel_release() +
                      "): `ulimit -l unlimited` (permanently: `memlock` in /etc/security/limits.conf)");
  // Once more, for what the verifier has to say. A refusal by it may come as EPERM or EACCES too.
  std::vector<char> log(1 << 20);
  attributes.log_level = 1;
  attributes.log_size = static_cast<__u32>(log.size());
  attributes.log_buf = address(log.data());
  descriptor = bpf(BPF_PROG_LOAD, attributes);
  if (descriptor >= 0) return Descriptor(descriptor);
  log.back() = '\0';
  if (const std::string why = complaint(log); !why.empty())
    throw Unavailable(std::string("eBPF: the verifier of this kernel (") + kernel_release() +
                      ") refuses the program " + name + ": " + why + "; use the source perf_event");
  fail(std::string("loading the program ") + name, reason);
}

Descriptor attach(int program, const std::string& tracepoint, std::uint64_t tracepoint_id,
                  unsigned any_online_cpu) {
  perf_event_attr attributes{};
  attributes.type = PERF_TYPE_TRACEPOINT;
  attributes.size = sizeof attributes;
  attributes.config = tracepoint_id;
  // Programs belong to the tracepoint, not to the event that brings them: they run on all CPUs, and whether
  // it is enabled or not. Disabled it costs nothing: the kernel then writes no sample for it.
  attributes.disabled = 1;
  Descriptor event(static_cast<int>(syscall(SYS_perf_event_open, &attributes, -1,
                                            static_cast<int>(any_online_cpu), -1, PERF_FLAG_FD_CLOEXEC)));
  if (event.get() < 0) fail("opening the tracepoint " + tracepoint, errno);
  if (ioctl(event.get(), PERF_EVENT_IOC_SET_BPF, program) != 0)
    fail("attaching a program to the tracepoint " + tracepoint, errno);
  return event;
}

std::uint64_t missed_runs(int program) noexcept {
  bpf_prog_info info{};
  bpf_attr attributes{};
  attributes.info.bpf_fd = static_cast<__u32>(program);
  attributes.info.info_len = sizeof info;
  attributes.info.info = address(&info);
  return bpf(BPF_OBJ_GET_INFO_BY_FD, attributes) == 0 ? info.recursion_misses : 0;
}

// The kernel's layout (kernel/bpf/ringbuf.c): a page with how far was read, a page with how far was written,
// then the data, twice in a row so that no record is ever torn. A record: its length with two bits of state,
// four bytes of the kernel's, its bytes; all rounded up to eight. Positions only grow.
RingReader::RingReader(int map, std::size_t bytes) : mask_(bytes - 1) {
  const auto page = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  consumer_ = Mapping(map, 0, page, true, "a ring buffer");
  producer_ = Mapping(map, page, page + 2 * bytes, false, "a ring buffer");
  data_ = producer_.data() + page;
}

std::uint64_t RingReader::written() const noexcept {
  return __atomic_load_n(reinterpret_cast<const unsigned long*>(producer_.data()), __ATOMIC_ACQUIRE);
}

std::span<const std::byte> RingReader::next(std::uint64_t end) noexcept {
  while (position_ < end) {
    const std::byte* const at = data_ + (position_ & mask_);
    const auto header = __atomic_load_n(reinterpret_cast<const std::uint32_t*>(at), __ATOMIC_ACQUIRE);
    if ((header & BPF_RINGBUF_BUSY_BIT) != 0) break;
    const std::uint32_t length = header & ~BPF_RINGBUF_DISCARD_BIT;
    position_ += (length + BPF_RINGBUF_HDR_SZ + 7) / 8 * 8;
    if ((header & BPF_RINGBUF_DISCARD_BIT) == 0) return {at + BPF_RINGBUF_HDR_SZ, length};
  }
  return {};
}

void RingReader::release() noexcept {
  __atomic_store_n(reinterpret_cast<unsigned long*>(consumer_.data()), position_, __ATOMIC_RELEASE);
}

}  // namespace perflab::tracing::bpf
