// A ping-pong between two processes, one thread each, once over the plug-in `shm` and once over nothing: a
// counter in shared memory, the bytes beside it, and a futex on which the other one sleeps. What the plug-in
// adds to that is what it costs to be a middleware.
//
//   shm_floor PLUGIN DOMAIN SIZE
//
// Both ways take turns in batches, in the same two processes, each on a CPU of its own. Prints one JSON
// object: the median of half the round trip of both, in us, over the medians of the batches.
#include <linux/futex.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <string>
#include <vector>

#include "measure/clock.h"
#include "middleware/host/plugin.h"

namespace {

using namespace perflab;

constexpr int kBatches = 41;  // the first is not counted
constexpr int kRounds = 500;  // per batch
constexpr std::size_t kLargest = 1 << 20;

std::int64_t now_ns(void*) {
  static const measure::MonotonicClock clock;
  return clock.now();
}

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "shm_floor: %s\n", what);
  std::exit(1);
}

// The first for the one who pings, the second for the other one.
void pin(int side) {
  cpu_set_t allowed;
  sched_getaffinity(0, sizeof allowed, &allowed);
  int seen = 0;
  for (int cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (!CPU_ISSET(cpu, &allowed) || seen++ != side) continue;
    cpu_set_t one;
    CPU_ZERO(&one);
    CPU_SET(cpu, &one);
    sched_setaffinity(0, sizeof one, &one);
    return;
  }
  fail("two CPUs are needed");
}

// ---- over nothing ----

// What one side reads.
struct Inbox {
  alignas(64) std::atomic<std::uint32_t> count;
  alignas(64) std::atomic<std::uint32_t> asleep;
  alignas(64) std::array<std::uint8_t, kLargest> bytes;
};

void put(Inbox& to, const std::vector<std::uint8_t>& message) {
  std::memcpy(to.bytes.data(), message.data(), message.size());
  to.count.store(to.count.load(std::memory_order_relaxed) + 1);
  if (to.asleep.load() != 0) syscall(SYS_futex, &to.count, FUTEX_WAKE, 1, nullptr, nullptr, 0);
}

void get(Inbox& from, std::uint32_t seen, std::vector<std::uint8_t>& message) {
  while (from.count.load() == seen) {
    from.asleep.store(1);
    syscall(SYS_futex, &from.count, FUTEX_WAIT, seen, nullptr, nullptr, 0);
    from.asleep.store(0);
  }
  std::memcpy(message.data(), from.bytes.data(), message.size());
}

// ---- the two sides ----

// One of the two ways of a message: sends it, or waits for one.
struct Way {
  std::function<void()> send;
  std::function<void()> receive;
};

Way over_nothing(Inbox& here, Inbox& there, std::vector<std::uint8_t>& message) {
  return {.send = [&] { put(there, message); },
          .receive = [&, seen = std::uint32_t{0}]() mutable { get(here, seen++, message); }};
}

struct Endpoints {
  Endpoints(const std::string& plugin, std::uint32_t domain, const std::string& out, const std::string& in)
      : participant(middleware::Plugin::load(plugin).open(
            {.now_ns = now_ns, .on_event = nullptr, .context = nullptr},
            {.domain = domain})),
        writer(participant.create_writer({.topic = out, .type = "Floor"})),
        reader(participant.create_reader({.topic = in, .type = "Floor"})),
        waitset(participant.create_waitset()) {
    waitset.attach(reader, 1);
    while (writer.matched_readers() != 1 || reader.matched_writers() != 1) usleep(1000);
  }

  middleware::Participant participant;
  middleware::Writer writer;
  middleware::Reader reader;
  middleware::WaitSet waitset;
};

Way over_plugin(Endpoints& ends, std::vector<std::uint8_t>& message) {
  return {.send =
              [&] {
                const perflab_bytes part{message.data(), message.size()};
                perflab_error error;
                if (ends.writer.write({&part, 1}, error) != PERFLAB_OK) fail(error.text);
              },
          .receive =
              [&] {
                std::uint64_t ready[1];
                std::size_t count = 0;
                perflab_error error;
                perflab_sample sample;
                do {
                  if (ends.waitset.wait(PERFLAB_DURATION_INFINITE, ready, count, error) != PERFLAB_OK)
                    fail(error.text);
                } while (ends.reader.take(sample, error) != PERFLAB_OK);
                ends.reader.return_sample(sample);
              }};
}

double median(std::vector<double> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

void pong(const std::array<Way, 2>& ways) {
  for (int batch = 0; batch < kBatches; ++batch) {
    for (const Way& way : ways) {
      for (int round = 0; round < kRounds; ++round) {
        way.receive();
        way.send();
      }
    }
  }
}

std::array<double, 2> ping(const std::array<Way, 2>& ways) {
  std::array<std::vector<double>, 2> of_batches;
  for (int batch = 0; batch < kBatches; ++batch) {
    for (std::size_t i = 0; i < ways.size(); ++i) {
      std::vector<double> half_us;
      for (int round = 0; round < kRounds; ++round) {
        const std::int64_t begin_ns = now_ns(nullptr);
        ways[i].send();
        ways[i].receive();
        half_us.push_back(static_cast<double>(now_ns(nullptr) - begin_ns) / 2e3);
      }
      if (batch > 0) of_batches[i].push_back(median(half_us));
    }
  }
  return {median(of_batches[0]), median(of_batches[1])};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 4) fail("usage: shm_floor PLUGIN DOMAIN SIZE");
  const auto domain = static_cast<std::uint32_t>(std::atoi(argv[2]));
  const std::size_t size = std::min<std::size_t>(static_cast<std::size_t>(std::atol(argv[3])), kLargest);
  void* const memory =
      mmap(nullptr, 2 * sizeof(Inbox), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) fail("no shared memory");
  auto* const inboxes = static_cast<Inbox*>(memory);
  const pid_t child = fork();
  if (child == 0) prctl(PR_SET_PDEATHSIG, SIGKILL);
  const bool pings = child != 0;
  std::vector<std::uint8_t> message(size, 7);
  try {
    Endpoints ends(argv[1], domain, pings ? "ping" : "pong", pings ? "pong" : "ping");
    pin(pings ? 0 : 1);  // not the threads of the plug-in
    const std::array<Way, 2> ways{over_nothing(inboxes[pings ? 0 : 1], inboxes[pings ? 1 : 0], message),
                                  over_plugin(ends, message)};
    if (!pings) {
      pong(ways);
      return 0;
    }
    const auto [bare_us, shm_us] = ping(ways);
    std::printf("{\"floor_us\": %.3f, \"shm_us\": %.3f}\n", bare_us, shm_us);
  } catch (const std::exception& failure) {
    fail(failure.what());
  }
  waitpid(child, nullptr, 0);
  return 0;
}
