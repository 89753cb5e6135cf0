// One thread that does everything at its time: deliveries to readers, and tasks (matching, sending
// announcements, deadlines, callbacks). Because it is one thread, callbacks of an entity never come
// concurrently.
//
// It sleeps until shortly before the next due time and spins through the rest, so that a delivery is late by
// microseconds, not by the kernel's timer slack.
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "middleware/sim/packet.h"

namespace perflab::middleware::sim {

struct Edge;

struct Delivery {
  std::int64_t due_ns;
  std::uint64_t order;  // among those of one due time; given by push()
  const void* owner;    // the reader
  Edge* edge;
  PacketRef packet;
  std::int64_t offered_ns;  // from when the delay counts
  bool copy;
  bool overtaken;
};

class Scheduler {
 public:
  using Deliver = std::function<void(Delivery&)>;
  using Task = std::function<void()>;

  explicit Scheduler(Deliver deliver);
  ~Scheduler() { stop(); }

  // May be called with any lock held; never blocks for long.
  void push(Delivery delivery);
  // Tasks of one due time run in the order in which they were given. `due_ns` 0: as soon as possible.
  void at(std::int64_t due_ns, const void* owner, Task task);

  // Forgets everything of `owner`, and waits until what runs for it has returned (unless called by it).
  // The caller holds no lock that a task or callback might take.
  void cancel(const void* owner);

  // Ends the thread; what is left does not happen.
  void stop();

 private:
  using Key = std::pair<std::int64_t, std::uint64_t>;
  struct Owned {
    const void* owner;
    Task task;
  };

  void run();
  std::int64_t next_due() const;
  void run_one(std::unique_lock<std::mutex>& lock);
  void changed(std::int64_t due_ns);

  Deliver deliver_;
  std::mutex mutex_;
  std::condition_variable wake_;
  std::condition_variable done_;
  std::vector<Delivery> heap_;
  std::map<Key, Owned> tasks_;
  std::uint64_t next_order_ = 0;
  const void* running_ = nullptr;
  bool stopping_ = false;
  std::int64_t waiting_for_ns_ = INT64_MIN;  // what the thread sleeps or spins for, INT64_MIN while it works
  std::atomic<bool> spin_on_{true};
  std::thread thread_;
};

}  // namespace perflab::middleware::sim
