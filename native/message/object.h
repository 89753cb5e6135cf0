// A message in memory whose type is only known at run time.
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

// Resizes a string to `count` characters with arbitrary content, plus its terminating zero. False if there is
// no memory; the string is then unchanged.
[[nodiscard]] bool resize_text(Sequence& text, std::size_t count, Primitive primitive) noexcept;

// Resizes a sequence to `count` elements. Existing elements are only kept if the memory is large enough; new
// ones are initialized. False if there is no memory; the sequence is then empty.
[[nodiscard]] bool resize(Sequence& sequence, std::size_t count, const Element& element) noexcept;

class Object {
 public:
  // Has the defaults of its definition, otherwise zeros; strings and sequences are empty. Padding is zero
  // unless a message is decoded into the object (codec.h). Throws std::bad_alloc.
  explicit Object(const Type& type);
  // A copy of a struct of this type. Throws std::bad_alloc.
  Object(const Type& type, const void* of);
  ~Object();
  Object(Object&& other) noexcept;
  Object& operator=(Object&& other) noexcept;
  Object(const Object&) = delete;
  Object& operator=(const Object&) = delete;

  [[nodiscard]] const Type& type() const noexcept { return *type_; }
  [[nodiscard]] void* data() noexcept { return memory_; }
  [[nodiscard]] const void* data() const noexcept { return memory_; }

  // Compares field by field; floating-point numbers bitwise. Precondition: same type.
  [[nodiscard]] bool operator==(const Object& other) const noexcept;

 private:
  const Type* type_;
  void* memory_;
};

// Copies a struct onto another of the same type, reusing memory if it is large enough. False if there is no
// memory; the target may then be partly copied.
[[nodiscard]] bool assign(const Type& type, const void* from, void* to) noexcept;

// The smallest bulk that a receiver can distinguish from an empty one.
inline constexpr std::size_t kFewElements = 3;

// True if the sender can choose the message's length, i.e. if fill()'s `size` has an effect.
[[nodiscard]] bool has_bulk(const Type& type) noexcept;
// The unit of the bulk's elements: "byte", "character" or "element"; "" if there is no bulk.
[[nodiscard]] std::string_view bulk_unit(const Type& type) noexcept;
// The maximum number of bulk elements; 0: unbounded.
[[nodiscard]] std::uint64_t bulk_bound(const Type& type) noexcept;

// Gives every field a value derived from `seed` and its position: no zeros in numbers, so that no layer can
// compress the message; printable characters in strings. The bulk of the message gets `size` elements, or as
// many as its bound allows: its octet sequences, else its strings, else its other sequences. All other
// variable parts get kFewElements. Throws std::bad_alloc.
void fill(Object& object, std::size_t size, std::uint64_t seed = 1);

}  // namespace perflab::message
