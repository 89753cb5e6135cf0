#include "runtime/service.h"

#include <algorithm>
#include <cstdio>
#include <cstring>
#include <new>
#include <optional>

#include "message/header.h"
#include "middleware/types.h"
#include "runtime/parts.h"

namespace perflab::runtime {
namespace {

using message::kEncapsulationBytes;

EndpointSettings endpoint(const ServiceSettings& settings, TopicKind kind, const std::string& user_data) {
  EndpointSettings made;
  made.process = settings.process;
  made.participant = settings.participant;
  made.group = settings.group;
  made.kind = kind;
  made.topic = settings.service;
  const bool request = kind == TopicKind::kRequest;
  made.ros_type = settings.ros_type + (request ? "_Request" : "_Response");
  made.type = request ? settings.request : settings.response;
  made.type_hash = request ? settings.request_hash : settings.response_hash;
  made.qos = settings.qos;
  made.user_data = user_data;
  made.priority = settings.priority;
  return made;
}

using middleware::same;

using Framed = std::array<std::uint8_t, kRequestIdBytes>;

// In this machine's byte order, like the rest of the frame.
Framed encode(const RequestId& id) noexcept {
  Framed framed;
  std::memcpy(framed.data(), &id.client, sizeof id.client);
  std::memcpy(framed.data() + sizeof id.client, &id.number, sizeof id.number);
  return framed;
}

std::uint64_t read_number(const std::uint8_t* from, bool swap) noexcept {
  std::uint64_t value = 0;
  std::memcpy(&value, from, sizeof value);
  return swap ? __builtin_bswap64(value) : value;
}

// The identification of a framed message; empty if it has none.
std::optional<RequestId> identification(std::span<const std::uint8_t> framed) noexcept {
  if (framed.size() < kEncapsulationBytes + kRequestIdBytes || framed[0] != 0 || framed[1] > 1)
    return std::nullopt;
  const bool swap = framed[1] != message::kNativeEncapsulation;
  const std::uint8_t* const id = framed.data() + kEncapsulationBytes;
  return RequestId{read_number(id, swap),
                   static_cast<std::int64_t>(read_number(id + sizeof(std::uint64_t), swap))};
}

// Represents a client of rmw_cyclonedds framing like one of the other framing.
perflab_identity identity_of(std::uint64_t client) noexcept {
  perflab_identity identity{};
  std::memcpy(identity.bytes, &client, sizeof client);
  return identity;
}

// The message without its identification. The scratch buffer grows to the largest message and is kept.
std::span<const std::uint8_t> plain(std::span<const std::uint8_t> framed,
                                    std::vector<std::uint8_t>& scratch) {
  const auto body = framed.subspan(kEncapsulationBytes + kRequestIdBytes);
  scratch.resize(kEncapsulationBytes + body.size());
  std::copy_n(framed.begin(), kEncapsulationBytes, scratch.begin());
  std::ranges::copy(body, scratch.begin() + kEncapsulationBytes);
  return scratch;
}

// False if there is no memory.
bool encode(const message::Codec& codec, const void* object, std::vector<std::uint8_t>& bytes) noexcept {
  try {
    bytes.resize(codec.encoded_size(object));
    return codec.encode(object, bytes) > 0;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

// Throws std::bad_alloc.
std::vector<std::uint8_t> joined(const Outgoing& message) {
  std::vector<std::uint8_t> bytes;
  bytes.reserve(message.size());
  for (const std::span<const std::uint8_t> piece : {message.before, message.stamp, message.after})
    bytes.insert(bytes.end(), piece.begin(), piece.end());
  return bytes;
}

bool send_framed(Publisher& publisher, const RequestId& id, const Outgoing& message) noexcept {
  return publisher.publish_related(Parts(message, encode(id)).span(), nullptr, nullptr);
}

bool send_related(Publisher& publisher, const perflab_sample_identity& related, const Outgoing& message,
                  std::int64_t* number = nullptr) noexcept {
  return publisher.publish_related(Parts(message).span(), &related, number);
}

}  // namespace

std::string to_text(const ServiceId& id) {
  std::string text;
  for (const std::uint8_t byte : id) {
    std::array<char, 3> digits{};
    std::snprintf(digits.data(), digits.size(), "%x", static_cast<unsigned>(byte));
    if (!text.empty()) text += '.';
    text += digits.data();
  }
  return text;
}

// ---- client ----

ServiceClient::ServiceClient(Runtime& runtime, std::size_t executor, const ServiceSettings& settings,
                             ServiceFraming framing, const ServiceId& id, MessageHandler& handler)
    : framing_(framing), clock_(runtime.clock()), handler_(handler) {
  std::memcpy(&next_.client, id.data(), sizeof next_.client);
  const std::string user_data = "clientid=" + to_text(id) + ";";
  // The reply reader first: a peer that discovers the request writer then also finds the reader.
  replies_ = &runtime.create_subscription(executor, endpoint(settings, TopicKind::kReply, user_data), *this);
  requests_ = &runtime.create_publisher(endpoint(settings, TopicKind::kRequest, user_data));
  replies_->tell_client(traced_as());
}

perflab_identity ServiceClient::traced_as() const noexcept {
  return framing_ == ServiceFraming::kRmwFastrtps ? replies_->identity() : identity_of(next_.client);
}

std::size_t ServiceClient::matched() noexcept { return std::min(requests_->matched(), replies_->matched()); }

bool ServiceClient::request(const Outgoing& message) noexcept {
  replies_->tell_sent({traced_as(), next_.number});
  if (framing_ == ServiceFraming::kRmwFastrtps) {
    std::int64_t number = 0;
    if (!send_related(*requests_, {replies_->identity(), 0}, message, &number)) return false;
    next_.number = number + 1;
    return true;
  }
  const RequestId id = next_;
  ++next_.number;
  return send_framed(*requests_, id, message);
}

bool ServiceClient::request_object(const message::Codec& codec, const void* object,
                                   Nanoseconds& serialize_ns) noexcept {
  const Nanoseconds begin = clock_.now();
  if (!encode(codec, object, encoded_)) return false;
  serialize_ns = clock_.now() - begin;
  return request({{}, encoded_, {}});
}

perflab_sample_identity ServiceClient::call_of(const Delivery& delivery) const noexcept {
  if (framing_ == ServiceFraming::kRmwFastrtps) {
    const perflab_identity& asker = delivery.related.writer;
    const bool own = same(asker, replies_->identity()) || same(asker, requests_->identity());
    return own ? perflab_sample_identity{traced_as(), delivery.related.sequence} : perflab_sample_identity{};
  }
  const auto id = identification(delivery.bytes);
  return id && id->client == next_.client ? perflab_sample_identity{traced_as(), id->number} : perflab_sample_identity{};
}

void ServiceClient::on_message(const Delivery& delivery) noexcept {
  if (framing_ == ServiceFraming::kRmwFastrtps) {
    const perflab_identity& asker = delivery.related.writer;
    if (same(asker, replies_->identity()) || same(asker, requests_->identity()))
      handler_.on_message(delivery);
    return;
  }
  const auto id = identification(delivery.bytes);
  if (!id || id->client != next_.client) return;
  Delivery reply = delivery;
  reply.related = {requests_->identity(), id->number};
  reply.bytes = plain(delivery.bytes, scratch_);
  handler_.on_message(reply);
}

// ---- server ----

bool ServiceServer::send_now(const Asker& asker, const Outgoing& message) noexcept {
  requests_->tell_sent(framing_ == ServiceFraming::kRmwFastrtps
                           ? asker.related
                           : perflab_sample_identity{identity_of(asker.id.client), asker.id.number});
  return framing_ == ServiceFraming::kRmwFastrtps ? send_related(*replies_, asker.related, message)
                                                  : send_framed(*replies_, asker.id, message);
}

bool ServiceServer::send(const Asker& asker, const Outgoing& message) noexcept {
  return turns_.take([&] { return send_now(asker, message); }, [&] { return Kept{asker, joined(message)}; },
                     [&](const Kept& kept) { static_cast<void>(send_now(kept.asker, {{}, kept.bytes, {}})); });
}

class ServiceServer::KeptReply final : public LateReply {
 public:
  KeptReply(ServiceServer& server, const Asker& asker, Forgotten& told) noexcept
      : closed_(server.closed_), server_(server), asker_(asker), told_(told) {}
  ~KeptReply() override {
    if (!answered_.load(std::memory_order_acquire) && open()) told_.on_forgotten(server_.clock_.now());
  }

  bool send(const Outgoing& message) noexcept override {
    return !answered_.exchange(true, std::memory_order_acq_rel) && open() && server_.send(asker_, message);
  }
  bool send_object(const message::Codec& codec, const void* object) noexcept override {
    std::vector<std::uint8_t> encoded;
    return encode(codec, object, encoded) && send({{}, encoded, {}});
  }

 private:
  // The server exists and may be used.
  [[nodiscard]] bool open() const noexcept { return !closed_->load(std::memory_order_acquire); }

  const std::shared_ptr<std::atomic<bool>> closed_;
  ServiceServer& server_;
  const Asker asker_;
  Forgotten& told_;
  std::atomic<bool> answered_{false};
};

class ServiceServer::PendingReply final : public Reply {
 public:
  PendingReply(ServiceServer& server, const Asker& asker) noexcept : server_(server), asker_(asker) {}

  bool send(const Outgoing& message) noexcept override { return !later_ && server_.send(asker_, message); }
  bool send_object(const message::Codec& codec, const void* object) noexcept override {
    std::vector<std::uint8_t> encoded;
    return encode(codec, object, encoded) && send({{}, encoded, {}});
  }
  std::unique_ptr<LateReply> later(Forgotten& told) noexcept override {
    if (later_) return nullptr;
    std::unique_ptr<LateReply> kept(new (std::nothrow) KeptReply(server_, asker_, told));
    later_ = kept != nullptr;
    return kept;
  }

 private:
  ServiceServer& server_;
  const Asker asker_;
  bool later_ = false;
};

ServiceServer::ServiceServer(Runtime& runtime, std::size_t executor, const ServiceSettings& settings,
                             ServiceFraming framing, const ServiceId& id, RequestHandler& handler)
    : framing_(framing), clock_(runtime.clock()), handler_(handler) {
  const std::string user_data = "serviceid=" + to_text(id) + ";";
  replies_ = &runtime.create_publisher(endpoint(settings, TopicKind::kReply, user_data));
  requests_ =
      &runtime.create_subscription(executor, endpoint(settings, TopicKind::kRequest, user_data), *this);
}

std::size_t ServiceServer::matched() noexcept { return std::min(requests_->matched(), replies_->matched()); }

perflab_sample_identity ServiceServer::call_of(const Delivery& delivery) const noexcept {
  if (framing_ == ServiceFraming::kRmwFastrtps) {
    const bool reader_known = !same(delivery.related.writer, {});
    return {reader_known ? delivery.related.writer : delivery.writer, delivery.sequence};
  }
  const auto id = identification(delivery.bytes);
  return id ? perflab_sample_identity{identity_of(id->client), id->number} : perflab_sample_identity{};
}

void ServiceServer::on_message(const Delivery& delivery) noexcept {
  if (framing_ == ServiceFraming::kRmwFastrtps) {
    // Clients without related_sample_identity are identified by their request writer.
    const bool reader_known = !same(delivery.related.writer, {});
    PendingReply reply(
        *this, {{}, {reader_known ? delivery.related.writer : delivery.writer, delivery.sequence}});
    handler_.on_request(delivery, reply);
    return;
  }
  const auto id = identification(delivery.bytes);
  if (!id) return;
  Delivery request = delivery;
  request.sequence = id->number;
  request.bytes = plain(delivery.bytes, scratch_);
  PendingReply reply(*this, {*id, {}});
  handler_.on_request(request, reply);
}

}  // namespace perflab::runtime
