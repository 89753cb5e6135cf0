// A runtime that is given structs where the tests give encoded messages, and the other way round, so that one suite
// tests both ways: what a test sends is decoded and handed over as a struct, what comes as a struct is encoded.
#pragma once

#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "message/format.h"
#include "message/object.h"
#include "runtime/runtime.h"

namespace perflab::runtime::conformance {

// A message of one type in both forms.
class Both {
 public:
  explicit Both(const message::Type& type) : format_(type, type.name), object_(type) {}

  // Puts the message into object(). False, and a failure of the test, where it is none.
  bool decode(const Outgoing& outgoing) {
    bytes_.clear();
    for (const std::span<const std::uint8_t> piece : {outgoing.before, outgoing.stamp, outgoing.after})
      bytes_.insert(bytes_.end(), piece.begin(), piece.end());
    const bool decoded = format_.codec.decode(bytes_, object_.data());
    EXPECT_TRUE(decoded) << "no " << format_.name;
    return decoded;
  }
  // Stamps that struct as the bytes of the last decode() are.
  void stamp(void* object) const {
    message::Header header;
    if (format_.stamp != message::Stamp::kNone && format_.read_stamp(bytes_, header))
      format_.stamp_object(header, object);
  }
  static Delivery encoded(const message::Codec& codec, const Delivery& delivery, std::vector<std::uint8_t>& bytes) {
    Delivery made = delivery;
    bytes.resize(codec.encoded_size(delivery.object));
    codec.encode(delivery.object, bytes);
    made.bytes = bytes;
    made.object = nullptr;
    return made;
  }

  message::Object& object() { return object_; }
  const message::Codec& codec() const { return format_.codec; }

 private:
  message::Format format_;
  message::Object object_;
  std::vector<std::uint8_t> bytes_;
};

class AsStructs final : public Runtime {
 public:
  explicit AsStructs(std::unique_ptr<Runtime> runtime) : runtime_(std::move(runtime)) {}

  const measure::Clock& clock() const noexcept override { return runtime_->clock(); }
  void name_group(std::size_t group, const NodeName& node) override { runtime_->name_group(group, node); }
  std::size_t add_executor(const ExecutorSettings& settings) override { return runtime_->add_executor(settings); }
  Publisher& create_publisher(const EndpointSettings& settings) override {
    return publishers_.emplace_back(runtime_->create_publisher(settings), *settings.type);
  }
  Subscription& create_subscription(std::size_t executor, const EndpointSettings& settings,
                                    MessageHandler& handler) override {
    return runtime_->create_subscription(executor, settings, handlers_.emplace_back(handler, *settings.type));
  }
  Client& create_client(std::size_t executor, const ServiceSettings& settings, MessageHandler& handler) override {
    MessageHandler& own = handlers_.emplace_back(handler, *settings.response);
    return clients_.emplace_back(runtime_->create_client(executor, settings, own), *settings.request);
  }
  Server& create_server(std::size_t executor, const ServiceSettings& settings, RequestHandler& handler) override {
    return runtime_->create_server(
        executor, settings, servers_.emplace_back(handler, *settings.request, *settings.response));
  }
  // Their messages are structs whatever the runtime does.
  ActionClient& create_action_client(std::size_t executor, const ActionSettings& settings,
                                     ActionClientHandler& handler) override {
    return runtime_->create_action_client(executor, settings, handler);
  }
  ActionServer& create_action_server(std::size_t executor, const ActionSettings& settings,
                                     ActionServerHandler& handler) override {
    return runtime_->create_action_server(executor, settings, handler);
  }
  ServiceFraming service_framing() const noexcept override { return runtime_->service_framing(); }
  void create_timer(std::size_t executor, const TimerSettings& settings, TimerHandler& handler) override {
    runtime_->create_timer(executor, settings, handler);
  }
  Waitable& create_waitable(std::size_t executor, const WaitableSettings& settings,
                            WaitableHandler& handler) override {
    return runtime_->create_waitable(executor, settings, handler);
  }
  void work(Nanoseconds amount) noexcept override { runtime_->work(amount); }
  void start(Nanoseconds base_ns) override { runtime_->start(base_ns); }
  bool timers_done() const noexcept override { return runtime_->timers_done(); }
  void stop() noexcept override { runtime_->stop(); }
  std::string describe() override { return runtime_->describe(); }

 private:
  class StructPublisher final : public Publisher {
   public:
    StructPublisher(Publisher& publisher, const message::Type& type) : publisher_(publisher), message_(type) {}

    bool prepare(const Outgoing& outgoing) noexcept override {
      prepared_ = message_.decode(outgoing) ? publisher_.prepare_object(message_.object()) : nullptr;
      return prepared_ != nullptr;
    }
    bool publish(const Outgoing& outgoing) noexcept override {
      void* object = std::exchange(prepared_, nullptr);
      if (object == nullptr) {
        if (!prepare(outgoing)) return false;
        object = std::exchange(prepared_, nullptr);
      }
      Nanoseconds serialize_ns = kUnknownTime;
      // What was prepared goes out, with the stamp of this one.
      Both stamp(message_.object().type());
      stamp.decode(outgoing);
      stamp.stamp(object);
      return publisher_.publish_object(message_.codec(), object, outgoing.source_timestamp_ns, serialize_ns);
    }
    bool publish_related(std::span<const perflab_bytes> parts, const perflab_sample_identity* related,
                         std::int64_t* sequence) noexcept override {
      return publisher_.publish_related(parts, related, sequence);
    }
    Passing passing() noexcept override { return publisher_.passing(); }
    perflab_identity identity() const noexcept override { return publisher_.identity(); }
    std::size_t matched() noexcept override { return publisher_.matched(); }

   private:
    Publisher& publisher_;
    Both message_;
    void* prepared_ = nullptr;
  };

  class Encoding final : public MessageHandler {
   public:
    Encoding(MessageHandler& handler, const message::Type& type) : handler_(handler), codec_(type) {}
    void on_message(const Delivery& delivery) noexcept override {
      std::vector<std::uint8_t> bytes;
      handler_.on_message(delivery.object != nullptr ? Both::encoded(codec_, delivery, bytes) : delivery);
    }

   private:
    MessageHandler& handler_;
    const message::Codec codec_;
  };

  class StructClient final : public Client {
   public:
    StructClient(Client& client, const message::Type& type) : client_(client), message_(type) {}
    bool request(const Outgoing& outgoing) noexcept override {
      Nanoseconds serialize_ns = kUnknownTime;
      return message_.decode(outgoing) &&
             client_.request_object(message_.codec(), message_.object().data(), serialize_ns);
    }
    perflab_identity identity() const noexcept override { return client_.identity(); }
    std::size_t matched() noexcept override { return client_.matched(); }

   private:
    Client& client_;
    Both message_;
  };

  class StructServer final : public RequestHandler {
   public:
    StructServer(RequestHandler& handler, const message::Type& request, const message::Type& response)
        : handler_(handler), request_(request), response_(response) {}
    void on_request(const Delivery& request, Reply& reply) noexcept override {
      std::vector<std::uint8_t> bytes;
      StructReply own(reply, response_);
      handler_.on_request(request.object != nullptr ? Both::encoded(request_, request, bytes) : request, own);
    }

   private:
    class StructReply final : public Reply {
     public:
      StructReply(Reply& reply, const message::Type& type) : reply_(reply), message_(type) {}
      bool send(const Outgoing& outgoing) noexcept override {
        return message_.decode(outgoing) && reply_.send_object(message_.codec(), message_.object().data());
      }
      std::unique_ptr<LateReply> later(Forgotten& told) noexcept override {
        std::unique_ptr<LateReply> reply = reply_.later(told);
        return reply ? std::make_unique<StructLateReply>(std::move(reply), message_.object().type()) : nullptr;
      }

     private:
      Reply& reply_;
      Both message_;
    };
    class StructLateReply final : public LateReply {
     public:
      StructLateReply(std::unique_ptr<LateReply> reply, const message::Type& type)
          : reply_(std::move(reply)), message_(type) {}
      bool send(const Outgoing& outgoing) noexcept override {
        return message_.decode(outgoing) && reply_->send_object(message_.codec(), message_.object().data());
      }
      bool send_object(const message::Codec& codec, const void* object) noexcept override {
        return reply_->send_object(codec, object);
      }

     private:
      std::unique_ptr<LateReply> reply_;
      Both message_;
    };

    RequestHandler& handler_;
    const message::Codec request_;
    const message::Type& response_;
  };

  // What the runtime refers to goes after it.
  std::deque<Encoding> handlers_;
  std::deque<StructServer> servers_;
  std::unique_ptr<Runtime> runtime_;
  std::deque<StructPublisher> publishers_;
  std::deque<StructClient> clients_;
};

}  // namespace perflab::runtime::conformance
