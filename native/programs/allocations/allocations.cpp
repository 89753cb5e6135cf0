// Wrappers of the allocator's functions that count, to be preloaded; see measure/allocation_counts.h.
//
// Every thread counts in its own slot, so counting is a plain addition; totals are sums over all slots. Slots
// are in a fixed table: counting neither allocates nor locks. A thread takes a slot at its first call; its
// counts stay in the totals when a later thread takes over the slot.
#include <dlfcn.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <unwind.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <cstddef>
#include <cstdint>

#include "measure/allocation_counts.h"

// glibc's internal names of the functions replaced below: available before anything else, and without dlsym,
// which may itself allocate.
extern "C" {
void* __libc_malloc(std::size_t size);
void* __libc_calloc(std::size_t count, std::size_t size);
void* __libc_realloc(void* memory, std::size_t size);
void* __libc_memalign(std::size_t alignment, std::size_t size);
void* __libc_valloc(std::size_t size);
void* __libc_pvalloc(std::size_t size);
void __libc_free(void* memory);
}

namespace {

using Counter = std::atomic<std::uint64_t>;
constexpr auto kRelaxed = std::memory_order_relaxed;

// On its own cache line; counts all threads that owned it.
struct alignas(64) Slot {
  Counter owner{0};      // see owned_by(); 0 before the first one
  Counter allocated{0};  // the current owner's count is the excess over `before`
  Counter before{0};
  Counter bytes{0};
  Counter frees{0};
};

// The low half is the thread's number, the high half distinguishes successive owners: a slot seen with a dead
// owner cannot be confused with one that has been taken over since.
constexpr std::uint64_t owned_by(int tid, std::uint64_t previous) {
  return (((previous >> 32) + 1) << 32) | static_cast<std::uint32_t>(tid);
}
constexpr int thread_of(std::uint64_t owner) { return static_cast<int>(static_cast<std::uint32_t>(owner)); }
constexpr int kNobody = 0;

constexpr std::size_t kSlots = 1024;
constinit Slot g_slots[kSlots];
constinit std::atomic<std::size_t> g_used{0};
constinit std::atomic<std::size_t> g_hand{0};  // position at which the search for a dead thread's slot
                                               // continues
// For threads without a slot.
constinit Slot g_common;
constinit std::atomic<bool> g_common_used{false};

// Initial-exec: a thread-local that needs no allocation itself.
[[gnu::tls_model("initial-exec")]] constinit thread_local Slot* g_own = nullptr;

bool is_alive(int tid) { return syscall(SYS_tgkill, getpid(), tid, 0) == 0 || errno != ESRCH; }

bool take_over(Slot& slot, std::uint64_t owner, int tid) {
  const std::uint64_t changing = owned_by(kNobody, owner);
  if (!slot.owner.compare_exchange_strong(owner, changing, std::memory_order_acquire, kRelaxed)) return false;
  slot.before.store(slot.allocated.load(kRelaxed), kRelaxed);
  slot.owner.store(owned_by(tid, changing), std::memory_order_release);
  return true;
}

// The number of an ended thread is reused.
Slot* slot_of_namesake(int tid, std::size_t used) {
  for (std::size_t i = 0; i < used; ++i) {
    const std::uint64_t owner = g_slots[i].owner.load(std::memory_order_acquire);
    if (thread_of(owner) == tid && take_over(g_slots[i], owner, tid)) return &g_slots[i];
  }
  return nullptr;
}

Slot* new_slot(int tid) {
  std::size_t used = g_used.load(kRelaxed);
  while (used < kSlots) {
    if (!g_used.compare_exchange_weak(used, used + 1, std::memory_order_acq_rel, kRelaxed)) continue;
    g_slots[used].owner.store(owned_by(tid, 0), std::memory_order_release);
    return &g_slots[used];
  }
  return nullptr;
}

Slot* slot_of_the_dead(int tid) {
  for (std::size_t tried = 0; tried < kSlots; ++tried) {
    Slot& slot = g_slots[g_hand.fetch_add(1, kRelaxed) % kSlots];
    const std::uint64_t owner = slot.owner.load(std::memory_order_acquire);
    const int previous = thread_of(owner);
    if (previous != kNobody && !is_alive(previous) && take_over(slot, owner, tid)) return &slot;
  }
  return nullptr;
}

[[gnu::noinline, gnu::cold]] Slot& first_call() noexcept {
  const int error = errno;  // free() and a successful malloc() preserve it
  const int tid = static_cast<int>(syscall(SYS_gettid));
  Slot* slot = slot_of_namesake(tid, g_used.load(std::memory_order_acquire));
  if (slot == nullptr) slot = new_slot(tid);
  if (slot == nullptr) slot = slot_of_the_dead(tid);
  if (slot == nullptr) {
    g_common_used.store(true, std::memory_order_release);
    slot = &g_common;
  }
  g_own = slot;
  errno = error;
  return *slot;
}

Slot& own_slot() noexcept { return g_own != nullptr ? *g_own : first_call(); }

void add(Slot& slot, Counter& counter, std::uint64_t amount) noexcept {
  if (&slot != &g_common) [[likely]] {
    counter.store(counter.load(kRelaxed) + amount, kRelaxed);  // single writer
  } else {
    counter.fetch_add(amount, kRelaxed);
  }
}

// ---- allocation sites ----

using perflab::measure::AllocationSite;

// A call site in one thread, in a hash table by thread and callers. Entries are never removed.
struct Site {
  Counter hash{0};  // 0: free
  std::atomic<bool> written{false};
  Counter count{0};
  Counter bytes{0};
  AllocationSite where{};
};

constexpr std::size_t kSites = 4096;  // a power of two
constexpr std::size_t kProbes = 64;
constinit Site g_sites[kSites];
constinit Counter g_elsewhere{0};  // allocations from sites that did not fit
constinit std::atomic<bool> g_watching{false};
using Unwind = _Unwind_Reason_Code (*)(_Unwind_Trace_Fn, void*);
constinit std::atomic<Unwind> g_unwind{nullptr};
// Allocations of the unwinder itself have no site.
[[gnu::tls_model("initial-exec")]] constinit thread_local bool g_unwinding = false;

struct Walk {
  std::size_t left_out;  // frames of this library
  std::size_t depth = 0;
  void* frames[AllocationSite::kMostFrames];
};

_Unwind_Reason_Code step(_Unwind_Context* context, void* to) {
  Walk& walk = *static_cast<Walk*>(to);
  if (walk.left_out > 0) {
    --walk.left_out;
    return _URC_NO_REASON;
  }
  const _Unwind_Ptr at = _Unwind_GetIP(context);
  if (at == 0) return _URC_END_OF_STACK;
  walk.frames[walk.depth++] = reinterpret_cast<void*>(at);
  return walk.depth < AllocationSite::kMostFrames ? _URC_NO_REASON : _URC_END_OF_STACK;
}

std::uint64_t hash_of(int tid, const Walk& walk) {
  std::uint64_t hash = 0xcbf29ce484222325U ^ static_cast<std::uint64_t>(tid);
  for (std::size_t i = 0; i < walk.depth; ++i) {
    hash = (hash ^ reinterpret_cast<std::uintptr_t>(walk.frames[i])) * 0x100000001b3U;
    hash ^= hash >> 29U;
  }
  return hash | 1U;
}

[[gnu::noinline, gnu::cold]] void note_site(std::size_t size) noexcept {
  g_unwinding = true;
  const int error = errno;
  Walk walk{.left_out = 2, .frames = {}};  // this function, and the allocator function that was called
  g_unwind.load(kRelaxed)(step, &walk);
  const int tid = static_cast<int>(syscall(SYS_gettid));
  const std::uint64_t hash = hash_of(tid, walk);
  bool found = false;
  for (std::size_t probe = 0; probe < kProbes && !found; ++probe) {
    Site& site = g_sites[(hash / 2 + probe) % kSites];
    std::uint64_t taken = 0;
    if (site.hash.compare_exchange_strong(taken, hash, std::memory_order_acq_rel)) {
      site.where.tid = tid;
      site.where.depth = walk.depth;
      for (std::size_t i = 0; i < walk.depth; ++i) site.where.frames[i] = walk.frames[i];
      site.written.store(true, std::memory_order_release);
    } else if (taken != hash) {
      continue;
    }
    site.count.fetch_add(1, kRelaxed);
    site.bytes.fetch_add(size, kRelaxed);
    found = true;
  }
  if (!found) g_elsewhere.fetch_add(1, kRelaxed);
  errno = error;
  g_unwinding = false;
}

[[gnu::always_inline]] inline void* counted(void* memory, std::size_t size) noexcept {
  if (memory == nullptr) return nullptr;
  Slot& slot = own_slot();
  add(slot, slot.allocated, 1);
  add(slot, slot.bytes, size);
  if (g_watching.load(kRelaxed) && !g_unwinding) [[unlikely]]
    note_site(size);
  return memory;
}

void count_free() noexcept {
  Slot& slot = own_slot();
  add(slot, slot.frees, 1);
}

constexpr bool power_of_two(std::size_t value) { return value != 0 && (value & (value - 1)) == 0; }

}  // namespace

#define PERFLAB_EXPORT __attribute__((visibility("default")))

extern "C" {

PERFLAB_EXPORT void* malloc(std::size_t size) noexcept { return counted(__libc_malloc(size), size); }

PERFLAB_EXPORT void* calloc(std::size_t count, std::size_t size) noexcept {
  return counted(__libc_calloc(count, size), count * size);
}

PERFLAB_EXPORT void* realloc(void* memory, std::size_t size) noexcept {
  const bool frees = memory != nullptr;
  void* const moved = __libc_realloc(memory, size);
  // With size 0 the old block is freed and no new one is allocated; otherwise null leaves the old block
  // unchanged.
  if (frees && (moved != nullptr || size == 0)) count_free();
  return counted(moved, size);
}

PERFLAB_EXPORT void* memalign(std::size_t alignment, std::size_t size) noexcept {
  return counted(__libc_memalign(alignment, size), size);
}

PERFLAB_EXPORT void* aligned_alloc(std::size_t alignment, std::size_t size) noexcept {
  if (!power_of_two(alignment)) {
    errno = EINVAL;
    return nullptr;
  }
  return counted(__libc_memalign(alignment, size), size);
}

PERFLAB_EXPORT int posix_memalign(void** out, std::size_t alignment, std::size_t size) noexcept {
  if (!power_of_two(alignment) || alignment % sizeof(void*) != 0) return EINVAL;
  const int error = errno;
  void* const memory = counted(__libc_memalign(alignment, size), size);
  errno = error;
  if (memory == nullptr) return ENOMEM;
  *out = memory;
  return 0;
}

PERFLAB_EXPORT void* valloc(std::size_t size) noexcept { return counted(__libc_valloc(size), size); }
PERFLAB_EXPORT void* pvalloc(std::size_t size) noexcept { return counted(__libc_pvalloc(size), size); }

PERFLAB_EXPORT void free(void* memory) noexcept {
  if (memory == nullptr) return;
  count_free();
  __libc_free(memory);
}

PERFLAB_EXPORT void perflab_process_allocations(perflab::measure::AllocationCounts* counts) noexcept {
  const auto add_slot = [counts](const Slot& slot) {
    counts->count += slot.allocated.load(kRelaxed);
    counts->bytes += slot.bytes.load(kRelaxed);
    counts->frees += slot.frees.load(kRelaxed);
  };
  *counts = {};
  const std::size_t used = g_used.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < used; ++i) add_slot(g_slots[i]);
  add_slot(g_common);
}

PERFLAB_EXPORT bool perflab_thread_allocations(int tid, std::uint64_t* count) noexcept {
  const std::size_t used = g_used.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < used; ++i) {
    const Slot& slot = g_slots[i];
    if (thread_of(slot.owner.load(std::memory_order_acquire)) != tid) continue;
    *count = slot.allocated.load(kRelaxed) - slot.before.load(kRelaxed);
    return true;
  }
  *count = 0;  // the thread has never called the allocator
  return !g_common_used.load(std::memory_order_acquire);
}

PERFLAB_EXPORT bool perflab_allocations_beside(const int* tids, std::size_t tid_count, std::uint64_t* count) noexcept {
  std::uint64_t sum = 0;
  const std::size_t used = g_used.load(std::memory_order_acquire);
  for (std::size_t i = 0; i < used; ++i) {
    const int owner = thread_of(g_slots[i].owner.load(std::memory_order_acquire));
    const bool left_out = std::find(tids, tids + tid_count, owner) != tids + tid_count;
    sum += (left_out ? g_slots[i].before : g_slots[i].allocated).load(kRelaxed);
  }
  *count = sum;
  return !g_common_used.load(std::memory_order_acquire);
}

PERFLAB_EXPORT bool perflab_watch_allocations(bool on) noexcept {
  if (g_unwind.load(kRelaxed) == nullptr)
    g_unwind.store(reinterpret_cast<Unwind>(dlsym(RTLD_DEFAULT, "_Unwind_Backtrace")), kRelaxed);
  const bool can = g_unwind.load(kRelaxed) != nullptr;
  g_watching.store(on && can, kRelaxed);
  return can;
}

PERFLAB_EXPORT std::uint64_t perflab_allocation_sites(void (*visit)(void* context, const AllocationSite* site),
                                                      void* context) noexcept {
  for (const Site& site : g_sites) {
    if (site.hash.load(std::memory_order_acquire) == 0 || !site.written.load(std::memory_order_acquire)) continue;
    AllocationSite copy = site.where;
    copy.count = site.count.load(kRelaxed);
    copy.bytes = site.bytes.load(kRelaxed);
    visit(context, &copy);
  }
  return g_elsewhere.load(kRelaxed);
}

}  // extern "C"
