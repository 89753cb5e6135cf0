// CDR of ROS 2 (XCDR1, OMG DDS-RTPS 2.5 section 10): a 4-byte encapsulation header, then each primitive aligned to its
// own size, counted from behind that header; sequences carry a uint32 length, texts too, which counts their zero.
// wstring is sent as ROS 2 does: a uint32 number of characters, then each in four octets. rmw_cyclonedds and the type support
// of rmw_fastrtps write four, whichever Fast CDR there is, whose version 2 by itself would write two.
//
// A codec is a type compiled to few instructions: what stands in memory as it does on the wire is copied at once, also
// across structs and arrays of them. So a struct of fixed size is mostly one copy, however deep it is nested.
//
// Example:
//   const Codec codec(type);
//   std::vector<std::uint8_t> bytes(codec.encoded_size(object.data()));
//   codec.encode(object.data(), bytes);
//   codec.decode(bytes, copy.data());   // false if the bytes are no such message
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "message/type.h"

namespace perflab::message {

class Codec {
 public:
  // `type` outlives it.
  explicit Codec(const Type& type);
  ~Codec();
  Codec(Codec&&) noexcept;
  Codec& operator=(Codec&&) noexcept;

  [[nodiscard]] const Type& type() const noexcept { return *type_; }
  // Bytes of every message with its encapsulation header, or 0 where it varies.
  [[nodiscard]] std::size_t fixed_size() const noexcept { return fixed_size_; }
  // Bytes of this message with its encapsulation header.
  [[nodiscard]] std::size_t encoded_size(const void* object) const noexcept;

  // Writes the message in native byte order; padding is as it is in the struct: zero, or what stood there in the bytes that
  // were decoded into it. Returns its size; 0, and nothing is written, where `to` is
  // smaller than encoded_size().
  std::size_t encode(const void* object, std::span<std::uint8_t> to) const noexcept;

  // Reads a message of either byte order into an object, whose memory is used again where it is large enough. Bytes
  // behind the message are ignored, as RTPS pads to four. False if the bytes are no message of the type, or there is no
  // memory: the object then holds some of it. Reads nothing beyond the bytes, and asks for no more memory than they
  // could fill.
  [[nodiscard]] bool decode(std::span<const std::uint8_t> bytes, void* object) const noexcept;

  // Where a number that stands at `offset` within the struct itself is found in the encoded message, counted from its
  // first byte; 0 where no number stands there. Depends on the lengths of texts and sequences before it.
  [[nodiscard]] std::size_t position_of(const void* object, std::size_t offset) const noexcept;

  // The same in bytes that came from elsewhere, of either byte order; 0 also where they are no message up to there.
  [[nodiscard]] std::size_t position_in(std::span<const std::uint8_t> bytes, std::size_t offset) const noexcept;

  // How many of the bytes are the message, its encapsulation header included; 0 where they are none.
  [[nodiscard]] std::size_t extent(std::span<const std::uint8_t> bytes) const noexcept;

 private:
  struct Program;
  template <template <bool> typename Cursor, typename Use>
  auto with(std::span<const std::uint8_t> bytes, const Use& use) const noexcept;

  const Type* type_;
  std::size_t fixed_size_ = 0;
  std::vector<Program> programs_;  // native byte order, the other one
};

}  // namespace perflab::message
