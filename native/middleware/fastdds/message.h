// A type for Fast DDS that knows nothing but its name: messages are CDR bytes, carried as they are.
//
// Written messages are copied once, from the caller's pieces into the history of the writer. Received ones
// are not copied: a taken sample holds on to the payload in which the library received it, and
// "deserializing" only notes where it is.
//
// With a fixed size the type is what Fast DDS calls plain: its messages can be loaned, and written and read
// in place in memory that processes share (data sharing). Such a type refuses longer messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "middleware/fastdds/fast.h"
#include "middleware/middleware.h"

namespace perflab::middleware::fastdds {

// What is handed to DataWriter::write().
struct Outgoing {
  const perflab_bytes* parts;
  std::size_t count;
  std::uint32_t size;
};

// What is found in a taken sample.
struct View {
  const std::uint8_t* data = nullptr;
  std::uint32_t size = 0;
};

// RTPS pads messages to 4 bytes.
constexpr std::size_t padded(std::size_t size) { return (size + 3) / 4 * 4; }

class MessageType final : public dds::TopicDataType {
 public:
  // fixed_size: of every message with its encapsulation header, or 0.
  MessageType(const std::string& name, std::size_t fixed_size);

  std::size_t fixed_size() const noexcept { return fixed_size_; }
  bool is_bounded() const override { return fixed_size_ != 0; }
#if PERFLAB_FASTDDS_3
  bool is_plain(dds::DataRepresentationId_t) const override { return fixed_size_ != 0; }
  bool serialize(const void* const data, rtps::SerializedPayload_t& payload,
                 dds::DataRepresentationId_t) override {
    return write_to(*static_cast<const Outgoing*>(data), payload);
  }
  bool deserialize(rtps::SerializedPayload_t& payload, void* data) override {
    *static_cast<View*>(data) = {payload.data, payload.length};
    return true;
  }
  std::uint32_t calculate_serialized_size(const void* const data, dds::DataRepresentationId_t) override {
    return static_cast<const Outgoing*>(data)->size;
  }
  void* create_data() override { return new View; }
  void delete_data(void* data) override { delete static_cast<View*>(data); }
  bool compute_key(rtps::SerializedPayload_t&, rtps::InstanceHandle_t&, bool) override { return false; }
  bool compute_key(const void* const, rtps::InstanceHandle_t&, bool) override { return false; }
#else
  bool is_plain() const override { return fixed_size_ != 0; }
  bool serialize(void* data, rtps::SerializedPayload_t* payload) override {
    return write_to(*static_cast<const Outgoing*>(data), *payload);
  }
  bool deserialize(rtps::SerializedPayload_t* payload, void* data) override {
    *static_cast<View*>(data) = {payload->data, payload->length};
    return true;
  }
  std::function<std::uint32_t()> getSerializedSizeProvider(void* data) override {
    return [size = static_cast<const Outgoing*>(data)->size] { return size; };
  }
  void* createData() override { return new View; }
  void deleteData(void* data) override { delete static_cast<View*>(data); }
  bool getKey(void*, rtps::InstanceHandle_t*, bool) override { return false; }
#endif

 private:
  static bool write_to(const Outgoing& message, rtps::SerializedPayload_t& payload) noexcept;

  const std::size_t fixed_size_;
};

}  // namespace perflab::middleware::fastdds
