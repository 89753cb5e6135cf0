#include "middleware/fastdds/transport.h"

#include <cstring>
#include <map>
#include <utility>

#include "middleware/fastdds/library.h"

namespace perflab::middleware::fastdds {
namespace {

using network::SendResourceList;
using network::TransportInterface;
using network::TransportReceiverInterface;
using rtps::Locator_t;
using rtps::LocatorsIterator;
using rtps::SenderResource;

thread_local LastFragment last_fragment_of_thread;
thread_local const std::function<void()>* after_discovery = nullptr;

// ---- structure of a datagram (RTPS 2.3, 8.3 and 9.4) ----

constexpr std::uint32_t kMessageHeader = 20;    // protocol, version, vendor, GUID prefix at 8
constexpr std::uint32_t kSubmessageHeader = 4;  // kind, flags, length
constexpr std::uint8_t kDataFragment = 0x16;
constexpr std::uint32_t kDataFragmentSize = 32;  // up to and including sampleSize, after its header

template <typename Integer>
Integer read(const std::uint8_t* at, bool little_endian) {
  Integer value = 0;
  for (std::size_t i = 0; i < sizeof value; ++i) {
    const std::size_t place = little_endian ? sizeof value - 1 - i : i;
    value = static_cast<Integer>((value << 8) | at[place]);
  }
  return value;
}

// Finds the last DATA_FRAG of a datagram; its fragment size, or 0 if there is none.
std::uint32_t note_fragment(const std::uint8_t* data, std::uint32_t size, const perflab_host& host) {
  LastFragment& last = last_fragment_of_thread;
  last.valid = false;
  std::uint32_t fragment = 0;
  for (std::uint32_t at = kMessageHeader; at + kSubmessageHeader <= size;) {
    const std::uint8_t* const submessage = data + at;
    const bool little = (submessage[1] & 1) != 0;
    const std::uint32_t length = read<std::uint16_t>(submessage + 2, little);
    if (submessage[0] == kDataFragment && at + kSubmessageHeader + kDataFragmentSize <= size) {
      // extraFlags 2, octetsToInlineQos 2, readerId 4, writerId 4, writerSN 8, fragmentStartingNum 4,
      // fragmentsInSubmessage 2, fragmentSize 2, sampleSize 4
      const std::uint8_t* const content = submessage + kSubmessageHeader;
      std::memcpy(last.writer.bytes, data + 8, 12);
      std::memcpy(last.writer.bytes + 12, content + 8, 4);
      last.sequence = (std::int64_t{read<std::int32_t>(content + 12, little)} << 32) +
                      read<std::uint32_t>(content + 16, little);
      last.valid = true;
      fragment = read<std::uint16_t>(content + 26, little);
    }
    if (length == 0) break;  // extends to the end of the datagram
    at += kSubmessageHeader + length;
  }
  if (last.valid) last.received_ns = host.now_ns(host.context);
  return fragment;
}

// ---- receiving ----

class Receiver final : public TransportReceiverInterface {
 public:
  Receiver(TransportReceiverInterface* next, Traffic& traffic, const perflab_host& host)
      : next_(next), traffic_(traffic), host_(host) {}

  void OnDataReceived(const rtps::octet* data, const std::uint32_t size, const Locator_t& local,
                      const Locator_t& remote) override {
    const bool user = is_user_port(local.port);
    traffic_.received.count(user, size);
    if (user) {
      const std::uint32_t fragment = note_fragment(data, size, host_);
      std::uint32_t smallest = traffic_.smallest_fragment.load(std::memory_order_relaxed);
      while (fragment != 0 && fragment < smallest &&
             !traffic_.smallest_fragment.compare_exchange_weak(smallest, fragment, std::memory_order_relaxed)) {
      }
    }
    next_->OnDataReceived(data, size, local, remote);
  }

 private:
  TransportReceiverInterface* const next_;
  Traffic& traffic_;
  const perflab_host& host_;
};

// ---- sending ----

// Counts the locators of its transport as the transport iterates over them.
class Tap final : public LocatorsIterator {
 public:
  Tap(LocatorsIterator& inner, std::int32_t kind) : inner_(inner), kind_(kind) {}

  LocatorsIterator& operator++() override {
    const Locator_t& passed = *inner_;
    if (passed.kind == kind_) ++(is_user_port(passed.port) ? user : other);
    ++inner_;
    return *this;
  }
  bool operator==(const LocatorsIterator& end) const override { return inner_ == end; }
  bool operator!=(const LocatorsIterator& end) const override { return inner_ != end; }
  const Locator_t& operator*() const override { return *inner_; }

  std::uint32_t user = 0;
  std::uint32_t other = 0;

 private:
  LocatorsIterator& inner_;
  const std::int32_t kind_;
};

class Sender final : public SendingResource {
 public:
  Sender(std::unique_ptr<SenderResource> inner, const TransportInterface* owner, Traffic& traffic)
      : SendingResource(inner->kind()), inner_(std::move(inner)), owner_(owner) {
    sending() = [this, &traffic](const auto& data, std::uint32_t size, LocatorsIterator* begin,
                                    LocatorsIterator* end, const auto&... rest) {
      Tap tap(*begin, transport_kind_);
      const bool sent = inner_->send(data, size, &tap, end, rest...);
      if (!sent) traffic.failed_sends.fetch_add(1, std::memory_order_relaxed);
      for (std::uint32_t i = 0; sent && i < tap.user; ++i) traffic.sent.count(true, size);
      for (std::uint32_t i = 0; sent && i < tap.other; ++i) traffic.sent.count(false, size);
      if (tap.other != 0 && after_discovery != nullptr) (*after_discovery)();
      return sent;
    };
  }

  void add_locators_to_list(rtps::LocatorList_t& locators) const override {
    inner_->add_locators_to_list(locators);
  }
  bool belongs_to(const TransportInterface* transport) const noexcept { return owner_ == transport; }
  std::unique_ptr<SenderResource> release() noexcept { return std::move(inner_); }

 private:
  std::unique_ptr<SenderResource> inner_;
  const TransportInterface* const owner_;
};

// ---- the transport ----

constexpr const char* thread_name(std::int32_t kind, bool user) {
  if (kind == LOCATOR_KIND_SHM) return user ? "fdds.shm.user" : "fdds.shm.disc";
  return user ? "fdds.udp.user" : "fdds.udp.disc";
}

class CountingTransport final : public TransportInterface {
 public:
  CountingTransport(TransportInterface* inner, Traffic& traffic, const perflab_host& host)
      : TransportInterface(inner->kind()), traffic_(traffic), host_(host), inner_(inner) {}

  bool IsInputChannelOpen(const Locator_t& at) const override { return inner_->IsInputChannelOpen(at); }
  bool IsLocatorSupported(const Locator_t& at) const override { return inner_->IsLocatorSupported(at); }
  bool is_locator_allowed(const Locator_t& at) const override { return inner_->is_locator_allowed(at); }
  Locator_t RemoteToMainLocal(const Locator_t& at) const override { return inner_->RemoteToMainLocal(at); }
  bool transform_remote_locator(const Locator_t& remote, Locator_t& result) const override {
    return inner_->transform_remote_locator(remote, result);
  }
  bool OpenOutputChannel(SendResourceList& senders, const Locator_t& at) override {
    const Unwrapped unwrapped(*this, senders);
    return inner_->OpenOutputChannel(senders, at);
  }
  bool OpenInputChannel(const Locator_t& at, TransportReceiverInterface* receiver,
                        std::uint32_t size) override {
    auto& own = receivers_[{at, receiver}];
    if (!own) own = std::make_unique<Receiver>(receiver, traffic_, host_);
    // The thread that receives on this channel starts here.
    const ThreadName name(thread_name(at.kind, is_user_port(at.port)));
    return inner_->OpenInputChannel(at, own.get(), size);
  }
  bool CloseInputChannel(const Locator_t& at) override { return inner_->CloseInputChannel(at); }
  bool DoInputLocatorsMatch(const Locator_t& a, const Locator_t& b) const override {
    return inner_->DoInputLocatorsMatch(a, b);
  }
  rtps::LocatorList_t NormalizeLocator(const Locator_t& at) override { return inner_->NormalizeLocator(at); }
  void select_locators(rtps::LocatorSelector& selector) const override { inner_->select_locators(selector); }
  bool is_local_locator(const Locator_t& at) const override { return inner_->is_local_locator(at); }
  network::TransportDescriptorInterface* get_configuration() override { return inner_->get_configuration(); }
  void AddDefaultOutputLocator(rtps::LocatorList_t& list) override { inner_->AddDefaultOutputLocator(list); }
  bool getDefaultMetatrafficMulticastLocators(rtps::LocatorList_t& list, std::uint32_t port) const override {
    return inner_->getDefaultMetatrafficMulticastLocators(list, port);
  }
  bool getDefaultMetatrafficUnicastLocators(rtps::LocatorList_t& list, std::uint32_t port) const override {
    return inner_->getDefaultMetatrafficUnicastLocators(list, port);
  }
  bool getDefaultUnicastLocators(rtps::LocatorList_t& list, std::uint32_t port) const override {
    return inner_->getDefaultUnicastLocators(list, port);
  }
  bool fillMetatrafficMulticastLocator(Locator_t& at, std::uint32_t port) const override {
    return inner_->fillMetatrafficMulticastLocator(at, port);
  }
  bool fillMetatrafficUnicastLocator(Locator_t& at, std::uint32_t port) const override {
    return inner_->fillMetatrafficUnicastLocator(at, port);
  }
  bool configureInitialPeerLocator(Locator_t& at, const rtps::PortParameters& ports, std::uint32_t domain,
                                   rtps::LocatorList_t& list) const override {
    return inner_->configureInitialPeerLocator(at, ports, domain, list);
  }
  bool fillUnicastLocator(Locator_t& at, std::uint32_t port) const override {
    return inner_->fillUnicastLocator(at, port);
  }
  std::uint32_t max_recv_buffer_size() const override { return inner_->max_recv_buffer_size(); }
  void shutdown() override { inner_->shutdown(); }
  void update_network_interfaces() override { inner_->update_network_interfaces(); }
#if PERFLAB_FASTDDS_3
  bool is_locator_reachable(const Locator_t& at) override { return inner_->is_locator_reachable(at); }
#endif
#if PERFLAB_FASTDDS_2_14
  bool init(const rtps::PropertyPolicy* properties, const std::uint32_t& size) override {
    return inner_->init(properties, size);
  }
  bool OpenOutputChannels(SendResourceList& senders, const rtps::LocatorSelectorEntry& entry) override {
    const Unwrapped unwrapped(*this, senders);
    return inner_->OpenOutputChannels(senders, entry);
  }
  void CloseOutputChannels(SendResourceList& senders, const rtps::LocatorSelectorEntry& entry) override {
    const Unwrapped unwrapped(*this, senders);
    inner_->CloseOutputChannels(senders, entry);
  }
  bool transform_remote_locator(const Locator_t& remote, Locator_t& result, bool remote_localhost,
                                bool local_localhost) const override {
    return inner_->transform_remote_locator(remote, result, remote_localhost, local_localhost);
  }
  bool is_localhost_allowed() const override { return inner_->is_localhost_allowed(); }
  network::NetmaskFilterInfo netmask_filter_info() const override { return inner_->netmask_filter_info(); }
#else
  bool init(const rtps::PropertyPolicy* properties) override { return inner_->init(properties); }
#endif

 private:
  // During its lifetime the list holds the inner transport's own senders, which it must recognize; afterwards
  // they, and new ones, are wrapped again.
  class Unwrapped {
   public:
    Unwrapped(const CountingTransport& transport, SendResourceList& senders)
        : transport_(transport), senders_(senders) {
      for (auto& sender : senders_) {
        auto* const own = dynamic_cast<Sender*>(sender.get());
        if (own != nullptr && own->belongs_to(&transport_)) sender = own->release();
      }
    }
    ~Unwrapped() {
      for (auto& sender : senders_) {
        if (sender && sender->kind() == transport_.kind() && dynamic_cast<Sender*>(sender.get()) == nullptr) {
          sender = std::make_unique<Sender>(std::move(sender), &transport_, transport_.traffic_);
        }
      }
    }
    Unwrapped(const Unwrapped&) = delete;
    Unwrapped& operator=(const Unwrapped&) = delete;

   private:
    const CountingTransport& transport_;
    SendResourceList& senders_;
  };

  Traffic& traffic_;
  const perflab_host& host_;
  // They outlive their calling threads, which end with inner_.
  std::map<std::pair<Locator_t, TransportReceiverInterface*>, std::unique_ptr<Receiver>> receivers_;
  std::unique_ptr<TransportInterface> inner_;
};

template <typename Descriptor>
struct Counting final : Descriptor {
  Counting(const Descriptor& settings, Traffic& traffic_of, const perflab_host& host_of)
      : Descriptor(settings), traffic(traffic_of), host(host_of) {}
  TransportInterface* create_transport() const override {
    const Descriptor& plain = *this;
    return new CountingTransport(Descriptor(plain).create_transport(), traffic, host);
  }

  Traffic& traffic;
  const perflab_host& host;
};

}  // namespace

const LastFragment& last_fragment() noexcept { return last_fragment_of_thread; }

AfterDiscovery::AfterDiscovery(std::function<void()> then) : then_(std::move(then)) { after_discovery = &then_; }
AfterDiscovery::~AfterDiscovery() { after_discovery = nullptr; }

std::shared_ptr<network::UDPv4TransportDescriptor> counting_udp(
    const network::UDPv4TransportDescriptor& settings, Traffic& traffic, const perflab_host& host) {
  return std::make_shared<Counting<network::UDPv4TransportDescriptor>>(settings, traffic, host);
}

std::shared_ptr<network::SharedMemTransportDescriptor> counting_shm(
    const network::SharedMemTransportDescriptor& settings, Traffic& traffic, const perflab_host& host) {
  return std::make_shared<Counting<network::SharedMemTransportDescriptor>>(settings, traffic, host);
}

}  // namespace perflab::middleware::fastdds
