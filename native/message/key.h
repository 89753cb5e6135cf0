// Message keys: the members declared as keys by the type determine the instance that a message belongs to.
//
//   the members  those with `@key`, in the order of declaration; for a struct its own keys, or all its
//                members if it declares none (DDS-XTypes 1.3, 7.2.2.4.4.4.8)
//   a key        only these members as CDR, big-endian after an encapsulation header: as DDS sends a key
//   its hash     16 bytes: the part after the header, padded with zeros, if it never exceeds 16 bytes; otherwise
//                its MD5 (DDS-RTPS 2.5, 9.6.4.8)
//
// Keys are read from encoded messages without decoding them; reading stops after the last key.
//
// Example:
//   const Key key(type);
//   KeyHash hash;
//   const std::span<const std::uint8_t> pieces[] = {bytes};
//   if (!key.hash(pieces, Key::In::kMessage, hash)) throw BadInput("no such message");
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "message/source.h"
#include "message/type.h"

namespace perflab::message {

using KeyHash = std::array<std::uint8_t, 16>;

class Key {
 public:
  using Pieces = message::Pieces;
  // Names of the key members: "id", "track.id".
  [[nodiscard]] std::vector<std::string> names() const;

  // What the bytes contain: a message of the type, or only a key. In either byte order.
  enum class In : std::uint8_t { kMessage, kKey };

  // `type` must have keys and outlive this object.
  explicit Key(const Type& type);

  // Writes the key and returns its size; if that exceeds the size of `to`, the key may be incomplete. 0 if
  // the bytes are not a message of the type.
  [[nodiscard]] std::size_t extract(Pieces from, In in, std::span<std::uint8_t> to) const noexcept;
  // False if the bytes are not a message of the type.
  [[nodiscard]] bool hash(Pieces from, In in, KeyHash& to) const noexcept;

  // The first integer key in the struct itself: its offset and size. A sender distinguishes its instances by
  // it.
  struct Number {
    std::size_t offset;
    std::size_t width;

    // Maximum number of instances; for eight bytes one less than the range.
    [[nodiscard]] std::uint64_t count() const noexcept { return width >= 8 ? UINT64_MAX : std::uint64_t{1} << 8 * width; }
    // Writes an instance number in native byte order.
    void write(std::uint64_t number, void* to) const noexcept;
  };
  [[nodiscard]] const std::optional<Number>& number() const noexcept { return number_; }

  // True if hashes are MD5 digests, because keys may be longer than hashes.
  [[nodiscard]] bool digests() const noexcept { return digests_; }

 private:
  const Type* type_;
  bool digests_;
  std::optional<Number> number_;
};

}  // namespace perflab::message
