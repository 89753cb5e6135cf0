// Pairs of threads that wake each other up through pipes, each pair on one CPU:
//
//   handoff PAIRS ROUNDS
//   {"begin_ns":1,"end_ns":2,"threads":[{"tid":7,"voluntary":1000,"involuntary":3}]}
//
// The kernel's own counts of each thread's switches, read by the thread when it ends: a complete recording
// must have the same.
#include <pthread.h>
#include <sched.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <thread>
#include <vector>

namespace {

struct Thread {
  int tid = 0;
  long voluntary = 0, involuntary = 0;
};

long long now_ns() {
  timespec time{};
  clock_gettime(CLOCK_MONOTONIC, &time);
  return 1'000'000'000LL * time.tv_sec + time.tv_nsec;
}

void run(Thread& thread, int from, int to, bool first, long rounds, int cpu) {
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(cpu, &cpus);
  sched_setaffinity(0, sizeof cpus, &cpus);
  char token = 'x';
  if (first && write(to, &token, 1) != 1) std::abort();
  for (long i = 0; i < rounds; ++i) {
    if (read(from, &token, 1) != 1) std::abort();
    const bool is_last = first && i + 1 == rounds;
    if (!is_last && write(to, &token, 1) != 1) std::abort();
  }
  rusage usage{};
  getrusage(RUSAGE_THREAD, &usage);
  thread = {gettid(), usage.ru_nvcsw, usage.ru_nivcsw};
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) return 2;
  const long pairs = std::atol(argv[1]), rounds = std::atol(argv[2]);
  const long cpus = sysconf(_SC_NPROCESSORS_ONLN);
  std::vector<Thread> results(2 * static_cast<std::size_t>(pairs));
  std::vector<std::thread> threads;
  const long long begin = now_ns();
  for (long i = 0; i < pairs; ++i) {
    std::array<int, 2> there{}, back{};
    if (pipe(there.data()) != 0 || pipe(back.data()) != 0) return 1;
    const int cpu = static_cast<int>(i % cpus);
    Thread* const result = &results[2 * static_cast<std::size_t>(i)];
    threads.emplace_back(run, std::ref(result[0]), back[0], there[1], true, rounds, cpu);
    threads.emplace_back(run, std::ref(result[1]), there[0], back[1], false, rounds, cpu);
  }
  for (std::thread& thread : threads) thread.join();
  std::printf("{\"begin_ns\":%lld,\"end_ns\":%lld,\"threads\":[", begin, now_ns());
  for (std::size_t i = 0; i < results.size(); ++i) {
    std::printf("%s{\"tid\":%d,\"voluntary\":%ld,\"involuntary\":%ld}", i == 0 ? "" : ",", results[i].tid,
                results[i].voluntary, results[i].involuntary);
  }
  std::puts("]}");
}
