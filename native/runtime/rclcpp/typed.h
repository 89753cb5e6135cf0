// Publishers, subscriptions, clients and services of one message type (see entities.h).
//
// In memory a message of a fixed type is its CDR in native byte order: a header without padding, then the
// data. So what handlers read is the message itself; only the 36 bytes of the frame are copied.
#pragma once

#include <array>
#include <cstring>
#include <rosidl_runtime_cpp/message_initialization.hpp>
#include <type_traits>

#include "message/header.h"
#include "middleware/types.h"
#include "runtime/rclcpp/entities.h"

namespace perflab::runtime::ros {

// What stands in front of the data of every message that this runtime sends.
inline constexpr std::size_t kFrameBytes = message::kEncapsulationBytes + message::kHeaderBytes;
using Frame = std::array<std::uint8_t, kFrameBytes>;

// A message whose every byte is written before it is sent need not be filled with zeros first.
inline constexpr auto kAsItIs = rosidl_runtime_cpp::MessageInitialization::SKIP;

template <typename Message>
inline constexpr bool kVariable = requires(Message& message) { message.data.resize(1); };

template <typename Message>
void check_layout() {
  using Header = decltype(Message::header);
  static_assert(sizeof(Header) == message::kHeaderBytes && std::is_standard_layout_v<Message>);
  static_assert(offsetof(Header, intended_ns) == offsetof(message::Header, intended_ns));
  static_assert(offsetof(Header, published_ns) == offsetof(message::Header, published_ns));
  static_assert(offsetof(Header, sequence) == offsetof(message::Header, sequence));
  static_assert(offsetof(Header, size_bytes) == offsetof(message::Header, size_bytes));
  static_assert(offsetof(Header, frequency_hz) == offsetof(message::Header, frequency_hz));
}

template <typename Message>
void set_header(Message& message, std::span<const std::uint8_t> frame) noexcept {
  std::memcpy(static_cast<void*>(&message.header), frame.data() + message::kEncapsulationBytes,
              message::kHeaderBytes);
}

// `payload` is what follows the frame; where the frame has no length, that of a variable type begins with it.
template <typename Message>
void set_data(Message& message, std::span<const std::uint8_t> payload, bool with_length) {
  if constexpr (kVariable<Message>) {
    if (with_length) {
      std::uint32_t length = 0;
      if (payload.size() < sizeof length) return;
      std::memcpy(&length, payload.data(), sizeof length);
      payload =
          payload.subspan(sizeof length).first(std::min<std::size_t>(length, payload.size() - sizeof length));
    }
    message.data.assign(payload.begin(), payload.end());
  } else {
    std::memcpy(static_cast<void*>(&message.data), payload.data(),
                std::min(payload.size(), sizeof message.data));
  }
}

template <typename Message>
std::span<const std::uint8_t> content_of(const Message& message) noexcept {
  if constexpr (kVariable<Message>) {
    // Never null: that would say that there is no content.
    static constexpr std::uint8_t kNothing = 0;
    return {message.data.empty() ? &kNothing : message.data.data(), message.data.size()};
  } else {
    return {reinterpret_cast<const std::uint8_t*>(&message.data), sizeof message.data};
  }
}

template <typename Message>
Frame frame_of(const Message& message) noexcept {
  Frame frame{0, message::kNativeEncapsulation, 0, 0};
  std::memcpy(frame.data() + message::kEncapsulationBytes, &message.header, message::kHeaderBytes);
  return frame;
}

// `frame` is that of the message.
template <typename Message>
Delivery delivery_of(const Message& message, const Frame& frame) noexcept {
  Delivery delivery;
  delivery.bytes = frame;
  delivery.content = content_of(message);
  return delivery;
}

// 0 where ROS cannot count any more.
template <typename Count>
std::size_t counted(Count&& count) noexcept {
  try {
    return count();
  } catch (const std::exception&) {
    return 0;
  }
}

// ---- publisher ----

// Of a node of either kind.
template <typename Message, typename Node>
class TypedPublisher final : public Publisher {
 public:
  TypedPublisher(Shared& shared, Node& node, const EndpointSettings& settings, const LocalTopic& topic)
      : shared_(shared), settings_(settings), topic_(topic), matches_(shared, settings_) {
    check_layout<Message>();
    rclcpp::PublisherOptions options;
    options.event_callbacks.incompatible_qos_callback = [this](const auto& status) {
      matches_.report_incompatible(status);
    };
    made_ = node.template create_publisher<Message>(settings.topic, to_ros(settings.qos), options);
    identity_ = identity_of(made_->get_gid());
    if (middleware::same(identity_, {}))
      identity_ = identity_in_graph(*node.get_node_graph_interface(), node.get_name(), node.get_namespace(),
                                    settings.topic, shared_.identities);
    gives_away_ = settings.pass_by == PassBy::kUnique;
    if constexpr (kPublishesLoans<Made, Message>)
      lends_ = settings.pass_by == PassBy::kLoaned && made_->can_loan_messages();
    if (!gives_away_ && !lends_) kept_ = std::make_unique<Message>();
  }

  bool prepare(const Outgoing& outgoing) noexcept override {
    try {
      set_data(next(), outgoing.after, true);
      ready_ = true;
      return true;
    } catch (const std::exception& error) {
      return failed(error.what());
    }
  }

  // The header stands in front: there is nothing before the stamp.
  bool publish(const Outgoing& outgoing) noexcept override {
    try {
      const bool ready = std::exchange(ready_, false);
      Message& message = next();
      if (!ready) set_data(message, outgoing.after, outgoing.stamp.size() == kFrameBytes);
      set_header(message, outgoing.stamp);
      send();
      return true;
    } catch (const std::exception& error) {
      loan_.reset();
      prepared_.reset();
      return failed(error.what());
    }
  }

  bool publish_related(std::span<const perflab_bytes>, const perflab_sample_identity*,
                       std::int64_t*) noexcept override {
    return failed("requests and replies are ROS 2's own business on rclcpp");
  }

  // As rclcpp's intra-process manager does it: a message that is kept is copied once, and then each taker
  // that wants its own but one gets a copy; if several share beside them, or the middleware needs it, they
  // have one copy of their own.
  [[nodiscard]] Passing passing() noexcept override {
    try {
      Passing passing;
      passing.intra_process = made_->get_intra_process_subscription_count();
      const std::size_t all = matched();
      passing.middleware = all - std::min(all, passing.intra_process);
      passing.loaned = lends_;
      if (passing.intra_process > 0) {
        const std::size_t sharing = topic_.sharing + (passing.middleware > 0 ? 1 : 0);
        const std::size_t apart = topic_.owning == 0 ? 0
                                  : sharing > 1      ? topic_.owning
                                                     : topic_.owning + sharing - 1;
        passing.copies = (gives_away_ || lends_ ? 0 : 1) + apart;
      }
      return passing;
    } catch (const std::exception&) {
      return {};
    }
  }
  [[nodiscard]] perflab_identity identity() const noexcept override { return identity_; }
  [[nodiscard]] std::size_t matched() noexcept override {
    // The middleware matches also those that rclcpp delivers to within the process, and drops what comes.
    return counted([this] {
      return matches_.look(made_->get_subscription_count(), *made_, RCL_PUBLISHER_OFFERED_INCOMPATIBLE_QOS);
    });
  }

 private:
  using Made = typename decltype(std::declval<Node&>().template create_publisher<Message>(
      "", rclcpp::QoS(1)))::element_type;

  // The message that goes out next: borrowed, made to be given away, or the one that an application keeps.
  Message& next() {
    if (lends_) {
      if (!loan_) loan_.emplace(made_->borrow_loaned_message());
      return loan_->get();
    }
    if (!gives_away_) return *kept_;
    if (!prepared_) prepared_ = std::make_unique<Message>(kAsItIs);
    return *prepared_;
  }
  void send() {
    if (lends_) {
      rclcpp::LoanedMessage<Message> given = std::move(*loan_);
      loan_.reset();
      if constexpr (kPublishesLoans<Made, Message>) made_->publish(std::move(given));
    } else if (gives_away_) {
      made_->publish(std::move(prepared_));
    } else {
      made_->publish(*kept_);
    }
  }
  bool failed(const char* text) noexcept {
    shared_.sink.on_write_failed(shared_.clock.now(), text);
    return false;
  }

  Shared& shared_;
  const EndpointSettings settings_;
  const LocalTopic& topic_;
  perflab_identity identity_{};
  Matches matches_;
  std::shared_ptr<Made> made_;
  std::unique_ptr<Message> kept_;  // where none is given away or borrowed
  bool ready_ = false;             // prepare() has been called for the next message
  std::unique_ptr<Message> prepared_;
  std::optional<rclcpp::LoanedMessage<Message>> loan_;
  bool gives_away_ = false;
  bool lends_ = false;
};

// ---- subscription ----

template <typename Message>
class TypedSubscription final : public RosSubscription {
 public:
  TypedSubscription(Shared& shared, const NodeHandle& node, const EndpointSettings& settings,
                    MessageHandler& handler)
      : RosSubscription(shared), settings_(settings), handler_(handler), matches_(shared, settings_) {
    node.with([this](auto& of) {
      if (settings_.pass_by == PassBy::kUnique) {
        create<std::unique_ptr<Message>>(of);
      } else {
        create<std::shared_ptr<const Message>>(of);
      }
    });
  }

  // ROS has no call that names it; nobody asks.
  [[nodiscard]] perflab_identity identity() const noexcept override { return {}; }
  [[nodiscard]] std::size_t matched() noexcept override {
    return counted([this] {
      return matches_.look(made_->get_publisher_count(), *made_, RCL_SUBSCRIPTION_REQUESTED_INCOMPATIBLE_QOS);
    });
  }

 private:
  template <typename Taken, typename Node>
  void create(Node& node) {
    rclcpp::SubscriptionOptions options;
    options.event_callbacks.incompatible_qos_callback = [this](const auto& status) {
      matches_.report_incompatible(status);
    };
    made_ = node.template create_subscription<Message>(
        settings_.topic, to_ros(settings_.qos),
        [this](Taken message, const rclcpp::MessageInfo& info) { deliver(*message, info); }, options);
  }

  void deliver(const Message& message, const rclcpp::MessageInfo& info) noexcept {
    const Frame frame = frame_of(message);
    const rmw_message_info_t& from = info.get_rmw_message_info();
    Delivery delivery = delivery_of(message, frame);
    if (!from.from_intra_process) {  // where it is, rclcpp says nothing else of the message
      delivery.writer = identity_of(from.publisher_gid);
      if (from.source_timestamp > 0) delivery.source_timestamp_ns = from.source_timestamp;
    }
    handler_.on_message(delivery);
  }

  void listen() override {
    made_->set_on_new_message_callback(on_ready());
    if (!shared_.intra_process) return;
    waitable_ = made_->get_intra_process_waitable();
    made_->set_on_new_intra_process_message_callback(on_ready());
  }
  void ignore() override {
    made_->clear_on_new_message_callback();
    if (waitable_) made_->clear_on_new_intra_process_message_callback();
  }
  bool take() override {
    if (waitable_) {
      if (std::shared_ptr<void> data = waitable_->take_data()) {
        execute(*waitable_, std::move(data));
        return true;
      }
    }
    rclcpp::MessageInfo info;
    info.get_rmw_message_info().from_intra_process = false;
    std::shared_ptr<void> message = made_->create_message();
    const bool taken = made_->take_type_erased(message.get(), info);
    if (taken) made_->handle_message(message, info);
    made_->return_message(message);
    return taken;
  }

  const EndpointSettings settings_;
  MessageHandler& handler_;
  Matches matches_;
  typename rclcpp::Subscription<Message>::SharedPtr made_;
  rclcpp::Waitable::SharedPtr waitable_;
};

// ---- services ----

template <typename Service>
class TypedClient final : public RosClient {
 public:
  TypedClient(Shared& shared, const NodeHandle& node, const ServiceSettings& settings,
              MessageHandler& handler)
      : RosClient(shared),
        graph_(node.graph()),
        handler_(handler),
        made_(rclcpp::create_client<Service>(node.base(), node.graph(), node.services(), settings.service,
                                             service_qos(to_ros(settings.qos)), nullptr)) {}

  // rclcpp guards its list of requests while it sends one. A reply may come back in this very thread, and has
  // to wait until that is over.
  bool request(const Outgoing& outgoing) noexcept override {
    const Inline::Later later(inline_);
    try {
      auto request = std::make_shared<typename Service::Request>();
      set_header(*request, outgoing.stamp);
      set_data(*request, outgoing.after, false);
      made_->async_send_request(
          std::move(request),
          [this](typename rclcpp::Client<Service>::SharedFuture future) { deliver(*future.get()); });
      return true;
    } catch (const std::exception& error) {
      shared_.sink.on_write_failed(shared_.clock.now(), error.what());
      return false;
    }
  }
  [[nodiscard]] perflab_identity identity() const noexcept override { return {}; }
  [[nodiscard]] std::size_t matched() noexcept override {
    return counted([this] {
      return made_->service_is_ready() ? count_services(*graph_, made_->get_service_name()) : 0;
    });
  }

 private:
  void deliver(const typename Service::Response& response) noexcept {
    const Frame frame = frame_of(response);
    handler_.on_message(delivery_of(response, frame));
  }
  void listen() override { made_->set_on_new_response_callback(on_ready()); }
  void ignore() override { made_->clear_on_new_response_callback(); }
  bool take() override {
    std::shared_ptr<void> response = made_->create_response();
    std::shared_ptr<rmw_request_id_t> header = made_->create_request_header();
    if (!made_->take_type_erased_response(response.get(), *header)) return false;
    made_->handle_response(header, response);
    return true;
  }

  rclcpp::node_interfaces::NodeGraphInterface::SharedPtr graph_;
  MessageHandler& handler_;
  typename rclcpp::Client<Service>::SharedPtr made_;
};

template <typename Service>
class TypedServer final : public RosServer {
 public:
  TypedServer(Shared& shared, const NodeHandle& node, const ServiceSettings& settings,
              RequestHandler& handler)
      : RosServer(shared),
        graph_(node.graph()),
        handler_(handler),
        made_(rclcpp::create_service<Service>(
            node.base(), node.services(), settings.service,
            [this](const std::shared_ptr<typename Service::Request> request,
                   std::shared_ptr<typename Service::Response> response) { handle(*request, *response); },
            service_qos(to_ros(settings.qos)), nullptr)) {}

  [[nodiscard]] std::size_t matched() noexcept override {
    return counted([this] { return count_clients(*graph_, made_->get_service_name()); });
  }

 private:
  // rclcpp sends the response when the callback has returned.
  class Filled final : public Reply {
   public:
    explicit Filled(typename Service::Response& response) : response_(response) {}
    bool send(const Outgoing& outgoing) noexcept override {
      set_header(response_, outgoing.stamp);
      set_data(response_, outgoing.after, false);
      return true;
    }

   private:
    typename Service::Response& response_;
  };

  void handle(const typename Service::Request& request, typename Service::Response& response) noexcept {
    const Frame frame = frame_of(request);
    Filled reply(response);
    handler_.on_request(delivery_of(request, frame), reply);
  }
  void listen() override { made_->set_on_new_request_callback(on_ready()); }
  void ignore() override { made_->clear_on_new_request_callback(); }
  bool take() override {
    std::shared_ptr<void> request = made_->create_request();
    std::shared_ptr<rmw_request_id_t> header = made_->create_request_header();
    if (!made_->take_type_erased_request(request.get(), *header)) return false;
    made_->handle_request(header, request);
    return true;
  }

  rclcpp::node_interfaces::NodeGraphInterface::SharedPtr graph_;
  RequestHandler& handler_;
  typename rclcpp::Service<Service>::SharedPtr made_;
};

// ---- one type ----

template <typename Typed, typename Entity, typename Settings, typename Handler>
std::unique_ptr<Entity> make(Shared& shared, const NodeHandle& node, const Settings& settings,
                             Handler& handler) {
  return std::make_unique<Typed>(shared, node, settings, handler);
}

// `Service` is void for a type that is none.
template <typename Message, typename Service>
constexpr MessageEntities entities(std::string_view ros_type) {
  MessageEntities made{};
  made.ros_type = ros_type;
  made.publisher = [](Shared& shared, const NodeHandle& node, const EndpointSettings& settings,
                      const LocalTopic& topic) {
    return node.with([&]<typename Node>(Node& of) -> std::unique_ptr<Publisher> {
      return std::make_unique<TypedPublisher<Message, Node>>(shared, of, settings, topic);
    });
  };
  made.subscription = &make<TypedSubscription<Message>>;
  if constexpr (!std::is_void_v<Service>) {
    made.client = &make<TypedClient<Service>>;
    made.server = &make<TypedServer<Service>>;
  }
  return made;
}

}  // namespace perflab::runtime::ros
