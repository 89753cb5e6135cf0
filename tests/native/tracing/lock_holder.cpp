// A lock whose holder is kept from its CPU while another thread waits for the lock:
//
//   lock_holder normal|inherit|none CPU HOG_MS [wait]
//   {"pid":7,"holder":8,"hog":9,"waiter":10,"mutex":"0x7ffc...","waited_ns":1}
//
// All three threads are on that CPU. The holder (OTHER) takes the mutex and works; the hog (RR 50) spins; the
// waiter (RR 80) wants the mutex, and the hog continues for HOG_MS of its own CPU time. With `inherit` the
// mutex passes the waiter's priority to the holder. With `none` nobody takes the mutex, and the waiter waits
// as long at a condition variable, which is signalled. The first line is written when the waiter is about to
// wait, without waited_ns. With `wait` a line on standard input ends hog and work instead.
#include <pthread.h>
#include <sched.h>
#include <time.h>
#include <unistd.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>

namespace {

constexpr long long kWorkNs = 5'000'000;

pthread_mutex_t mutex;
pthread_mutex_t other_mutex = PTHREAD_MUTEX_INITIALIZER;
pthread_cond_t condition = PTHREAD_COND_INITIALIZER;
bool signalled = false;  // guarded by other_mutex
bool takes = true;       // the mutex is used
std::atomic<int> holder_tid, hog_tid, waiter_tid;
std::atomic<bool> held, waits_to_be_told, told_to_end, about_to_wait;
std::atomic<long long> hog_ns, waited_ns;

long long read_ns(clockid_t clock) {
  timespec time{};
  clock_gettime(clock, &time);
  return 1'000'000'000LL * time.tv_sec + time.tv_nsec;
}

void check(int error, const char* what) {
  if (error == 0) return;
  std::fprintf(stderr, "lock_holder: %s: %s\n", what, std::strerror(error));
  std::exit(3);
}

void work() {
  for (const long long end = read_ns(CLOCK_THREAD_CPUTIME_ID) + kWorkNs;
       read_ns(CLOCK_THREAD_CPUTIME_ID) < end;) {
  }
}

void begin(std::atomic<int>& tid, const char* name) {
  pthread_setname_np(pthread_self(), name);
  tid = gettid();
}

void* hold(void*) {
  begin(holder_tid, "low");
  if (takes) pthread_mutex_lock(&mutex);
  held = true;
  while (!about_to_wait || (waits_to_be_told && !told_to_end)) work();
  work();
  if (takes) pthread_mutex_unlock(&mutex);
  return nullptr;
}

void* hog(void*) {
  begin(hog_tid, "hog");
  while (!about_to_wait) {
  }
  // If this thread runs now, the waiter sleeps.
  const long long end_ns = read_ns(CLOCK_THREAD_CPUTIME_ID) + hog_ns;
  while (waits_to_be_told ? !told_to_end : read_ns(CLOCK_THREAD_CPUTIME_ID) < end_ns) {
  }
  return nullptr;
}

void* wait(void*) {
  begin(waiter_tid, "high");
  const long long began_ns = read_ns(CLOCK_MONOTONIC);
  if (takes) {
    about_to_wait = true;
    pthread_mutex_lock(&mutex);
    pthread_mutex_unlock(&mutex);
  } else {
    pthread_mutex_lock(&other_mutex);
    about_to_wait = true;
    while (!signalled) pthread_cond_wait(&condition, &other_mutex);
    pthread_mutex_unlock(&other_mutex);
  }
  waited_ns = read_ns(CLOCK_MONOTONIC) - began_ns;
  return nullptr;
}

pthread_t start(void* (*run)(void*), int policy, int priority, int cpu) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  pthread_attr_setinheritsched(&attributes, PTHREAD_EXPLICIT_SCHED);
  pthread_attr_setschedpolicy(&attributes, policy);
  const sched_param parameter{.sched_priority = priority};
  pthread_attr_setschedparam(&attributes, &parameter);
  cpu_set_t cpus;
  CPU_ZERO(&cpus);
  CPU_SET(static_cast<unsigned>(cpu), &cpus);
  pthread_attr_setaffinity_np(&attributes, sizeof cpus, &cpus);
  pthread_t thread{};
  check(pthread_create(&thread, &attributes, run, nullptr), "starting a thread");
  pthread_attr_destroy(&attributes);
  return thread;
}

template <typename Condition>
void until(Condition&& holds) {
  while (!holds()) usleep(200);
}

// Keeps the first thread and the others on different CPUs.
void stay_off(int cpu) {
  cpu_set_t cpus;
  check(sched_getaffinity(0, sizeof cpus, &cpus), "reading the CPUs");
  CPU_CLR(static_cast<unsigned>(cpu), &cpus);
  check(sched_setaffinity(0, sizeof cpus, &cpus), "leaving the CPU");
}

void say(long long waited) {
  std::printf(R"({"pid":%d,"holder":%d,"hog":%d,"waiter":%d,"mutex":"%p","waited_ns":%lld})"
              "\n",
              getpid(), holder_tid.load(), hog_tid.load(), waiter_tid.load(), static_cast<void*>(&mutex),
              waited);
  std::fflush(stdout);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) return 2;
  const int cpu = std::atoi(argv[2]);
  waits_to_be_told = argc > 4;
  takes = std::strcmp(argv[1], "none") != 0;
  hog_ns = 1'000'000LL * std::atoll(argv[3]);
  stay_off(cpu);
  pthread_mutexattr_t kind;
  pthread_mutexattr_init(&kind);
  if (std::strcmp(argv[1], "inherit") == 0) pthread_mutexattr_setprotocol(&kind, PTHREAD_PRIO_INHERIT);
  check(pthread_mutex_init(&mutex, &kind), "making a mutex");
  const pthread_t holder = start(hold, SCHED_OTHER, 0, cpu);
  until([] { return held.load(); });
  const pthread_t spinner = start(hog, SCHED_RR, 50, cpu);
  until([] { return hog_tid != 0; });
  const pthread_t waiter = start(wait, SCHED_RR, 80, cpu);
  until([] { return about_to_wait.load(); });
  say(0);
  if (waits_to_be_told) {
    static_cast<void>(std::getchar());
    told_to_end = true;
  }
  pthread_join(spinner, nullptr);
  if (!takes) {
    pthread_mutex_lock(&other_mutex);
    signalled = true;
    pthread_cond_signal(&condition);
    pthread_mutex_unlock(&other_mutex);
  }
  pthread_join(waiter, nullptr);
  pthread_join(holder, nullptr);
  say(waited_ns);
}
