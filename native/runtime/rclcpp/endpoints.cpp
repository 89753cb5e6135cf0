// Publishers, subscriptions, clients and services of rclcpp for messages of any type (any_message.h).
//
// Structs are encoded by the RMW, and rclcpp delivers them within the process like those of an application.
// Encoded messages are published and taken as rclcpp::SerializedMessage, as a recorder does it.
#include <rcl/publisher.h>

#include <array>
#include <cstring>
#include <optional>
#include <vector>

#include "message/codec.h"
#include "middleware/types.h"
#include "runtime/rclcpp/any_message.h"
#include "runtime/rclcpp/entities.h"
#include "runtime/rclcpp/type_support.h"

namespace perflab::runtime::ros {
namespace {

// Precondition: `to` has room for the whole message.
void join(const Outgoing& message, std::uint8_t* to) noexcept {
  for (const std::span<const std::uint8_t> piece : {message.before, message.stamp, message.after}) {
    if (!piece.empty()) std::memcpy(to, piece.data(), piece.size());
    to += piece.size();
  }
}

// ---- publishers ----

// On a node of either kind.
template <typename Node>
class AnyPublisher : public Publisher {
 public:
  AnyPublisher(Shared& shared, Node& node, const EndpointSettings& settings, const LocalTopic& topic)
      : shared_(shared),
        settings_(settings),
        support_(message_support(settings.ros_type, *settings.type, shared.rmw)),
        topic_(topic),
        matches_(shared, settings_) {
    rclcpp::PublisherOptions options;
    options.event_callbacks.incompatible_qos_callback = [this](const auto& status) {
      matches_.report_incompatible(status);
    };
    const Making making(support_);
    made_ = node.template create_publisher<AnyMessage>(settings.topic, to_ros(settings), options);
    identity_ = identity_of(made_->get_gid());
    if (middleware::same(identity_, {}))
      identity_ = identity_in_graph(*node.get_node_graph_interface(), node.get_name(), node.get_namespace(),
                                    settings.topic, shared_.identities);
  }

  bool publish(const Outgoing&) noexcept override {
    return failed("this runtime passes structs, but the message is encoded");
  }
  bool publish_related(std::span<const perflab_bytes>, const perflab_sample_identity*,
                       std::int64_t*) noexcept override {
    return failed("requests and replies are sent by ROS 2 itself on rclcpp");
  }

  // As in rclcpp's intra-process manager: a message that is kept is copied once, and then each taker that
  // wants ownership, except one, gets a copy; sharing takers besides them, or the middleware, share one
  // further copy.
  [[nodiscard]] Passing passing() noexcept override {
    try {
      Passing passing;
      passing.intra_process = made_->get_intra_process_subscription_count();
      const std::size_t all = matched();
      passing.middleware = all - std::min(all, passing.intra_process);
      passing.loaned = lends();
      if (passing.intra_process > 0) {
        const std::size_t sharing = topic_.sharing + (passing.middleware > 0 ? 1 : 0);
        const std::size_t apart = topic_.owning == 0 ? 0
                                  : sharing > 1      ? topic_.owning
                                                     : topic_.owning + sharing - 1;
        passing.copies = (gives_away() || lends() ? 0 : 1) + apart;
      }
      return passing;
    } catch (const std::exception&) {
      return {};
    }
  }
  [[nodiscard]] perflab_identity identity() const noexcept override { return identity_; }
  [[nodiscard]] std::size_t matched() noexcept override {
    // The middleware also matches local subscriptions to which rclcpp delivers within the process, and drops
    // these messages.
    return counted([this] {
      return matches_.look(made_->get_subscription_count(), *made_, RCL_PUBLISHER_OFFERED_INCOMPATIBLE_QOS);
    });
  }

 protected:
  using Made = typename decltype(std::declval<Node&>().template create_publisher<AnyMessage>(
      "", rclcpp::QoS(1)))::element_type;

  [[nodiscard]] virtual bool lends() const noexcept { return false; }
  [[nodiscard]] virtual bool gives_away() const noexcept { return false; }
  bool failed(const char* text) noexcept {
    shared_.sink.on_write_failed(shared_.clock.now(), text);
    return false;
  }

  Shared& shared_;
  const EndpointSettings settings_;
  const rosidl_message_type_support_t& support_;
  const LocalTopic& topic_;
  perflab_identity identity_{};
  Matches matches_;
  std::shared_ptr<Made> made_;
};

template <typename Node>
class StructPublisher final : public AnyPublisher<Node> {
 public:
  StructPublisher(Shared& shared, Node& node, const EndpointSettings& settings, const LocalTopic& topic)
      : AnyPublisher<Node>(shared, node, settings, topic),
        lends_(settings.pass_by == PassBy::kLoaned && this->made_->can_loan_messages()) {}
  ~StructPublisher() override {
    if (loan_ == nullptr) return;
    const rcl_ret_t result =
        rcl_return_loaned_message_from_publisher(this->made_->get_publisher_handle().get(), loan_);
    if (result != RCL_RET_OK) rcl_reset_error();  // it is destroyed with its publisher
  }

  // The next message to send: borrowed, created to be given away, or kept by the application.
  void* prepare_object(message::Object& own) noexcept override {
    if (!lends_ && !gives_away()) return own.data();
    try {
      if (!lends_) {
        prepared_ = std::make_unique<AnyMessage>(own.type(), own.data());
        return prepared_->data();
      }
      if (loan_ == nullptr) borrow();
      if (message::assign(own.type(), own.data(), loan_)) return loan_;
      throw std::bad_alloc();
    } catch (const std::exception& error) {
      this->failed(error.what());
      return nullptr;
    }
  }

  // Only the RMW knows the encoding time.
  bool publish_object(const message::Codec& codec, void* object, std::int64_t source_timestamp_ns,
                      Nanoseconds& serialize_ns) noexcept override {
    serialize_ns = kUnknownTime;
    try {
      if (lends_) {
        publish_loan();
      } else if (gives_away()) {
        prepared_->source_timestamp_ns = stamp_of(source_timestamp_ns);
        this->made_->publish(std::move(prepared_));
      } else {
        AnyMessage kept = AnyMessage::view(codec.type(), object);
        kept.source_timestamp_ns = stamp_of(source_timestamp_ns);
        this->made_->publish(static_cast<const AnyMessage&>(kept));
      }
      return true;
    } catch (const std::exception& error) {
      return this->failed(error.what());
    }
  }

 private:
  // rclcpp::LoanedMessage needs the type support of a message type and cannot use a publisher's; this does
  // the same.
  void borrow() {
    const rcl_ret_t result =
        rcl_borrow_loaned_message(this->made_->get_publisher_handle().get(), &this->support_, &loan_);
    if (result != RCL_RET_OK) rclcpp::exceptions::throw_from_rcl_error(result, "no message can be borrowed");
  }
  void publish_loan() {
    struct Open : rclcpp::Publisher<AnyMessage> {
      static auto publish() { return &Open::do_loaned_message_publish; }
    };
    auto* const loan = static_cast<AnyMessage*>(std::exchange(loan_, nullptr));
    rclcpp::Publisher<AnyMessage>& publisher = *this->made_;
    (publisher.*Open::publish())(
        std::unique_ptr<AnyMessage, std::function<void(AnyMessage*)>>(loan, [](AnyMessage*) {}));
  }
  static std::int64_t stamp_of(std::int64_t given) noexcept { return given == 0 ? kUnknownTime : given; }
  [[nodiscard]] bool lends() const noexcept override { return lends_; }
  [[nodiscard]] bool gives_away() const noexcept override { return this->settings_.pass_by == PassBy::kUnique; }

  const bool lends_;
  std::unique_ptr<AnyMessage> prepared_;
  void* loan_ = nullptr;
};

template <typename Node>
class EncodedPublisher final : public AnyPublisher<Node> {
 public:
  using AnyPublisher<Node>::AnyPublisher;

  bool publish(const Outgoing& outgoing) noexcept override {
    try {
      rcl_serialized_message_t& to = message_.get_rcl_serialized_message();
      if (to.buffer_capacity < outgoing.size()) message_.reserve(outgoing.size());
      join(outgoing, to.buffer);
      to.buffer_length = outgoing.size();
      static_cast<rclcpp::Publisher<AnyMessage>&>(*this->made_).publish(message_);
      return true;
    } catch (const std::exception& error) {
      return this->failed(error.what());
    }
  }

 private:
  rclcpp::SerializedMessage message_;
};

// ---- subscriptions ----

class AnySubscription final : public RosSubscription {
 public:
  AnySubscription(Shared& shared, const NodeHandle& node, const EndpointSettings& settings, MessageHandler& handler)
      : RosSubscription(shared), settings_(settings), handler_(handler), matches_(shared, settings_) {
    const auto topics = node.with([](auto& of) { return of.get_node_topics_interface(); });
    if (!shared.structs) {
      create(*topics, [this](std::shared_ptr<rclcpp::SerializedMessage> message, const rclcpp::MessageInfo& info) {
        deliver(*message, info);
      });
    } else if (settings_.pass_by == PassBy::kUnique) {
      create(*topics, [this](std::unique_ptr<AnyMessage> message, const rclcpp::MessageInfo& info) {
        deliver(*message, info);
      });
    } else {
      create(*topics, [this](std::shared_ptr<const AnyMessage> message, const rclcpp::MessageInfo& info) {
        deliver(*message, info);
      });
    }
  }

  // ROS has no function for it; never used.
  [[nodiscard]] perflab_identity identity() const noexcept override { return {}; }
  [[nodiscard]] std::vector<const void*> executables() const override {
    std::vector<const void*> all{static_cast<const rclcpp::SubscriptionBase*>(made_.get())};
    if (shared_.intra_process) all.push_back(made_->get_intra_process_waitable().get());
    return all;
  }
  [[nodiscard]] std::size_t matched() noexcept override {
    return counted([this] {
      return matches_.look(made_->get_publisher_count(), *made_, RCL_SUBSCRIPTION_REQUESTED_INCOMPATIBLE_QOS);
    });
  }

 private:
  // Gives rcl structs to fill.
  class Made final : public rclcpp::Subscription<AnyMessage> {
   public:
    template <typename... Arguments>
    explicit Made(const message::Type& type, Arguments&&... arguments)
        : Subscription(std::forward<Arguments>(arguments)...), type_(type) {}

    std::shared_ptr<void> create_message() override { return lend(type_); }
    void handle_message(std::shared_ptr<void>& message, const rclcpp::MessageInfo& info) override {
      std::shared_ptr<void> known = lent(message);
      Subscription::handle_message(known, info);
    }
    void handle_loaned_message(void* loaned, const rclcpp::MessageInfo& info) override {
      AnyMessage message = AnyMessage::view(type_, loaned);
      Subscription::handle_loaned_message(std::addressof(message), info);
    }
    void return_message(std::shared_ptr<void>& message) override { message.reset(); }

   private:
    const message::Type& type_;
  };

  // As in rclcpp::create_subscription.
  template <typename Callback>
  void create(rclcpp::node_interfaces::NodeTopicsInterface& topics, Callback&& callback) {
    rclcpp::SubscriptionOptions options;
    options.event_callbacks.incompatible_qos_callback = [this](const auto& status) {
      matches_.report_incompatible(status);
    };
    rclcpp::AnySubscriptionCallback<AnyMessage, std::allocator<void>> any;
    any.set(std::forward<Callback>(callback));
    const rclcpp::SubscriptionFactory factory{[&](rclcpp::node_interfaces::NodeBaseInterface* base,
                                                  const std::string& topic, const rclcpp::QoS& qos) {
      made_ = std::make_shared<Made>(*settings_.type, base,
                                     message_support(settings_.ros_type, *settings_.type, shared_.rmw), topic, qos, any,
                                     options, Made::MessageMemoryStrategyType::create_default());
      made_->post_init_setup(base, qos, options);
      return made_;
    }};
    const auto made = topics.create_subscription(settings_.topic, factory, to_ros(settings_));
    topics.add_subscription(made, nullptr);
  }

  void deliver(const AnyMessage& message, const rclcpp::MessageInfo& info) noexcept {
    Delivery delivery = delivery_of(info);
    delivery.object = message.data();
    if (info.get_rmw_message_info().from_intra_process) delivery.source_timestamp_ns = message.source_timestamp_ns;
    handler_.on_message(delivery);
  }
  void deliver(const rclcpp::SerializedMessage& message, const rclcpp::MessageInfo& info) noexcept {
    Delivery delivery = delivery_of(info);
    const rcl_serialized_message_t& bytes = message.get_rcl_serialized_message();
    delivery.bytes = {bytes.buffer, bytes.buffer_length};
    handler_.on_message(delivery);
  }
  static Delivery delivery_of(const rclcpp::MessageInfo& info) noexcept {
    Delivery delivery;
    const rmw_message_info_t& from = info.get_rmw_message_info();
    if (from.from_intra_process) return delivery;  // rclcpp reports nothing else about it
    delivery.writer = identity_of(from.publisher_gid);
    if (from.source_timestamp > 0) delivery.source_timestamp_ns = from.source_timestamp;
    return delivery;
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
    return shared_.structs ? take_struct(info) : take_encoded(info);
  }
  bool take_struct(rclcpp::MessageInfo& info) {
    std::shared_ptr<void> message = made_->create_message();
    const bool taken = made_->take_type_erased(message.get(), info);
    if (taken) made_->handle_message(message, info);
    made_->return_message(message);
    return taken;
  }
  bool take_encoded(rclcpp::MessageInfo& info) {
    std::shared_ptr<rclcpp::SerializedMessage> message = made_->create_serialized_message();
    const bool taken = made_->take_serialized(*message, info);
    if (taken) made_->handle_serialized_message(message, info);
    made_->return_serialized_message(message);
    return taken;
  }

  const EndpointSettings settings_;
  MessageHandler& handler_;
  Matches matches_;
  std::shared_ptr<Made> made_;
  rclcpp::Waitable::SharedPtr waitable_;
};

// ---- services ----

// A service message. rcl has no function for encoded ones: if the graph passes them encoded, they are encoded
// and decoded here.
class ServiceMessage {
 public:
  explicit ServiceMessage(const message::Type& type) : codec_(type) {}

  [[nodiscard]] const message::Type& type() const noexcept { return codec_.type(); }
  // Throws Error if the bytes are not such a message.
  [[nodiscard]] AnyMessage decode(const Outgoing& outgoing) const {
    std::vector<std::uint8_t> bytes(outgoing.size());
    join(outgoing, bytes.data());
    AnyMessage message(type());
    if (!codec_.decode(bytes, message.data()))
      throw Error(Error::Kind::kFailed, "the message sent is not a " + type().name);
    return message;
  }
  // `bytes` are those of the delivery, if messages are encoded.
  [[nodiscard]] Delivery delivery_of(const AnyMessage& message, bool structs, std::vector<std::uint8_t>& bytes) const {
    Delivery delivery;
    if (structs) {
      delivery.object = message.data();
    } else {
      bytes.resize(codec_.encoded_size(message.data()));
      codec_.encode(message.data(), bytes);
      delivery.bytes = bytes;
    }
    return delivery;
  }

 private:
  message::Codec codec_;
};

class AnyClient final : public RosClient {
 public:
  AnyClient(Shared& shared, const NodeHandle& node, const ServiceSettings& settings, MessageHandler& handler)
      : RosClient(shared),
        graph_(node.graph()),
        handler_(handler),
        request_(*settings.request),
        response_(*settings.response) {
    const Making making(service_support(settings.ros_type, request_.type(), response_.type(), shared.rmw));
    rcl_client_options_t options = rcl_client_get_default_options();
    options.qos = to_ros(settings.qos).get_rmw_qos_profile();
    made_ = std::make_shared<Made>(response_.type(), node.base().get(), graph_, settings.service, options);
    node.services()->add_client(made_, nullptr);
  }

  bool request(const Outgoing& outgoing) noexcept override {
    return send([&] { return request_.decode(outgoing); });
  }
  bool request_object(const message::Codec& codec, const void* object, Nanoseconds& serialize_ns) noexcept override {
    serialize_ns = kUnknownTime;
    return send([&] { return AnyMessage::view(codec.type(), const_cast<void*>(object)); });
  }
  [[nodiscard]] std::int64_t next_number() const noexcept override { return next_; }
  [[nodiscard]] perflab_identity identity() const noexcept override { return {}; }
  [[nodiscard]] std::vector<const void*> executables() const override {
    return {static_cast<const rclcpp::ClientBase*>(made_.get())};
  }
  [[nodiscard]] std::size_t matched() noexcept override {
    return counted([this] {
      return made_->service_is_ready() ? count_services(*graph_, made_->get_service_name()) : 0;
    });
  }

 private:
  using Base = rclcpp::Client<AnyService>;

  // Gives rcl structs to fill.
  class Made final : public Base {
   public:
    template <typename... Arguments>
    explicit Made(const message::Type& response, Arguments&&... arguments)
        : Base(std::forward<Arguments>(arguments)...), response_(response) {}

    std::shared_ptr<void> create_response() override { return lend(response_); }
    void handle_response(std::shared_ptr<rmw_request_id_t> header, std::shared_ptr<void> response) override {
      Base::handle_response(std::move(header), lent(response));
    }

   private:
    const message::Type& response_;
  };

  // rclcpp holds the lock of its list of requests while sending one. A reply may arrive in the same thread,
  // and has to wait until the lock is released.
  template <typename Message>
  bool send(const Message& message) noexcept {
    const Inline::Later later(inline_);
    try {
      made_->async_send_request(std::make_shared<AnyMessage>(message()),
                                [this, number = next_](Base::SharedFuture future) { deliver(*future.get(), number); });
      ++next_;
      return true;
    } catch (const std::exception& error) {
      shared_.sink.on_write_failed(shared_.clock.now(), error.what());
      return false;
    }
  }
  void deliver(const AnyMessage& response, std::int64_t number) {
    std::vector<std::uint8_t> bytes;
    Delivery delivery = response_.delivery_of(response, shared_.structs, bytes);
    delivery.related.sequence = number;
    handler_.on_message(delivery);
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
  const ServiceMessage request_;
  const ServiceMessage response_;
  std::shared_ptr<Made> made_;
  std::int64_t next_ = 1;  // rclcpp relates replies to requests; our own number identifies the request
};

class AnyServer final : public RosServer {
 public:
  AnyServer(Shared& shared, const NodeHandle& node, const ServiceSettings& settings, RequestHandler& handler)
      : RosServer(shared),
        graph_(node.graph()),
        handler_(handler),
        request_(*settings.request),
        response_(*settings.response) {
    const Making making(service_support(settings.ros_type, request_.type(), response_.type(), shared.rmw));
    rcl_service_options_t options = rcl_service_get_default_options();
    options.qos = to_ros(settings.qos).get_rmw_qos_profile();
    made_ = std::make_shared<Made>(*this, node.base()->get_shared_rcl_node_handle(), settings.service, options);
    node.services()->add_service(made_, nullptr);
  }

  [[nodiscard]] std::size_t matched() noexcept override {
    return counted([this] { return count_clients(*graph_, made_->get_service_name()); });
  }
  [[nodiscard]] std::vector<const void*> executables() const override {
    return {static_cast<const rclcpp::ServiceBase*>(made_.get())};
  }

 private:
  using Base = rclcpp::Service<AnyService>;

  // Gives rcl structs to fill, and answers when the callback has returned, like rclcpp, or later.
  class Made final : public Base {
   public:
    Made(AnyServer& owner, const std::shared_ptr<rcl_node_t>& node, const std::string& service, rcl_service_options_t& options)
        : Base(node, service, callback(owner), options), owner_(owner), request_(owner.request_.type()) {}

    std::shared_ptr<void> create_request() override { return lend(request_); }
    void handle_request(std::shared_ptr<rmw_request_id_t> header, std::shared_ptr<void> request) override {
      owner_.header_ = *header;
      Base::handle_request(header, lent(request));
      if (owner_.later_) return;
      send_response(owner_.header_, *owner_.answer_);
      owner_.answer_.reset();
    }

   private:
    // A callback with which rclcpp leaves answering to us.
    static rclcpp::AnyServiceCallback<AnyService> callback(AnyServer& owner) {
      rclcpp::AnyServiceCallback<AnyService> any;
      any.set([&owner](std::shared_ptr<rmw_request_id_t>, std::shared_ptr<AnyMessage> request) { owner.handle(*request); });
      return any;
    }

    AnyServer& owner_;
    const message::Type& request_;
  };

  // Any thread may answer: rcl accepts responses from several.
  class Kept final : public LateReply {
   public:
    Kept(AnyServer& server, Forgotten& told)
        : made_(server.made_), header_(server.header_), shared_(server.shared_), response_(server.response_), told_(told) {}
    ~Kept() override {
      const auto made = made_.lock();
      if (made && shared_.running.load() && !answered_.load()) told_.on_forgotten(shared_.clock.now());
    }
    bool send(const Outgoing& outgoing) noexcept override {
      return answer([&](const ServiceMessage& response) { return response.decode(outgoing); });
    }
    bool send_object(const message::Codec& codec, const void* object) noexcept override {
      return answer([&](const ServiceMessage&) { return AnyMessage::view(codec.type(), const_cast<void*>(object)); });
    }

   private:
    // Resources of the server live as long as what it created.
    template <typename Make>
    bool answer(const Make& make) noexcept {
      const auto made = made_.lock();
      if (!made || answered_.exchange(true) || !shared_.running.load()) return false;
      try {
        AnyMessage response = make(response_);
        made->send_response(header_, response);
        return true;
      } catch (const std::exception& error) {
        shared_.sink.on_write_failed(shared_.clock.now(), error.what());
        return false;
      }
    }

    const std::weak_ptr<Made> made_;
    rmw_request_id_t header_;
    Shared& shared_;
    const ServiceMessage& response_;
    Forgotten& told_;
    std::atomic<bool> answered_{false};
  };

  // An answer kept until the callback has returned.
  class Filled final : public Reply {
   public:
    explicit Filled(AnyServer& server) : server_(server) {}
    bool send(const Outgoing& outgoing) noexcept override {
      return fill([&] { server_.answer_.emplace(server_.response_.decode(outgoing)); });
    }
    bool send_object(const message::Codec& codec, const void* object) noexcept override {
      return fill([&] { server_.answer_.emplace(codec.type(), object); });
    }
    std::unique_ptr<LateReply> later(Forgotten& told) noexcept override {
      if (server_.later_) return nullptr;
      std::unique_ptr<LateReply> kept(new (std::nothrow) Kept(server_, told));
      server_.later_ = kept != nullptr;
      return kept;
    }

   private:
    template <typename Fill>
    bool fill(const Fill& how) noexcept {
      if (server_.later_) return false;
      try {
        how();
        return true;
      } catch (const std::exception& error) {
        server_.shared_.sink.on_write_failed(server_.shared_.clock.now(), error.what());
        return false;
      }
    }

    AnyServer& server_;
  };

  void handle(const AnyMessage& request) {
    std::vector<std::uint8_t> bytes;
    later_ = false;
    answer_.reset();
    Filled reply(*this);
    handler_.on_request(request_.delivery_of(request, shared_.structs, bytes), reply);
    // rclcpp always answers, with or without an answer of ours.
    if (!later_ && !answer_) answer_.emplace(response_.type());
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
  const ServiceMessage request_;
  const ServiceMessage response_;
  std::shared_ptr<Made> made_;
  // Of the request being handled: one at a time, like all callbacks of a node.
  rmw_request_id_t header_{};
  std::optional<AnyMessage> answer_;
  bool later_ = false;
};

}  // namespace

std::unique_ptr<Publisher> make_publisher(Shared& shared, const NodeHandle& node, const EndpointSettings& settings,
                                          const LocalTopic& topic) {
  return node.with([&]<typename Node>(Node& of) -> std::unique_ptr<Publisher> {
    if (shared.structs) return std::make_unique<StructPublisher<Node>>(shared, of, settings, topic);
    return std::make_unique<EncodedPublisher<Node>>(shared, of, settings, topic);
  });
}

std::unique_ptr<RosSubscription> make_subscription(Shared& shared, const NodeHandle& node,
                                                   const EndpointSettings& settings, MessageHandler& handler) {
  return std::make_unique<AnySubscription>(shared, node, settings, handler);
}

std::unique_ptr<RosClient> make_client(Shared& shared, const NodeHandle& node, const ServiceSettings& settings,
                                       MessageHandler& handler) {
  return std::make_unique<AnyClient>(shared, node, settings, handler);
}

std::unique_ptr<RosServer> make_server(Shared& shared, const NodeHandle& node, const ServiceSettings& settings,
                                       RequestHandler& handler) {
  return std::make_unique<AnyServer>(shared, node, settings, handler);
}

}  // namespace perflab::runtime::ros
