// A message in memory, of a type that is known at run time only.
//
// Example:
//   Object cloud(type);                 // its defaults
//   fill(cloud, 1 << 20);               // a megabyte of data
//   codec.decode(bytes, cloud.data());
//   cloud == other;                     // field by field
#pragma once

#include <cstdint>
#include <memory>

#include "message/type.h"

namespace perflab::message {

// Makes a text of `count` characters of room for, with arbitrary content and its zero behind it. False if there is no
// memory; the text is then as before.
[[nodiscard]] bool resize_text(Sequence& text, std::size_t count, Primitive primitive) noexcept;

// Makes a sequence have `count` elements. Those that were there stay only where their memory is large enough; others
// are initialised. False if there is no memory; the sequence is then empty.
[[nodiscard]] bool resize(Sequence& sequence, std::size_t count, const Element& element) noexcept;

class Object {
 public:
  // With the defaults of its definition, else zero; texts and sequences empty. Padding is zero, and stays so unless a
  // message is decoded into it (codec.h). Throws std::bad_alloc.
  explicit Object(const Type& type);
  // A copy of a struct of that type. Throws std::bad_alloc.
  Object(const Type& type, const void* of);
  ~Object();
  Object(Object&& other) noexcept;
  Object& operator=(Object&& other) noexcept;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  [[nodiscard]] const Type& type() const noexcept { return *type_; }
  [[nodiscard]] void* data() noexcept { return memory_; }
  [[nodiscard]] const void* data() const noexcept { return memory_; }

  // Field by field; floating-point numbers by their bits. Of the same type.
  [[nodiscard]] bool operator==(const Object& other) const noexcept;

 private:
  const Type* type_;
  void* memory_;
};

// Makes a struct equal to another one of its type, in memory that is used again where it is large enough. False if there
// is no memory; it then holds some of it.
[[nodiscard]] bool assign(const Type& type, const void* from, void* to) noexcept;

// The least bulk of a message that a receiver can tell from an empty one.
inline constexpr std::size_t kFewElements = 3;

// True if the length of the message is for its sender to choose: fill()'s `size` means something.
[[nodiscard]] bool has_bulk(const Type& type) noexcept;
// What the bulk's elements are: "byte", "character" or "element"; "" where there is none.
[[nodiscard]] std::string_view bulk_unit(const Type& type) noexcept;
// The most elements that the bulk can have; 0 where no bound stands in the way.
[[nodiscard]] std::uint64_t bulk_bound(const Type& type) noexcept;

// Gives every field a value that follows from `seed` and its place: no zeros in numbers, so that nothing on the way can
// make a message smaller; printable characters in texts. The bulk of the message gets `size` elements, or as many as
// its bound allows: the sequences of octets among its members, where there are none its texts, else its other
// sequences. What else has a length gets kFewElements. Throws std::bad_alloc.
void fill(Object& object, std::size_t size, std::uint64_t seed = 1);

}  // namespace perflab::message
