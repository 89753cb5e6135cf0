// Delivery of messages within a process, by the rules of rclcpp's IntraProcessManager.
//
// A publisher gives a message away, and some subscriptions want to own theirs. If none does, all share the
// message; otherwise each owner except the last gets a copy, and the last gets the message itself. A single
// sharing subscription besides owners counts as an owner; several share one copy.
//
// Example:
//   MessageRef message = Message::make(size);
//   std::memcpy(message->bytes().data(), ...);
//   hand_out(std::move(message), takers, false);
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>
#include <vector>

#include "base/queue.h"
#include "message/object.h"
#include "middleware/middleware.h"
#include "runtime/runtime.h"
#include "tracing/ros/tracepoints.h"

namespace perflab::runtime {

class Message;

// A counted reference to a message.
class MessageRef {
 public:
  MessageRef() = default;
  MessageRef(const MessageRef& other) noexcept;
  MessageRef(MessageRef&& other) noexcept : message_(std::exchange(other.message_, nullptr)) {}
  MessageRef& operator=(MessageRef other) noexcept {
    std::swap(message_, other.message_);
    return *this;
  }
  ~MessageRef();

  [[nodiscard]] explicit operator bool() const noexcept { return message_ != nullptr; }
  [[nodiscard]] Message* operator->() const noexcept { return message_; }
  [[nodiscard]] Message& operator*() const noexcept { return *message_; }
  [[nodiscard]] Message* get() const noexcept { return message_; }

 private:
  friend class Message;
  explicit MessageRef(Message* message) noexcept : message_(message) {}

  Message* message_ = nullptr;
};

// Header and bytes are one block of memory.
class Message {
 public:
  // With arbitrary content; empty if there is no memory.
  [[nodiscard]] static MessageRef make(std::size_t size) noexcept;
  // Holds a copy of this struct instead of bytes.
  [[nodiscard]] static MessageRef make(const message::Type& type, const void* object) noexcept;
  [[nodiscard]] MessageRef copy() const noexcept;

  [[nodiscard]] std::span<std::uint8_t> bytes() noexcept { return {data(), size_}; }
  [[nodiscard]] std::span<const std::uint8_t> bytes() const noexcept {
    return {const_cast<Message*>(this)->data(), size_};
  }

  // The struct, or null.
  [[nodiscard]] message::Object* object() const noexcept { return object_.get(); }

  perflab_identity writer{};
  std::int64_t sequence = 0;
  perflab_sample_identity related{};
  std::int64_t source_timestamp_ns = kUnknownTime;  // if the sender set one

 private:
  friend class MessageRef;
  // After the 4 bytes of the encapsulation, the body is aligned to 8.
  static constexpr std::size_t kLead = 4;

  explicit Message(std::size_t size) noexcept : size_(size) {}
  [[nodiscard]] std::uint8_t* data() noexcept { return reinterpret_cast<std::uint8_t*>(this + 1) + kLead; }

  std::size_t size_;
  std::unique_ptr<message::Object> object_;
  std::atomic<std::uint32_t> references_{1};
};

// The queued messages of one subscription: keep-last, a new message drops the oldest.
class Ring {
 public:
  struct Entry {
    MessageRef message;
    Nanoseconds arrived_ns = kUnknownTime;
  };
  enum class Popped { kNothing, kLast, kMore };

  // `trace` may be null.
  explicit Ring(std::size_t depth, const perflab_ros2_tracepoints* trace = nullptr) : trace_(trace) {
    queue_.reserve(depth);
  }

  // False if the oldest message was dropped to make room.
  bool push(Entry entry) noexcept {
    Entry dropped;  // freed outside of the lock
    const std::lock_guard lock(mutex_);
    const bool full = queue_.size() == queue_.capacity();
    if (full) dropped = queue_.pop_front();
    queue_.push_back(std::move(entry));
    // Inside the lock, so that a trace shows the enqueue before the dequeue.
    if (trace_ != nullptr) [[unlikely]]
      trace_->rclcpp_ring_buffer_enqueue(this, queue_.back_place(), queue_.size(), full ? 1 : 0);
    waiting_.store(queue_.size(), std::memory_order_release);
    return !full;
  }
  // Also reports whether there is another message.
  Popped pop(Entry& entry) noexcept {
    const std::lock_guard lock(mutex_);
    if (queue_.empty()) return Popped::kNothing;
    const std::size_t place = queue_.front_place();
    entry = queue_.pop_front();
    if (trace_ != nullptr) [[unlikely]]
      trace_->rclcpp_ring_buffer_dequeue(this, place, queue_.size());
    waiting_.store(queue_.size(), std::memory_order_release);
    return queue_.empty() ? Popped::kLast : Popped::kMore;
  }
  [[nodiscard]] bool empty() const noexcept { return waiting_.load(std::memory_order_acquire) == 0; }

 private:
  const perflab_ros2_tracepoints* const trace_;
  std::mutex mutex_;
  BoundedQueue<Entry> queue_;
  std::atomic<std::size_t> waiting_{0};
};

// A subscription as seen by the publishers of its process.
class Taker {
 public:
  virtual void accept(MessageRef message) noexcept = 0;

 protected:
  ~Taker() = default;
};

struct Takers {
  std::vector<Taker*> sharing;
  std::vector<Taker*> owning;

  [[nodiscard]] bool empty() const noexcept { return sharing.empty() && owning.empty(); }
  [[nodiscard]] std::size_t count() const noexcept { return sharing.size() + owning.size(); }
  // Number of copies that hand_out() makes of each message.
  [[nodiscard]] std::size_t copies(bool keep) const noexcept;
};

struct HandedOut {
  bool complete = false;  // false: there was no memory for a copy
  MessageRef kept{};      // with `keep`: a reference for reading by the giver
};
// Gives the message to all takers. With `keep` the caller must still read it afterwards (to pass it to the
// middleware for other processes), and counts as one that shares. Precondition: there is a taker.
HandedOut hand_out(MessageRef message, const Takers& takers, bool keep) noexcept;

// Throws Error (kUnsupported) if a publisher and a subscription of one process cannot be connected in this
// way, like rclcpp.
void require_intra_process(const EndpointSettings& publisher, const EndpointSettings& subscription);

}  // namespace perflab::runtime
