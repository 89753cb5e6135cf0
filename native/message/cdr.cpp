#include "message/cdr.h"

namespace perflab::message {

bool decode_header(std::span<const std::uint8_t> bytes, Header& header) noexcept {
  if (bytes.size() < kFrameBytes || bytes[0] != 0 || bytes[1] > 1) return false;
  if (bytes[1] == kNativeEncapsulation) {
    std::memcpy(&header, bytes.data() + kEncapsulationBytes, kHeaderBytes);
    return true;
  }
  CdrReader reader(bytes);
  for_each_field(header, reader);
  return reader.ok();
}

std::vector<std::uint8_t> make_payload(const MessageType& type, std::uint32_t payload_bytes) {
  std::vector<std::uint8_t> payload;
  payload.reserve(payload_bytes + sizeof(std::uint32_t));
  if (type.variable) {
    payload.resize(sizeof(std::uint32_t));
    std::memcpy(payload.data(), &payload_bytes, sizeof(std::uint32_t));
  }
  for (std::uint32_t i = 0; i < payload_bytes; ++i) payload.push_back(static_cast<std::uint8_t>(1 + i % 251));
  return payload;
}

std::size_t fixed_encoded_size(const MessageType& type) noexcept {
  return type.variable ? 0 : kFrameBytes + type.payload_bytes;
}

}  // namespace perflab::message
