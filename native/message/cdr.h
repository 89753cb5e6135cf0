// CDR as ROS 2 uses it (XCDR1, OMG DDS-RTPS 2.5 section 10): a 4-byte encapsulation header, then each
// primitive aligned to its own size, counted from behind that header; sequences carry a uint32 length.
//
// Two ways in:
//  * encode()/decode() take a whole message; they allocate and are not for the measured path.
//  * encode_frame()/decode_header() touch only the encapsulation and the Header, which stand at fixed
//    places at the front of every message. The measured path uses these: the payload of a
//    publisher never changes, so it is encoded once and sent as a second piece of the write.
//
// Example:
//   std::vector<std::uint8_t> bytes = encode(message);
//   decode(bytes, copy);            // false if the bytes are no such message
//   Header header;
//   decode_header(bytes, header);   // reads either byte order
#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <span>
#include <type_traits>
#include <vector>

#include "message/messages.h"
#include "message/types.h"

namespace perflab::message {

inline constexpr std::size_t kEncapsulationBytes = 4;
inline constexpr std::size_t kHeaderBytes = 32;
inline constexpr std::size_t kFrameBytes = kEncapsulationBytes + kHeaderBytes;

static_assert(sizeof(Header) == kHeaderBytes && std::is_trivially_copyable_v<Header>,
              "Header has no padding: its memory is its CDR encoding in native byte order");

using Frame = std::array<std::uint8_t, kFrameBytes>;

// Identifiers CDR_BE = {0, 0}, CDR_LE = {0, 1}; the two option bytes are 0.
inline constexpr std::uint8_t kNativeEncapsulation = std::endian::native == std::endian::little ? 1 : 0;

// Encapsulation and header in native byte order.
inline void encode_frame(const Header& header, Frame& frame) noexcept {
  frame[0] = 0;
  frame[1] = kNativeEncapsulation;
  frame[2] = 0;
  frame[3] = 0;
  std::memcpy(frame.data() + kEncapsulationBytes, &header, kHeaderBytes);
}

// Reads the header of any message, in either byte order. False if the bytes are too short or the
// encapsulation is not plain CDR.
bool decode_header(std::span<const std::uint8_t> bytes, Header& header) noexcept;

// The payload of a message of that type as it follows the frame: for a variable type its length and
// `payload_bytes` bytes, otherwise the type's own bytes. Content is a fixed pattern, no zeros, so that
// nothing on the way can make it smaller.
std::vector<std::uint8_t> make_payload(const MessageType& type, std::uint32_t payload_bytes);

// Size of every message of the type with encapsulation, or 0 where it varies.
std::size_t fixed_encoded_size(const MessageType& type) noexcept;

class CdrWriter {
 public:
  CdrWriter() : bytes_{0, kNativeEncapsulation, 0, 0} {}

  template <typename T>
  requires std::is_arithmetic_v<T>
  void operator()(const T& value) {
    align(sizeof(T));
    append(&value, sizeof(T));
  }
  template <typename T, std::size_t N>
  void operator()(const std::array<T, N>& values) {
    align(sizeof(T));
    append(values.data(), sizeof(T) * N);
  }
  template <typename T>
  void operator()(const std::vector<T>& values) {
    (*this)(static_cast<std::uint32_t>(values.size()));
    if (values.empty()) return;
    align(sizeof(T));
    append(values.data(), sizeof(T) * values.size());
  }
  [[nodiscard]] std::vector<std::uint8_t> take() && { return std::move(bytes_); }

 private:
  void align(std::size_t size) {
    const std::size_t past = (bytes_.size() - kEncapsulationBytes) % size;
    if (past != 0) bytes_.resize(bytes_.size() + size - past);
  }
  void append(const void* data, std::size_t size) {
    const auto* begin = static_cast<const std::uint8_t*>(data);
    bytes_.insert(bytes_.end(), begin, begin + size);
  }
  std::vector<std::uint8_t> bytes_;
};

// Reads what CdrWriter wrote, or the same from a machine of the other byte order. Never reads past the end:
// ok() turns false and stays so.
class CdrReader {
 public:
  explicit CdrReader(std::span<const std::uint8_t> bytes) noexcept
      : bytes_(bytes), position_(kEncapsulationBytes) {
    ok_ = bytes.size() >= kEncapsulationBytes && bytes[0] == 0 && bytes[1] <= 1;
    swap_ = ok_ && bytes[1] != kNativeEncapsulation;
  }

  template <typename T>
  requires std::is_arithmetic_v<T>
  void operator()(T& value) noexcept { read_elements(&value, 1); }
  template <typename T, std::size_t N>
  void operator()(std::array<T, N>& values) noexcept {
    read_elements(values.data(), N);
  }
  template <typename T>
  void operator()(std::vector<T>& values) {
    std::uint32_t count = 0;
    (*this)(count);
    if (!ok_ || count > (bytes_.size() - position_) / sizeof(T)) {
      ok_ = false;
      return;
    }
    values.resize(count);
    if (count > 0) read_elements(values.data(), count);
  }
  [[nodiscard]] bool ok() const noexcept { return ok_; }

 private:
  template <typename T>
  void read_elements(T* out, std::size_t count) noexcept {
    if (!ok_) return;
    const std::size_t past = (position_ - kEncapsulationBytes) % sizeof(T);
    const std::size_t begin = past == 0 ? position_ : position_ + sizeof(T) - past;
    if (begin > bytes_.size() || sizeof(T) * count > bytes_.size() - begin) {
      ok_ = false;
      return;
    }
    std::memcpy(out, bytes_.data() + begin, sizeof(T) * count);
    position_ = begin + sizeof(T) * count;
    if constexpr (sizeof(T) > 1) {
      if (swap_) {
        for (std::size_t i = 0; i < count; ++i) reverse_bytes(out[i]);
      }
    }
  }
  template <typename T>
  static void reverse_bytes(T& value) noexcept {
    std::array<std::uint8_t, sizeof(T)> raw;
    std::memcpy(raw.data(), &value, sizeof(T));
    for (std::size_t i = 0; i < sizeof(T) / 2; ++i) std::swap(raw[i], raw[sizeof(T) - 1 - i]);
    std::memcpy(&value, raw.data(), sizeof(T));
  }

  std::span<const std::uint8_t> bytes_;
  std::size_t position_;
  bool ok_ = false;
  bool swap_ = false;
};

template <typename Message>
std::vector<std::uint8_t> encode(const Message& message) {
  CdrWriter writer;
  // Fields are visited through a non-const reference; the writer only reads them.
  for_each_field(const_cast<Message&>(message), writer);
  return std::move(writer).take();
}

template <typename Message>
bool decode(std::span<const std::uint8_t> bytes, Message& message) {
  CdrReader reader(bytes);
  for_each_field(message, reader);
  return reader.ok();
}

}  // namespace perflab::message
