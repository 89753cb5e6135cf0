// Waiting for readers: a thread in wait() sleeps in the kernel until one of their sockets has a datagram or,
// if another thread reads the socket, until that thread notifies it.
#pragma once

#include <sys/epoll.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "base/descriptor.h"
#include "middleware/middleware.h"

namespace perflab::middleware::udp {

class Participant;
class Reader;

class WaitSet {
 public:
  explicit WaitSet(Participant& participant);
  ~WaitSet();
  WaitSet(const WaitSet&) = delete;
  WaitSet& operator=(const WaitSet&) = delete;

  void attach(Reader& reader, std::uint64_t cookie);
  void forget(const Reader& reader) noexcept;
  perflab_status wait(std::int64_t timeout_ns, std::uint64_t* ready, std::size_t capacity,
                      std::size_t* ready_count, perflab_error* error) noexcept;
  void wake() noexcept { woken_.notify(); }
  // A reader whose socket another thread reads may have a message.
  void look_again() noexcept { changed_.notify(); }

 private:
  struct Attachment {
    Reader* reader;
    std::uint64_t cookie;
    bool has_datagram;  // as of the last poll
  };
  // Returns the number of events; 0 on timeout.
  int poll(std::int64_t until_ns) noexcept;
  void watch(int number, const void* what);
  bool note(int count) noexcept;
  std::size_t collect(std::uint64_t* ready, std::size_t capacity) noexcept;

  const Descriptor epoll_;
  const Event woken_;
  const Event changed_;
  // Only changed while no thread waits.
  std::vector<Attachment> attachments_;
  std::vector<epoll_event> events_;
  std::size_t first_ = 0;  // where collecting starts
};

}  // namespace perflab::middleware::udp
