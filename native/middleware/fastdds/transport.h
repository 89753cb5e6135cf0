// The library's own transports, seen through: what is really sent and received by each is counted, and
// nothing changed.
//
// A descriptor of this file is one of the library's whose transport is wrapped. Per datagram it costs two
// relaxed counters, one more virtual call, and on receiving a look at the heads of the submessages.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

#include "middleware/fastdds/fast.h"
#include "middleware/middleware.h"

namespace perflab::middleware::fastdds {

// RTPS messages, that is datagrams, and their bytes without the headers of UDP. `user`: to or from the ports
// of user data; the others are discovery.
struct Direction {
  std::atomic<std::uint64_t> user_messages{0};
  std::atomic<std::uint64_t> user_bytes{0};
  std::atomic<std::uint64_t> other_messages{0};
  std::atomic<std::uint64_t> other_bytes{0};

  // From any thread.
  void count(bool user, std::uint32_t size) noexcept {
    (user ? user_messages : other_messages).fetch_add(1, std::memory_order_relaxed);
    (user ? user_bytes : other_bytes).fetch_add(size, std::memory_order_relaxed);
  }
};

// What one participant does by one transport.
struct Traffic {
  explicit Traffic(std::atomic<std::uint32_t>& smallest) : smallest_fragment(smallest) {}

  Direction sent;
  Direction received;
  std::atomic<std::uint64_t> failed_sends{0};
  // The smallest fragment that came, by any transport of the participant: longer messages may have come in
  // pieces. UINT32_MAX: none came.
  std::atomic<std::uint32_t>& smallest_fragment;
};

// Whether user data goes to this port; known only with the ports of the RTPS standard (even: discovery, odd:
// user data).
constexpr bool is_user_port(std::uint32_t port) { return port % 2 == 1; }

// The last datagram that this thread received, if it was a piece of a message. A message whose last piece it
// is becomes available before the thread receives another.
struct LastFragment {
  bool valid = false;
  perflab_identity writer{};
  std::int64_t sequence = 0;
  std::int64_t received_ns = 0;  // host clock
};
const LastFragment& last_fragment() noexcept;

// While it lives, `then` is called by this thread whenever a counting transport has sent a message of discovery for it.
class AfterDiscovery {
 public:
  explicit AfterDiscovery(std::function<void()> then);
  ~AfterDiscovery();
  AfterDiscovery(const AfterDiscovery&) = delete;
  AfterDiscovery& operator=(const AfterDiscovery&) = delete;

 private:
  const std::function<void()> then_;
};

// `host` lends the clock; it and `traffic` must outlive the participant.
std::shared_ptr<network::UDPv4TransportDescriptor> counting_udp(
    const network::UDPv4TransportDescriptor& settings, Traffic& traffic, const perflab_host& host);
std::shared_ptr<network::SharedMemTransportDescriptor> counting_shm(
    const network::SharedMemTransportDescriptor& settings, Traffic& traffic, const perflab_host& host);

}  // namespace perflab::middleware::fastdds
