// CDR as used by ROS 2 (XCDR1, OMG DDS-RTPS 2.5 section 10): a 4-byte encapsulation header, then each
// primitive aligned to its own size, counted from the end of that header. Sequences have a uint32 length; so
// do strings, whose length includes the terminating zero. wstring is encoded as in ROS 2: a uint32 number of
// characters, then four octets per character. rmw_cyclonedds and the type support of rmw_fastrtps write four
// octets with every version of Fast CDR, although version 2 alone would write two.
//
// A codec is a type compiled to a few instructions: memory that has the same layout on the wire is copied in
// one step, also across nested structs and arrays. So a struct of fixed size is mostly a single copy.
//
// Example:
//   const Codec codec(type);
//   std::vector<std::uint8_t> bytes(codec.encoded_size(object.data()));
//   codec.encode(object.data(), bytes);
//   codec.decode(bytes, copy.data());   // false if the bytes are not such a message
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "message/type.h"

namespace perflab::message {

class Codec {
 public:
  // `type` must outlive the codec.
  explicit Codec(const Type& type);
  ~Codec();
  Codec(Codec&&) noexcept;
  Codec& operator=(Codec&&) noexcept;

  [[nodiscard]] const Type& type() const noexcept { return *type_; }
  // Size of every encoded message, including the encapsulation header; 0: sizes vary.
  [[nodiscard]] std::size_t fixed_size() const noexcept { return fixed_size_; }
  // Size of this message when encoded, including the encapsulation header.
  [[nodiscard]] std::size_t encoded_size(const void* object) const noexcept;

  // Encodes in native byte order; padding is copied from the struct: zero, or what the bytes decoded into it
  // contained. Returns the size; 0, with nothing written, if `to` is smaller than encoded_size().
  std::size_t encode(const void* object, std::span<std::uint8_t> to) const noexcept;

  // Decodes a message of either byte order into an object, and reuses its memory if it is large enough.
  // Ignores bytes after the message, because RTPS pads to four. False if the bytes are not a message of the
  // type, or there is no memory: the object may then be partly filled. Never reads beyond the bytes, and
  // requests no more memory than they could fill.
  [[nodiscard]] bool decode(std::span<const std::uint8_t> bytes, void* object) const noexcept;

  // The position in the encoded message, counted from its first byte, of the number at `offset` in the
  // struct; 0 if there is no number. Depends on the lengths of preceding strings and sequences.
  [[nodiscard]] std::size_t position_of(const void* object, std::size_t offset) const noexcept;

  // The same for received bytes of either byte order; also 0 if they are not a message up to that point.
  [[nodiscard]] std::size_t position_in(std::span<const std::uint8_t> bytes, std::size_t offset) const noexcept;

  // The size of the message at the start of the bytes, including its encapsulation header; 0 if there is
  // none.
  [[nodiscard]] std::size_t extent(std::span<const std::uint8_t> bytes) const noexcept;

 private:
  struct Program;
  template <template <bool> typename Cursor, typename Use>
  auto with(std::span<const std::uint8_t> bytes, const Use& use) const noexcept;

  const Type* type_;
  std::size_t fixed_size_ = 0;
  std::vector<Program> programs_;  // for native and for swapped byte order
};

}  // namespace perflab::message
