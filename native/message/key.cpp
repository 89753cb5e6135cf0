#include "message/key.h"

#include <algorithm>
#include <optional>

#include "message/header.h"
#include "message/md5.h"
#include "message/source.h"

namespace perflab::message {
namespace {

// ---- sinks for keys; each has put(bytes) ----

class Buffer {
 public:
  explicit Buffer(std::span<std::uint8_t> to) noexcept : to_(to) {}
  void put(std::span<const std::uint8_t> bytes) noexcept {
    if (size_ + bytes.size() <= to_.size())
      std::ranges::copy(bytes, to_.begin() + static_cast<std::ptrdiff_t>(size_));
    size_ += bytes.size();
  }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

 private:
  std::span<std::uint8_t> to_;
  std::size_t size_ = 0;
};

class Digester {
 public:
  void put(std::span<const std::uint8_t> bytes) noexcept { md5_.add(bytes); }
  [[nodiscard]] KeyHash finish() noexcept { return md5_.finish(); }

 private:
  Md5 md5_;
};

// Copies the keys of a message.
template <typename Sink>
class Copier {
 public:
  Copier(Source& from, Key::In in, Sink& to) noexcept : from_(from), in_(in), to_(to) {}

  // `outermost`: what follows its last key is not needed.
  bool structure(const Type& type, bool outermost) noexcept {
    std::size_t last = type.members.size();
    while (outermost && last > 0 && !is_key(type, type.members[last - 1])) --last;
    for (std::size_t i = 0; i < last; ++i) {
      const Member& member = type.members[i];
      const bool key = is_key(type, member);
      if (!key && in_ == Key::In::kKey) continue;  // is not there
      std::uint64_t count = member.in_place();
      if (member.is_sequence() && !(key ? copy_length(member, count) : from_.length(count))) return false;
      if (!(key ? copy(member.element, count) : leave(member.element, count, from_))) return false;
    }
    return true;
  }

 private:
  static bool is_key(const Type& type, const Member& member) noexcept { return member.key || !type.keyed; }

  void put(const std::uint8_t* bytes, std::size_t count) noexcept {
    to_.put({bytes, count});
    position_ += count;
  }
  void align(std::size_t alignment) noexcept {
    static constexpr std::uint8_t kZeros[8] = {};
    put(kZeros, padding_before(position_, alignment));
  }
  bool copy_number(std::size_t width) noexcept {
    std::uint8_t bytes[8];
    if (!from_.number(width, bytes)) return false;
    align(width);
    put(bytes, width);
    return true;
  }
  void put_length(std::uint64_t length) noexcept {
    std::uint8_t bytes[kLengthBytes];
    for (std::size_t i = 0; i < kLengthBytes; ++i)
      bytes[i] = static_cast<std::uint8_t>(length >> 8 * (kLengthBytes - 1 - i));
    align(kLengthBytes);
    put(bytes, kLengthBytes);
  }
  bool copy_length(const Member& member, std::uint64_t& length) noexcept {
    if (!from_.length(length)) return false;
    if (member.plurality == Plurality::kBounded && length > member.count) return false;
    put_length(length);
    return true;
  }

  bool copy(const Element& element, std::uint64_t count) noexcept {
    for (std::uint64_t i = 0; i < count; ++i) {
      const bool copied = element.type != nullptr ? structure(*element.type, false)
                          : element.is_text()     ? copy_text(element.primitive)
                                                  : copy_number(size_of(element.primitive));
      if (!copied) return false;
    }
    return true;
  }
  bool copy_text(Primitive primitive) noexcept {
    std::uint64_t length = 0;
    if (!from_.length(length)) return false;
    const std::size_t width = width_of_text(primitive);
    if (width > 1) {
      put_length(length);
      for (std::uint64_t i = 0; i < length; ++i) {
        if (!copy_number(width)) return false;
      }
      return true;
    }
    // The length of octet strings counts the zero; an empty string may omit it.
    put_length(std::max<std::uint64_t>(length, 1));
    const std::uint8_t zero = 0;
    if (length == 0) put(&zero, 1);
    while (length > 0) {
      std::uint8_t bytes[64];
      const auto now = static_cast<std::size_t>(std::min<std::uint64_t>(length, sizeof bytes));
      if (!from_.take(now, bytes)) return false;
      put(bytes, now);
      length -= now;
    }
    return true;
  }

  Source& from_;
  Key::In in_;
  Sink& to_;
  std::size_t position_ = 0;  // counted from the end of the encapsulation
};

// ---- maximum length of keys ----

std::optional<std::uint64_t> end_of(const Type& type, std::uint64_t at) noexcept;

// The largest end position of this many elements; empty if they are unbounded.
std::optional<std::uint64_t> end_of(const Element& element, std::uint64_t count, std::uint64_t at) noexcept {
  const auto aligned = [](std::uint64_t place, std::size_t alignment) {
    return place + padding_before(place, alignment);
  };
  if (element.type == nullptr && !element.is_text()) {
    const std::size_t width = size_of(element.primitive);
    return count == 0 ? at : aligned(at, width) + width * count;
  }
  if (element.type == nullptr && element.text_bound == 0) return std::nullopt;
  std::optional<std::uint64_t> end = at;
  // Beyond the size of a hash the exact length does not matter.
  for (std::uint64_t i = 0; i < count && end && *end <= sizeof(KeyHash); ++i) {
    if (element.type != nullptr) {
      end = end_of(*element.type, *end);
      continue;
    }
    const std::uint64_t characters = element.text_bound + (element.primitive == Primitive::kString ? 1 : 0);
    end = aligned(*end, kLengthBytes) + kLengthBytes + characters * width_of_text(element.primitive);
  }
  return end;
}

std::optional<std::uint64_t> end_of(const Type& type, std::uint64_t at) noexcept {
  std::optional<std::uint64_t> end = at;
  for (const Member& member : type.members) {
    if (!member.key && type.keyed) continue;
    if (member.plurality == Plurality::kSequence) return std::nullopt;
    if (member.is_sequence()) end = *end + padding_before(*end, kLengthBytes) + kLengthBytes;
    end = end_of(member.element, member.plurality == Plurality::kOne ? 1 : member.count, *end);
    if (!end) return end;
  }
  return end;
}

bool is_whole(Primitive primitive) noexcept {
  return !is_text(primitive) && primitive != Primitive::kBool && primitive != Primitive::kFloat32 &&
         primitive != Primitive::kFloat64;
}

std::optional<Key::Number> first_number(const Type& type, std::size_t base) noexcept {
  for (const Member& member : type.members) {
    if ((!member.key && type.keyed) || member.plurality != Plurality::kOne) continue;
    const std::size_t offset = base + member.offset;
    if (member.element.type != nullptr) {
      if (const auto found = first_number(*member.element.type, offset)) return found;
    } else if (is_whole(member.element.primitive)) {
      return Key::Number{offset, size_of(member.element.primitive)};
    }
  }
  return std::nullopt;
}

void name_keys(const Type& type, const std::string& prefix, std::vector<std::string>& names) {
  for (const Member& member : type.members) {
    if (!member.key && type.keyed) continue;
    const Type* const nested = member.element.type;
    if (nested != nullptr && nested->keyed) {
      name_keys(*nested, prefix + member.name + ".", names);
    } else {
      names.push_back(prefix + member.name);
    }
  }
}

}  // namespace

std::vector<std::string> Key::names() const {
  std::vector<std::string> names;
  name_keys(*type_, "", names);
  return names;
}

Key::Key(const Type& type)
    : type_(&type),
      digests_(end_of(type, 0).value_or(SIZE_MAX) > sizeof(KeyHash)),
      number_(first_number(type, 0)) {}

void Key::Number::write(std::uint64_t number, void* to) const noexcept {
  auto* const bytes = static_cast<std::uint8_t*>(to);
  for (std::size_t i = 0; i < width; ++i) {
    const std::size_t shift = kNativeEncapsulation == 1 ? i : width - 1 - i;
    bytes[i] = static_cast<std::uint8_t>(number >> 8 * shift);
  }
}

std::size_t Key::extract(Pieces from, In in, std::span<std::uint8_t> to) const noexcept {
  Source source(from);
  if (!source.open()) return 0;
  Buffer buffer(to);
  static constexpr std::uint8_t kBigEndian[kEncapsulationBytes] = {};
  buffer.put(kBigEndian);
  return Copier(source, in, buffer).structure(*type_, true) ? buffer.size() : 0;
}

bool Key::hash(Pieces from, In in, KeyHash& to) const noexcept {
  Source source(from);
  if (!source.open()) return false;
  if (digests_) {
    Digester digester;
    if (!Copier(source, in, digester).structure(*type_, true)) return false;
    to = digester.finish();
    return true;
  }
  to = {};
  Buffer buffer(to);
  return Copier(source, in, buffer).structure(*type_, true);
}

}  // namespace perflab::message
