#include "message/object.h"

#include <malloc.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <new>
#include <utility>

namespace perflab::message {
namespace {

std::byte* at(void* base, std::size_t offset) noexcept { return static_cast<std::byte*>(base) + offset; }
const std::byte* at(const void* base, std::size_t offset) noexcept {
  return static_cast<const std::byte*>(base) + offset;
}

std::size_t character_size(Primitive primitive) noexcept { return primitive == Primitive::kString ? 1 : 2; }

bool initialise(const Type& type, void* memory) noexcept;
void finalise(const Type& type, void* memory) noexcept;

bool initialise(const Element& element, void* memory) noexcept {
  if (element.type != nullptr) return initialise(*element.type, memory);
  if (!element.is_text()) return true;
  return resize_text(*static_cast<Sequence*>(memory), 0, element.primitive);
}

void finalise(const Element& element, void* memory) noexcept {
  if (element.type != nullptr) finalise(*element.type, memory);
  if (element.is_text()) {
    auto& text = *static_cast<Sequence*>(memory);
    std::free(text.data);
    text = {};
  }
}

void finalise(Sequence& sequence, const Element& element) noexcept {
  if (!element.plain()) {
    for (std::size_t i = 0; i < sequence.capacity; ++i)
      finalise(element, at(sequence.data, i * element.stride()));
  }
  std::free(sequence.data);
  sequence = {};
}

// ---- defaults ----

template <typename Number>
void put(void* to, Number number) noexcept {
  std::memcpy(to, &number, sizeof number);
}

// The parser has checked that the value fits.
void put_number(void* to, Primitive primitive, const Value& value) noexcept {
  std::visit(
      [&](const auto& given) {
        if constexpr (!std::is_same_v<std::decay_t<decltype(given)>, std::string>) {
          switch (primitive) {
            case Primitive::kFloat32:
              return put(to, static_cast<float>(given));
            case Primitive::kFloat64:
              return put(to, static_cast<double>(given));
            case Primitive::kBool:
              return put(to, static_cast<std::uint8_t>(given != 0 ? 1 : 0));
            default:
              break;
          }
          switch (size_of(primitive)) {
            case 1:
              return put(to, static_cast<std::uint8_t>(static_cast<std::uint64_t>(given)));
            case 2:
              return put(to, static_cast<std::uint16_t>(static_cast<std::uint64_t>(given)));
            case 4:
              return put(to, static_cast<std::uint32_t>(static_cast<std::uint64_t>(given)));
            default:
              return put(to, static_cast<std::uint64_t>(given));
          }
        }
      },
      value);
}

// UTF-8 to UTF-16; invalid UTF-8 becomes U+FFFD.
std::u16string to_utf16(std::string_view text) {
  std::u16string result;
  for (std::size_t i = 0; i < text.size();) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const std::size_t length = lead < 0x80 ? 1 : lead >> 5 == 6 ? 2 : lead >> 4 == 14 ? 3 : lead >> 3 == 30 ? 4 : 0;
    std::uint32_t point = length == 1 ? lead : length == 0 ? 0xFFFD : lead & (0x7Fu >> length);
    for (std::size_t k = 1; k < length; ++k) {
      const bool there = i + k < text.size() && (static_cast<unsigned char>(text[i + k]) >> 6) == 2;
      point = there ? point << 6 | (static_cast<unsigned char>(text[i + k]) & 0x3Fu) : 0xFFFD;
      if (!there) break;
    }
    i += std::max<std::size_t>(length, 1);
    if (point > 0xFFFF) {
      result += static_cast<char16_t>(0xD800 + ((point - 0x10000) >> 10 & 0x3FF));
      result += static_cast<char16_t>(0xDC00 + ((point - 0x10000) & 0x3FF));
    } else {
      result += static_cast<char16_t>(point);
    }
  }
  return result;
}

bool put_text(Sequence& text, Primitive primitive, std::string_view value) noexcept {
  if (primitive == Primitive::kString) {
    if (!resize_text(text, value.size(), primitive)) return false;
    std::memcpy(text.data, value.data(), value.size());
    return true;
  }
  try {
    const std::u16string wide = to_utf16(value);
    if (!resize_text(text, wide.size(), primitive)) return false;
    std::memcpy(text.data, wide.data(), wide.size() * sizeof(char16_t));
    return true;
  } catch (const std::bad_alloc&) {
    return false;
  }
}

bool put_default(const Element& element, void* to, const Value& value) noexcept {
  if (element.is_text())
    return put_text(*static_cast<Sequence*>(to), element.primitive, std::get<std::string>(value));
  put_number(to, element.primitive, value);
  return true;
}

bool initialise(const Member& member, void* memory) noexcept {
  const std::size_t stride = member.element.stride();
  std::byte* first = at(memory, member.offset);
  if (member.is_sequence()) {
    auto& sequence = *reinterpret_cast<Sequence*>(first);
    sequence = {};
    if (!resize(sequence, member.defaults.size(), member.element)) return false;
    first = static_cast<std::byte*>(sequence.data);
  } else if (!member.element.plain() || member.element.type != nullptr) {
    for (std::uint64_t i = 0; i < member.in_place(); ++i) {
      if (!initialise(member.element, first + i * stride)) return false;
    }
  }
  for (std::size_t i = 0; i < member.defaults.size(); ++i) {
    if (!put_default(member.element, first + i * stride, member.defaults[i])) return false;
  }
  return true;
}

// Precondition: `memory` is all zero.
bool initialise(const Type& type, void* memory) noexcept {
  return std::ranges::all_of(type.members, [&](const Member& member) { return initialise(member, memory); });
}

void finalise(const Type& type, void* memory) noexcept {
  if (type.plain) return;
  for (const Member& member : type.members) {
    std::byte* const first = at(memory, member.offset);
    if (member.is_sequence()) {
      finalise(*reinterpret_cast<Sequence*>(first), member.element);
    } else if (!member.element.plain()) {
      for (std::uint64_t i = 0; i < member.in_place(); ++i)
        finalise(member.element, first + i * member.element.stride());
    }
  }
}

// ---- equality ----

bool equal(const Type& type, const void* a, const void* b) noexcept;

bool equal(const Element& element, const std::byte* a, const std::byte* b, std::size_t count) noexcept {
  if (element.type == nullptr && !element.is_text())
    return count == 0 || std::memcmp(a, b, count * element.stride()) == 0;
  for (std::size_t i = 0; i < count; ++i, a += element.stride(), b += element.stride()) {
    if (element.type != nullptr) {
      if (!equal(*element.type, a, b)) return false;
      continue;
    }
    const auto& x = *reinterpret_cast<const Sequence*>(a);
    const auto& y = *reinterpret_cast<const Sequence*>(b);
    if (x.size != y.size || std::memcmp(x.data, y.data, x.size * character_size(element.primitive)) != 0)
      return false;
  }
  return true;
}

bool equal(const Type& type, const void* a, const void* b) noexcept {
  return std::ranges::all_of(type.members, [&](const Member& member) {
    const std::byte* const x = at(a, member.offset);
    const std::byte* const y = at(b, member.offset);
    if (!member.is_sequence()) return equal(member.element, x, y, member.in_place());
    const auto& left = *reinterpret_cast<const Sequence*>(x);
    const auto& right = *reinterpret_cast<const Sequence*>(y);
    return left.size == right.size && equal(member.element, static_cast<const std::byte*>(left.data),
                                            static_cast<const std::byte*>(right.data), left.size);
  });
}

// ---- copies ----

bool assign(const Element& element, const std::byte* from, std::byte* to, std::size_t count) noexcept {
  if (element.plain()) {
    if (count > 0) std::memcpy(to, from, count * element.stride());
    return true;
  }
  for (std::size_t i = 0; i < count; ++i, from += element.stride(), to += element.stride()) {
    if (element.type != nullptr) {
      if (!message::assign(*element.type, from, to)) return false;
      continue;
    }
    const auto& text = *reinterpret_cast<const Sequence*>(from);
    auto& copy = *reinterpret_cast<Sequence*>(to);
    if (!resize_text(copy, text.size, element.primitive)) return false;
    std::memcpy(copy.data, text.data, text.size * character_size(element.primitive));
  }
  return true;
}

bool assign(const Member& member, const void* from, void* to) noexcept {
  const std::byte* source = at(from, member.offset);
  std::byte* target = at(to, member.offset);
  if (!member.is_sequence()) return assign(member.element, source, target, member.in_place());
  const auto& sequence = *reinterpret_cast<const Sequence*>(source);
  auto& copy = *reinterpret_cast<Sequence*>(target);
  return resize(copy, sequence.size, member.element) &&
         assign(member.element, static_cast<const std::byte*>(sequence.data), static_cast<std::byte*>(copy.data),
                sequence.size);
}

// ---- fill ----

bool is_octet(const Element& element) noexcept {
  return element.type == nullptr && !element.is_text() && size_of(element.primitive) == 1 &&
         element.primitive != Primitive::kBool;
}

enum class Bulk { kNone, kSequences, kTexts, kOctets };

Bulk bulk_of(const Member& member) noexcept {
  if (member.is_sequence()) return is_octet(member.element) ? Bulk::kOctets : Bulk::kSequences;
  return member.plurality == Plurality::kOne && member.element.is_text() ? Bulk::kTexts : Bulk::kNone;
}

Bulk bulk_of(const Type& type) noexcept {
  Bulk most = Bulk::kNone;
  for (const Member& member : type.members) most = std::max(most, bulk_of(member));
  return most;
}

// SplitMix64 (Steele, Lea, Flood 2014).
class Random {
 public:
  explicit Random(std::uint64_t seed) noexcept : state_(seed) {}
  std::uint64_t next() noexcept {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return z ^ z >> 31;
  }

 private:
  std::uint64_t state_;
};

class Filler {
 public:
  explicit Filler(std::uint64_t seed) noexcept : random_(seed) {}

  // Fills `bulk` elements into the members of that kind.
  void fill(const Type& type, void* memory, Bulk kind, std::size_t bulk) {
    for (const Member& member : type.members) {
      std::byte* first = at(memory, member.offset);
      const std::size_t length = kind != Bulk::kNone && bulk_of(member) == kind ? bulk : kFewElements;
      std::size_t count = member.in_place();
      if (member.is_sequence()) {
        auto& sequence = *reinterpret_cast<Sequence*>(first);
        count = member.plurality == Plurality::kBounded ? std::min<std::size_t>(length, member.count) : length;
        if (!resize(sequence, count, member.element)) throw std::bad_alloc();
        first = static_cast<std::byte*>(sequence.data);
      }
      elements(member.element, first, count, member.is_sequence() ? kFewElements : length);
    }
  }

 private:
  void elements(const Element& element, std::byte* first, std::size_t count, std::size_t text_length) {
    for (std::size_t i = 0; i < count; ++i, first += element.stride()) {
      if (element.type != nullptr) {
        fill(*element.type, first, Bulk::kNone, 0);
      } else if (element.is_text()) {
        text(element, *reinterpret_cast<Sequence*>(first), text_length);
      } else {
        number(element.primitive, first);
      }
    }
  }

  void text(const Element& element, Sequence& to, std::size_t length) {
    if (element.text_bound > 0) length = std::min<std::size_t>(length, element.text_bound);
    if (!resize_text(to, length, element.primitive)) throw std::bad_alloc();
    for (std::size_t i = 0; i < length; ++i) {
      const auto letter = static_cast<char>('a' + random_.next() % 26);
      if (element.primitive == Primitive::kString) {
        static_cast<char*>(to.data)[i] = letter;
      } else {
        static_cast<char16_t*>(to.data)[i] = static_cast<char16_t>(0x3B1 + (letter - 'a') % 24);  // Greek
      }
    }
  }

  void number(Primitive primitive, void* to) noexcept {
    const std::uint64_t bits = random_.next();
    switch (primitive) {
      case Primitive::kBool:
        return put(to, std::uint8_t{1});
      case Primitive::kFloat32:
        return put(to, static_cast<float>(1 + bits % 100'000) / 16);
      case Primitive::kFloat64:
        return put(to, static_cast<double>(1 + bits % 1'000'000'000) / 1024);
      default:
        break;
    }
    // Cycles through 1 to 251: no octet is zero.
    std::uint64_t octets = 0;
    for (unsigned i = 0; i < 8; ++i) octets = octets << 8 | (1 + (bits >> 8 * i & 0xFF) % 251);
    std::memcpy(to, &octets, size_of(primitive));
  }

  Random random_;
};

}  // namespace

bool resize_text(Sequence& text, std::size_t count, Primitive primitive) noexcept {
  const std::size_t width = character_size(primitive);
  if (malloc_usable_size(text.data) / width <= count) {
    if (count >= SIZE_MAX / width - 1) return false;
    // Most strings are short: with this much memory the first assignment needs no reallocation.
    void* const memory = std::malloc(std::max<std::size_t>(count + 1, 16) * width);
    if (memory == nullptr) return false;
    std::free(text.data);
    text.data = memory;
  }
  text.size = count;
  text.capacity = count + 1;
  std::memset(at(text.data, count * width), 0, width);
  return true;
}

bool resize(Sequence& sequence, std::size_t count, const Element& element) noexcept {
  if (count > sequence.capacity) {
    finalise(sequence, element);
    const std::size_t stride = element.stride();
    if (count > SIZE_MAX / stride) return false;
    // Numbers are overwritten at once, so their memory need not be zeroed; padding within structs must be.
    const bool numbers = element.type == nullptr && element.plain();
    sequence.data = numbers ? std::malloc(count * stride) : std::calloc(count, stride);
    if (sequence.data == nullptr) return false;
    sequence.capacity = count;
    if (!numbers) {
      for (std::size_t i = 0; i < count; ++i) {
        if (initialise(element, at(sequence.data, i * stride))) continue;
        finalise(sequence, element);
        return false;
      }
    }
  }
  sequence.size = count;
  return true;
}

Object::Object(const Type& type) : type_(&type), memory_(std::calloc(1, std::max<std::size_t>(type.size, 1))) {
  if (memory_ == nullptr) throw std::bad_alloc();
  if (initialise(type, memory_)) return;
  finalise(type, memory_);
  std::free(memory_);
  throw std::bad_alloc();
}

Object::Object(const Type& type, const void* of) : Object(type) {
  if (!assign(type, of, memory_)) throw std::bad_alloc();
}

Object::~Object() {
  if (memory_ == nullptr) return;
  finalise(*type_, memory_);
  std::free(memory_);
}

Object::Object(Object&& other) noexcept : type_(other.type_), memory_(std::exchange(other.memory_, nullptr)) {}

Object& Object::operator=(Object&& other) noexcept {
  std::swap(type_, other.type_);
  std::swap(memory_, other.memory_);
  return *this;
}

bool Object::operator==(const Object& other) const noexcept { return equal(*type_, memory_, other.memory_); }

bool assign(const Type& type, const void* from, void* to) noexcept {
  if (type.plain) {
    std::memcpy(to, from, type.size);
    return true;
  }
  return std::ranges::all_of(type.members,
                             [&](const Member& member) { return assign(member, from, to); });
}

bool has_bulk(const Type& type) noexcept { return bulk_of(type) != Bulk::kNone; }

std::string_view bulk_unit(const Type& type) noexcept {
  switch (bulk_of(type)) {
    case Bulk::kOctets:
      return "byte";
    case Bulk::kTexts:
      return "character";
    case Bulk::kSequences:
      return "element";
    case Bulk::kNone:
      break;
  }
  return "";
}

std::uint64_t bulk_bound(const Type& type) noexcept {
  const Bulk bulk = bulk_of(type);
  std::uint64_t most = 0;
  for (const Member& member : type.members) {
    if (bulk == Bulk::kNone || bulk_of(member) != bulk) continue;
    const bool text = member.plurality == Plurality::kOne;
    const std::uint64_t bound = text ? member.element.text_bound : member.plurality == Plurality::kBounded ? member.count : 0;
    if (bound == 0) return 0;
    most = std::max(most, bound);
  }
  return most;
}

void fill(Object& object, std::size_t size, std::uint64_t seed) {
  Filler(seed).fill(object.type(), object.data(), bulk_of(object.type()), size);
}

}  // namespace perflab::message
