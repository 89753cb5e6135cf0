// A type for Fast DDS that consists only of its name: messages are opaque CDR bytes.
//
// Written messages are copied once, from the caller's parts into the history of the writer. Received ones are
// not copied: a taken sample references the payload in which the library received it, and "deserializing"
// only records its address.
//
// A type with fixed size is what Fast DDS calls plain: its messages can be loaned, and written and read in
// place in memory shared by processes (data sharing). Such a type refuses longer messages.
//
// A keyed type is never plain: the library would request the key of a loan by address only.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "middleware/fastdds/fast.h"
#include "middleware/middleware.h"

namespace perflab::middleware::fastdds {

// The target of the library's pointers to messages. The library requests the key of either kind without
// saying which.
struct Carried {
  bool outgoing;
};

// Passed to DataWriter::write().
struct Outgoing : Carried {
  const perflab_bytes* parts;
  std::size_t count;
  std::uint32_t size;
};

// The content of a taken sample.
struct View : Carried {
  const std::uint8_t* data = nullptr;
  std::uint32_t size = 0;
};

// RTPS pads messages to 4 bytes.
constexpr std::size_t padded(std::size_t size) { return (size + 3) / 4 * 4; }

class MessageType final : public dds::TopicDataType {
 public:
  // fixed_size: size of every message including its encapsulation header, or 0; 0 for keyed types. The key
  // must outlive this; null: no key.
  MessageType(const std::string& name, std::size_t fixed_size, const perflab_key* key);

  std::size_t fixed_size() const noexcept { return fixed_size_; }
  const perflab_key* key() const noexcept { return key_; }
  bool is_bounded() const override { return fixed_size_ != 0; }

  // Adds the content filters known to endpoints here, by expression. The library evaluates them in its own
  // threads.
  void add_filters(const perflab_endpoint_settings& settings);
  std::optional<perflab_filter> filter(std::string_view expression) const;
#if PERFLAB_FASTDDS_3
  bool is_plain(dds::DataRepresentationId_t) const override { return fixed_size_ != 0; }
  bool serialize(const void* const data, rtps::SerializedPayload_t& payload,
                 dds::DataRepresentationId_t) override {
    return write_to(*static_cast<const Outgoing*>(data), payload);
  }
  bool deserialize(rtps::SerializedPayload_t& payload, void* data) override {
    *static_cast<View*>(data) = {{false}, payload.data, payload.length};
    return true;
  }
  std::uint32_t calculate_serialized_size(const void* const data, dds::DataRepresentationId_t) override {
    return static_cast<const Outgoing*>(data)->size;
  }
  void* create_data() override { return new View; }
  void delete_data(void* data) override { delete static_cast<View*>(data); }
  bool compute_key(rtps::SerializedPayload_t& payload, rtps::InstanceHandle_t& instance, bool) override {
    const perflab_bytes whole{payload.data, payload.length};
    return hash(is_key(payload) ? PERFLAB_KEY : PERFLAB_MESSAGE, {&whole, 1}, instance);
  }
  bool compute_key(const void* const data, rtps::InstanceHandle_t& instance, bool) override {
    return hash_of(*static_cast<const Carried*>(data), instance);
  }
#else
  bool is_plain() const override { return fixed_size_ != 0; }
  bool serialize(void* data, rtps::SerializedPayload_t* payload) override {
    return write_to(*static_cast<const Outgoing*>(data), *payload);
  }
  bool deserialize(rtps::SerializedPayload_t* payload, void* data) override {
    *static_cast<View*>(data) = {{false}, payload->data, payload->length};
    return true;
  }
  std::function<std::uint32_t()> getSerializedSizeProvider(void* data) override {
    return [size = static_cast<const Outgoing*>(data)->size] { return size; };
  }
  void* createData() override { return new View; }
  void deleteData(void* data) override { delete static_cast<View*>(data); }
  bool getKey(void* data, rtps::InstanceHandle_t* instance, bool) override {
    return hash_of(*static_cast<const Carried*>(data), *instance);
  }
#endif

 private:
  static bool write_to(const Outgoing& message, rtps::SerializedPayload_t& payload) noexcept;
  bool hash(perflab_form form, std::span<const perflab_bytes> parts, rtps::InstanceHandle_t& instance) const noexcept;
  // Fast DDS 2 does not distinguish a bare key, of a disposed or unregistered instance, from a message.
  bool hash_of(const Carried& message, rtps::InstanceHandle_t& instance) const noexcept;

  const std::size_t fixed_size_;
  const perflab_key* const key_;
  mutable std::mutex filters_mutex_;
  std::map<std::string, perflab_filter, std::less<>> filters_;
};

}  // namespace perflab::middleware::fastdds
