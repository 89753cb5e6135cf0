// A message of any type for rclcpp's templates, so that they are compiled once for all types.
//
// rclcpp needs three things of a message:
// * its type support, when it creates an endpoint: that of the Making in whose scope this happens;
// * its value, which it creates, copies and destroys, above all within the process: a struct of perflab's,
//   laid out like
//   that of rosidl_generator_c (message/type.h);
// * its address, for rcl, which only knows C structs: if rclcpp takes &message it gets that of the struct.
//
// Structs that rcl itself fills are created by lend() and returned by lent().
//
// Example:
//   const Making making(message_support(type.name, type, rmw));
//   auto publisher = node.create_publisher<AnyMessage>("topic", 10);
//   publisher->publish(AnyMessage::view(type, object.data()));
#pragma once

#include <memory>
#include <optional>
#include <rosidl_runtime_cpp/traits.hpp>
#include <rosidl_typesupport_cpp/message_type_support.hpp>
#include <rosidl_typesupport_cpp/service_type_support.hpp>
#include <type_traits>
#include <utility>

#include "base/time.h"
#include "message/object.h"

namespace perflab::runtime::ros {

class AnyMessage {
 public:
  using SharedPtr = std::shared_ptr<AnyMessage>;  // the name that rclcpp requires

  // Without a type yet, as rclcpp creates a response.
  AnyMessage() noexcept = default;
  // The other constructors throw std::bad_alloc.
  explicit AnyMessage(const message::Type& type) : type_(&type), own_(type), struct_(own_->data()) {}
  AnyMessage(const message::Type& type, const void* of) { emplace(type, of); }
  AnyMessage(const AnyMessage& from) : source_timestamp_ns(from.source_timestamp_ns) {
    if (from.type_ != nullptr) emplace(*from.type_, from.struct_);
  }
  AnyMessage(AnyMessage&&) noexcept = default;  // the struct keeps its address
  AnyMessage& operator=(const AnyMessage&) = delete;
  AnyMessage& operator=(AnyMessage&&) = delete;
  ~AnyMessage() = default;

  // A view of a struct owned by the caller. Copies of the view own a struct.
  static AnyMessage view(const message::Type& type, void* of) noexcept {
    AnyMessage made;
    made.type_ = &type;
    made.struct_ = of;
    return made;
  }

  void emplace(const message::Type& type, const void* of) {
    own_.emplace(type, of);
    type_ = &type;
    struct_ = own_->data();
  }

  [[nodiscard]] bool empty() const noexcept { return struct_ == nullptr; }
  [[nodiscard]] void* data() noexcept { return struct_; }
  [[nodiscard]] const void* data() const noexcept { return struct_; }
  void* operator&() noexcept { return struct_; }
  const void* operator&() const noexcept { return struct_; }

  // Accompanies the message within the process: what the middleware reports for remote ones.
  std::int64_t source_timestamp_ns = kUnknownTime;

 private:
  const message::Type* type_ = nullptr;
  std::optional<message::Object> own_;
  void* struct_ = nullptr;
};

// Both messages of a service.
struct AnyService {
  using Request = AnyMessage;
  using Response = AnyMessage;
};

// Sets the type of what rclcpp creates in this thread during its lifetime.
class Making {
 public:
  explicit Making(const rosidl_message_type_support_t& message) noexcept { message_ = &message; }
  explicit Making(const rosidl_service_type_support_t& service) noexcept { service_ = &service; }
  Making(const Making&) = delete;
  Making& operator=(const Making&) = delete;
  ~Making() {
    message_ = nullptr;
    service_ = nullptr;
  }

  [[nodiscard]] static const rosidl_message_type_support_t* message() noexcept { return message_; }
  [[nodiscard]] static const rosidl_service_type_support_t* service() noexcept { return service_; }

 private:
  static inline thread_local const rosidl_message_type_support_t* message_ = nullptr;
  static inline thread_local const rosidl_service_type_support_t* service_ = nullptr;
};

namespace detail {
// Keeps a message alive while rcl holds the address of its struct.
struct Lent {
  explicit Lent(AnyMessage what) noexcept : message(std::move(what)) {}
  Lent(const Lent&) = delete;
  Lent(Lent&&) noexcept = default;
  void operator()(void*) const noexcept {}
  AnyMessage message;
};
}  // namespace detail

// A new message of this type, as the struct that rcl fills.
inline std::shared_ptr<void> lend(const message::Type& type) {
  AnyMessage message(type);
  void* const address = message.data();
  return {address, detail::Lent(std::move(message))};
}
// The message whose struct was lent.
inline std::shared_ptr<void> lent(const std::shared_ptr<void>& address) {
  return {address, std::addressof(std::get_deleter<detail::Lent>(address)->message)};
}

}  // namespace perflab::runtime::ros

template <>
struct rosidl_generator_traits::is_message<perflab::runtime::ros::AnyMessage> : std::true_type {};
template <>
struct rosidl_generator_traits::is_service<perflab::runtime::ros::AnyService> : std::true_type {};
template <>
inline const rosidl_message_type_support_t*
rosidl_typesupport_cpp::get_message_type_support_handle<perflab::runtime::ros::AnyMessage>() {
  return perflab::runtime::ros::Making::message();
}
template <>
inline const rosidl_service_type_support_t*
rosidl_typesupport_cpp::get_service_type_support_handle<perflab::runtime::ros::AnyService>() {
  return perflab::runtime::ros::Making::service();
}
