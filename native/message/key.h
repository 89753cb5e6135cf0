// Keys of messages: which instance of its topic a message belongs to, by the members that the type declares as keys.
//
//   the members  those with `@key`, in the order of their declaration; of one that is a struct in turn those of its
//                members, or all where it declares none (DDS-XTypes 1.3, 7.2.2.4.4.4.8)
//   a key        these members alone as CDR, big-endian behind an encapsulation header: as DDS sends a key by itself
//   its hash     16 bytes: what is behind the header, with zeros, where that is never longer; else its MD5
//                (DDS-RTPS 2.5, 9.6.4.8)
//
// Keys are read from encoded messages, which are not decoded; reading ends behind the last key.
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
  // By what graphs and people call them: "id", "track.id".
  [[nodiscard]] std::vector<std::string> names() const;

  // What the bytes are: a message of the type, or a key by itself. Of either byte order.
  enum class In : std::uint8_t { kMessage, kKey };

  // `type` has keys, and outlives this.
  explicit Key(const Type& type);

  // Writes the key, and returns its size; where that is more than `to` has, some of it may be missing. 0 where the bytes are
  // no message of the type.
  [[nodiscard]] std::size_t extract(Pieces from, In in, std::span<std::uint8_t> to) const noexcept;
  // False where the bytes are no message of the type.
  [[nodiscard]] bool hash(Pieces from, In in, KeyHash& to) const noexcept;

  // A whole number among the keys, the first one that stands in the struct itself: where, and how many bytes it has. By it
  // a sender tells its instances apart.
  struct Number {
    std::size_t offset;
    std::size_t width;

    // How many there are at most; of eight bytes one less.
    [[nodiscard]] std::uint64_t count() const noexcept { return width >= 8 ? UINT64_MAX : std::uint64_t{1} << 8 * width; }
    // Writes one in native byte order.
    void write(std::uint64_t number, void* to) const noexcept;
  };
  [[nodiscard]] const std::optional<Number>& number() const noexcept { return number_; }

  // Whether hashes are digests, as keys may be longer than these.
  [[nodiscard]] bool digests() const noexcept { return digests_; }

 private:
  const Type* type_;
  bool digests_;
  std::optional<Number> number_;
};

}  // namespace perflab::message
