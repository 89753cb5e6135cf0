// Wrappers of the library's own transports: they count what each really sends and receives, and change
// nothing.
//
// A descriptor of this file is one of the library's whose transport is wrapped. The cost per datagram is two
// relaxed counters, one more virtual call, and on reception a scan of the submessage headers.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "middleware/fastdds/fast.h"
#include "middleware/middleware.h"

namespace perflab::middleware::fastdds {

// RTPS messages, i.e. datagrams, and their bytes without UDP headers. `user`: to or from the ports of user
// data; the others are discovery.
struct Direction {
  std::atomic<std::uint64_t> user_messages{0};
  std::atomic<std::uint64_t> user_bytes{0};
  std::atomic<std::uint64_t> other_messages{0};
  std::atomic<std::uint64_t> other_bytes{0};

  // Thread-safe.
  void count(bool user, std::uint32_t size) noexcept {
    (user ? user_messages : other_messages).fetch_add(1, std::memory_order_relaxed);
    (user ? user_bytes : other_bytes).fetch_add(size, std::memory_order_relaxed);
  }
};

// The traffic of one participant over one transport.
struct Traffic {
  explicit Traffic(std::atomic<std::uint32_t>& smallest) : smallest_fragment(smallest) {}

  Direction sent;
  Direction received;
  std::atomic<std::uint64_t> failed_sends{0};
  // The smallest fragment received over any transport of the participant: longer messages may have been
  // fragmented. UINT32_MAX: none.
  std::atomic<std::uint32_t>& smallest_fragment;
};

// True for ports of user data; only valid with the ports of the RTPS standard (even: discovery, odd: user
// data).
constexpr bool is_user_port(std::uint32_t port) { return port % 2 == 1; }

// The last datagram received by this thread, if it was a fragment. If it completes a message, that becomes
// available before the thread receives another datagram.
struct LastFragment {
  bool valid = false;
  perflab_identity writer{};
  std::int64_t sequence = 0;
  std::int64_t received_ns = 0;  // host clock
};
const LastFragment& last_fragment() noexcept;

// During its lifetime this thread calls `then` whenever a counting transport has sent a discovery message.
class AfterDiscovery {
 public:
  explicit AfterDiscovery(std::function<void()> then);
  ~AfterDiscovery();
  AfterDiscovery(const AfterDiscovery&) = delete;
  AfterDiscovery& operator=(const AfterDiscovery&) = delete;

 private:
  const std::function<void()> then_;
};

// `host` provides the clock; it and `traffic` must outlive the participant.
std::shared_ptr<network::UDPv4TransportDescriptor> counting_udp(
    const network::UDPv4TransportDescriptor& settings, Traffic& traffic, const perflab_host& host);
std::shared_ptr<network::SharedMemTransportDescriptor> counting_shm(
    const network::SharedMemTransportDescriptor& settings, Traffic& traffic, const perflab_host& host);

}  // namespace perflab::middleware::fastdds
