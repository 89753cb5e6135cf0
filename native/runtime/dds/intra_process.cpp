#include "runtime/dds/intra_process.h"

#include <cstring>
#include <new>
#include <string>

#include "middleware/policies.h"

namespace perflab::runtime {

MessageRef::MessageRef(const MessageRef& other) noexcept : message_(other.message_) {
  if (message_ != nullptr) message_->references_.fetch_add(1, std::memory_order_relaxed);
}

MessageRef::~MessageRef() {
  if (message_ == nullptr || message_->references_.fetch_sub(1, std::memory_order_acq_rel) != 1) return;
  message_->~Message();
  ::operator delete(static_cast<void*>(message_));
}

MessageRef Message::make(std::size_t size) noexcept {
  static_assert(sizeof(Message) % 8 == 0);
  void* const memory = ::operator new(sizeof(Message) + kLead + size, std::nothrow);
  return memory == nullptr ? MessageRef() : MessageRef(new (memory) Message(size));
}

MessageRef Message::make(const message::Type& type, const void* object) noexcept {
  try {
    auto copied = std::make_unique<message::Object>(type, object);
    MessageRef made = make(0);
    if (made) made->object_ = std::move(copied);
    return made;
  } catch (const std::bad_alloc&) {
    return {};
  }
}

MessageRef Message::copy() const noexcept {
  MessageRef made = object_ ? make(object_->type(), object_->data()) : make(size_);
  if (!made) return made;
  if (size_ > 0) std::memcpy(made->data(), bytes().data(), size_);
  made->writer = writer;
  made->sequence = sequence;
  made->related = related;
  made->source_timestamp_ns = source_timestamp_ns;
  return made;
}

namespace {

void share(const MessageRef& message, const std::vector<Taker*>& takers) noexcept {
  for (Taker* const taker : takers) taker->accept(message);
}

// Gives a copy to each of these, and the message itself to `last`.
bool give_copies(const MessageRef& message, const Taker* last, const std::vector<Taker*>& takers) noexcept {
  bool complete = true;
  for (Taker* const taker : takers) {
    if (taker == last) continue;
    if (MessageRef copied = message->copy()) {
      taker->accept(std::move(copied));
    } else {
      complete = false;
    }
  }
  return complete;
}

}  // namespace

std::size_t Takers::copies(bool keep) const noexcept {
  if (owning.empty()) return 0;
  if (!keep && sharing.size() <= 1) return sharing.size() + owning.size() - 1;
  return 1 + owning.size() - 1;
}

HandedOut hand_out(MessageRef message, const Takers& takers, bool keep) noexcept {
  if (takers.owning.empty()) {
    share(message, takers.sharing);
    return {true, std::move(message)};
  }
  bool complete = true;
  MessageRef kept;
  Taker* const last = takers.owning.back();
  if (!keep && takers.sharing.size() <= 1) {
    complete = give_copies(message, last, takers.sharing);
  } else {
    kept = message->copy();
    complete = static_cast<bool>(kept);
    if (kept) share(kept, takers.sharing);
  }
  complete = give_copies(message, last, takers.owning) && complete;
  last->accept(std::move(message));
  return {complete, std::move(kept)};
}

void require_intra_process(const EndpointSettings& publisher, const EndpointSettings& subscription) {
  const auto refuse = [&publisher](const std::string& why) {
    throw Unsupported("intra-process: " + publisher.topic + " " + why);
  };
  for (const perflab_qos& qos : {publisher.qos, subscription.qos}) {
    middleware::require_ros2_policies("intra-process", publisher.topic, qos);
    if (qos.history == PERFLAB_KEEP_ALL)
      refuse("has history keep_all, which is not delivered within a process; right would be keep_last");
    if (qos.durability == PERFLAB_TRANSIENT_LOCAL && !publisher.of_action) {
      refuse(
          "has durability transient_local, which is not delivered within a process; right would be volatile");
    }
  }
  if (publisher.pass_by == PassBy::kLoaned) {
    refuse(
        "passes loaned messages and has a subscription in the same process; right would be either "
        "unique or no intra-process delivery");
  }
}

}  // namespace perflab::runtime
