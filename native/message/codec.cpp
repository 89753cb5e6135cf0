#include "message/codec.h"

#include <algorithm>
#include <bit>
#include <cstring>

#include "message/object.h"

namespace perflab::message {
namespace {

constexpr std::size_t kEncapsulation = 4;
constexpr std::uint8_t kNative = std::endian::native == std::endian::little ? 1 : 0;
constexpr std::size_t kMaxAlignment = 8;

// Knowledge about a position on the wire: it is `residue` modulo `modulus`, a power of two up to eight.
struct Alignment {
  std::size_t modulus = kMaxAlignment;
  std::size_t residue = 0;

  bool operator==(const Alignment&) const = default;

  // True if the padding before something of this alignment is known.
  [[nodiscard]] bool knows(std::size_t alignment) const noexcept { return alignment <= modulus; }
  [[nodiscard]] std::size_t padding(std::size_t alignment) const noexcept {
    return (alignment - residue % alignment) % alignment;
  }
  void advance(std::size_t bytes) noexcept { residue = (residue + bytes) % modulus; }
  void align(std::size_t alignment) noexcept {
    if (knows(alignment)) {
      advance(padding(alignment));
    } else {
      *this = {alignment, 0};
    }
  }
  // Knowledge that is true if either of the two is.
  [[nodiscard]] Alignment join(const Alignment& other) const noexcept {
    Alignment both{std::min(modulus, other.modulus), 0};
    while (residue % both.modulus != other.residue % both.modulus) both.modulus /= 2;
    both.residue = residue % both.modulus;
    return both;
  }
};

enum class Kind : std::uint8_t {
  kBytes,     // `size` bytes, copied from memory
  kText,      // a string of octets
  kWideText,  // a string of UTF-16
  kArray,     // `count` times the instructions up to `end`, advancing `size` bytes in memory each time
  kElements,  // the elements of a sequence, copied: `size` bytes each, the last one `last`
  kSequence   // the elements of a sequence, each by the instructions up to `end`
};

struct Instruction {
  Kind kind = Kind::kBytes;
  std::uint8_t alignment = 1;     // for kBytes and for elements: padding that depends on the position
  std::uint8_t skip = 0;          // constant padding
  std::uint8_t width = 1;         // of each number, for byte swapping
  std::uint32_t end = 0;          // index of the instruction after the loop
  std::size_t offset = 0;         // in memory, relative to the struct or element
  std::size_t size = 0;
  std::size_t last = 0;
  std::uint64_t count = 0;        // of an array; for a sequence or string its bound, 0: none
  std::size_t least = 0;          // minimum bytes of an element on the wire
  Element element{};              // for a sequence
};

using Instructions = std::vector<Instruction>;

// The minimum size of an element on the wire, without padding before it.
std::size_t least_of(const Element& element) noexcept;

std::size_t least_of(const Member& member) noexcept {
  if (member.is_sequence()) return sizeof(std::uint32_t);
  return least_of(member.element) * member.in_place();
}

std::size_t least_of(const Element& element) noexcept {
  if (element.type == nullptr) return element.is_text() ? sizeof(std::uint32_t) : size_of(element.primitive);
  std::size_t least = 0;
  for (const Member& member : element.type->members) least += least_of(member);
  return least;
}

// Compiles a type. With `swapped` only numbers of the same width are copied together, because each is
// swapped.
class Compiler {
 public:
  explicit Compiler(bool swapped) : swapped_(swapped) {}

  void structure(const Type& type, std::size_t base) {
    for (const Member& member : type.members) this->member(member, base + member.offset);
  }

  [[nodiscard]] Instructions take() && { return std::move(code_); }

 private:
  void member(const Member& member, std::size_t offset) {
    if (member.is_sequence()) {
      sequence(member, offset);
    } else {
      array(member.element, offset, member.in_place());
    }
  }

  void one(const Element& element, std::size_t offset) {
    if (element.type != nullptr) {
      structure(*element.type, offset);
    } else if (element.is_text()) {
      text(element, offset);
    } else {
      numbers(element.primitive, offset, 1);
    }
  }

  void array(const Element& element, std::size_t offset, std::uint64_t count) {
    if (element.type == nullptr && !element.is_text()) {
      numbers(element.primitive, offset, count);
      return;
    }
    if (count == 0) return;
    if (extends(element, offset, count)) return;
    one_or_loop(element, offset, count);
  }

  void one_or_loop(const Element& element, std::size_t offset, std::uint64_t count) {
    if (count == 1) {
      one(element, offset);
      return;
    }
    const std::size_t head = open({.kind = Kind::kArray,
                                   .offset = offset,
                                   .size = element.stride(),
                                   .count = count,
                                   .element = element});
    body(head, element);
  }

  // Adds adjacent numbers, extending the last instruction if they continue it in memory and on the wire.
  void numbers(Primitive primitive, std::size_t offset, std::uint64_t count) {
    if (count == 0) return;
    const std::size_t width = size_of(primitive);
    const std::size_t bytes = width * count;
    if (place_.knows(width) && block_ != kNone) {
      Instruction& block = code_[block_];
      const std::size_t padding = place_.padding(width);
      const bool same = !swapped_ || (block.width == width && padding == 0);
      if (same && block.offset + block.size + padding == offset) {
        block.size += padding + bytes;
        place_.advance(padding + bytes);
        return;
      }
    }
    Instruction block{.kind = Kind::kBytes, .offset = offset, .size = bytes};
    block.width = static_cast<std::uint8_t>(width);
    pad(block, width);
    block_ = code_.size();
    code_.push_back(block);
    place_.advance(bytes);
  }

  // Extends a block by structs that are contiguous on the wire and in memory: the second struct shows where
  // all others are. False, without any change, if they are not contiguous.
  bool extends(const Element& element, std::size_t offset, std::uint64_t count) {
    if (swapped_ || count < 2 || !element.plain()) return false;
    const Compiler before = *this;
    one(element, offset);
    const std::size_t block = block_;
    const Alignment first = place_;
    const std::size_t size = block == kNone ? 0 : code_[block].size;
    one(element, offset + element.stride());
    const std::size_t alignment = element.alignment();
    const bool continues = block != kNone && block_ == block && code_[block].size == size + element.stride() &&
                           place_.knows(alignment) && place_.residue % alignment == first.residue % alignment;
    if (!continues) {
      *this = before;
      return false;
    }
    code_[block].size += element.stride() * (count - 2);
    place_.advance(element.stride() * (count - 2));
    return true;
  }

  void text(const Element& element, std::size_t offset) {
    const bool wide = element.primitive == Primitive::kWstring;
    Instruction text{.kind = wide ? Kind::kWideText : Kind::kText, .offset = offset, .count = element.text_bound};
    pad(text, sizeof(std::uint32_t));
    push(text);
    place_ = wide ? Alignment{sizeof(std::uint32_t), 0} : Alignment{1, 0};
  }

  void sequence(const Member& member, std::size_t offset) {
    const Element& element = member.element;
    Instruction sequence{.kind = Kind::kSequence,
                         .offset = offset,
                         .size = element.stride(),
                         .last = element.stride(),
                         .count = member.plurality == Plurality::kBounded ? member.count : 0,
                         .least = std::max<std::size_t>(least_of(element), 1),
                         .element = element};
    pad(sequence, sizeof(std::uint32_t));
    place_.advance(sizeof(std::uint32_t));
    const Alignment behind_length = place_;
    if (as_they_are(sequence)) {
      // One instruction pads twice: for its length, then for its elements.
      push(sequence);
      place_.align(sequence.alignment);
      place_ = behind_length.join(after_elements(place_, sequence));
      return;
    }
    // Padding of elements belongs to the elements.
    const std::size_t head = open(sequence);
    body(head, element);
    place_ = place_.join(behind_length);
  }

  // Where the last element ends, for any number of elements.
  static Alignment after_elements(Alignment first, const Instruction& elements) {
    Alignment end = first;
    end.advance(elements.last);
    for (std::size_t i = 1; i < kMaxAlignment; ++i) {
      Alignment other = first;
      other.advance(elements.size * i + elements.last);
      end = end.join(other);
    }
    return end;
  }

  // True if the elements of a sequence are laid out in memory as on the wire; fills in how.
  bool as_they_are(Instruction& sequence) const {
    const Element& element = sequence.element;
    if (element.type == nullptr && !element.is_text()) {
      const std::size_t width = size_of(element.primitive);
      sequence.kind = Kind::kElements;
      sequence.alignment = static_cast<std::uint8_t>(width);
      sequence.width = static_cast<std::uint8_t>(width);
      return true;
    }
    if (swapped_ || !element.plain()) return false;
    // Compiles two of them at a fully known position: they must form one block in which the second is where
    // it is in memory.
    Compiler two(false);
    two.one(element, 0);
    if (two.code_.size() != 1 || two.code_.front().offset != 0) return false;
    const std::size_t alignment = two.code_.front().width;  // alignment of its first number
    const std::size_t bytes = two.code_.front().size;
    two.one(element, element.stride());
    if (two.code_.size() != 1 || two.code_.front().size != element.stride() + bytes) return false;
    // At other positions the layout is the same if the position has the alignment of the widest number.
    if (element.alignment() != alignment) return false;
    sequence.kind = Kind::kElements;
    sequence.alignment = static_cast<std::uint8_t>(alignment);
    sequence.last = bytes;
    return true;
  }

  std::size_t open(Instruction loop) {
    push(loop);
    return code_.size() - 1;
  }

  // The instructions of one element, valid wherever the previous one ends.
  void body(std::size_t head, const Element& element) {
    Alignment begin = place_;
    for (;;) {
      const Compiler before = *this;
      place_ = begin;
      block_ = kNone;
      one(element, 0);
      const Alignment joined = begin.join(place_);
      if (joined == begin) break;
      *this = before;
      begin = joined;
    }
    block_ = kNone;
    code_[head].end = static_cast<std::uint32_t>(code_.size());
  }

  void pad(Instruction& instruction, std::size_t alignment) {
    if (place_.knows(alignment)) {
      instruction.skip = static_cast<std::uint8_t>(place_.padding(alignment));
    } else {
      instruction.alignment = static_cast<std::uint8_t>(alignment);
    }
    place_.align(alignment);
  }

  void push(const Instruction& instruction) {
    block_ = kNone;
    code_.push_back(instruction);
  }

  static constexpr std::size_t kNone = SIZE_MAX;

  bool swapped_;
  Instructions code_;
  Alignment place_;
  std::size_t block_ = kNone;  // the kBytes instruction that ends at the current position
};

// ---- running the instructions ----

template <typename Number>
Number read(const void* from) noexcept {
  Number number;
  std::memcpy(&number, from, sizeof number);
  return number;
}

constexpr std::size_t padding_at(std::size_t position, std::size_t alignment) noexcept {
  return (alignment - (position & (alignment - 1))) & (alignment - 1);
}

std::size_t bytes_of(const Instruction& elements, std::size_t count) noexcept {
  return count == 0 ? 0 : (count - 1) * elements.size + elements.last;
}

// Every cursor has pad(instruction), which moves to the beginning of the instruction, and one function per
// kind of content; false ends the run. `memory` is the struct: const bytes for encoding, bytes for decoding,
// an offset if there is no struct.
template <typename Cursor, typename Memory>
bool run(const Instructions& code, std::size_t first, std::size_t last, Memory memory, Cursor& cursor) noexcept {
  for (std::size_t at = first; at < last; ++at) {
    const Instruction& now = code[at];
    const Memory here = memory + now.offset;
    switch (now.kind) {
      case Kind::kBytes:
        if (!cursor.bytes(now, here)) return false;
        break;
      case Kind::kText:
      case Kind::kWideText:
        if (!cursor.text(now, here)) return false;
        break;
      case Kind::kElements:
        if (!cursor.elements(now, here)) return false;
        break;
      case Kind::kArray:
      case Kind::kSequence: {
        std::uint64_t count = now.count;
        Memory element = here;
        if (now.kind == Kind::kSequence) {
          std::size_t length = 0;
          if (!cursor.length(now, here, length)) return false;
          count = length;
          element = cursor.data(here);
        }
        for (std::uint64_t i = 0; i < count; ++i, element += now.size) {
          if (!run(code, at + 1, now.end, element, cursor)) return false;
        }
        at = now.end - 1;
        break;
      }
    }
  }
  return true;
}

// Base of cursors that read from a struct.
struct FromStruct {
  static const std::byte* data(const std::byte* from) noexcept {
    return static_cast<const std::byte*>(read<Sequence>(from).data);
  }
};

// Measures the length of the message. With `watched`, an address in memory, it stops there.
struct Measure : FromStruct {
  explicit Measure(const std::byte* watch = nullptr) noexcept : watched(watch) {}

  std::size_t position = 0;
  const std::byte* watched;

  void pad(const Instruction& now) noexcept {
    position += now.skip + padding_at(position, now.alignment);
  }
  bool bytes(const Instruction& now, const std::byte* from) noexcept {
    pad(now);
    if (watched != nullptr && watched >= from && watched < from + now.size) {
      position += static_cast<std::size_t>(watched - from);
      return false;
    }
    position += now.size;
    return true;
  }
  bool text(const Instruction& now, const std::byte* from) noexcept {
    pad(now);
    const std::size_t size = read<Sequence>(from).size;
    position += sizeof(std::uint32_t) + (now.kind == Kind::kText ? size + 1 : size * sizeof(char32_t));
    return true;
  }
  bool elements(const Instruction& now, const std::byte* from) noexcept {
    position += now.skip;
    position += padding_at(position, sizeof(std::uint32_t)) + sizeof(std::uint32_t);
    const std::size_t count = read<Sequence>(from).size;
    if (count > 0) position += padding_at(position, now.alignment) + bytes_of(now, count);
    return true;
  }
  bool length(const Instruction& now, const std::byte* from, std::size_t& count) noexcept {
    pad(now);
    position += sizeof(std::uint32_t);
    count = read<Sequence>(from).size;
    return true;
  }
};

// Encodes in native byte order. Precondition: there is room for the whole message.
struct Writer : FromStruct {
  explicit Writer(std::uint8_t* behind_encapsulation) noexcept : origin(behind_encapsulation) {}

  std::uint8_t* origin;
  std::uint8_t* to = origin;

  void zero(std::size_t count) noexcept {
    for (std::size_t i = 0; i < count; ++i) *to++ = 0;
  }
  void align(std::size_t alignment) noexcept {
    if (alignment > 1) zero(padding_at(static_cast<std::size_t>(to - origin), alignment));
  }
  void pad(const Instruction& now) noexcept {
    zero(now.skip);
    align(now.alignment);
  }
  void put(const void* from, std::size_t size) noexcept {
    std::memcpy(to, from, size);
    to += size;
  }
  void put_length(std::size_t length) noexcept {
    const auto number = static_cast<std::uint32_t>(length);
    put(&number, sizeof number);
  }
  bool bytes(const Instruction& now, const std::byte* from) noexcept {
    pad(now);
    put(from, now.size);
    return true;
  }
  bool text(const Instruction& now, const std::byte* from) noexcept {
    pad(now);
    const auto text = read<Sequence>(from);
    if (now.kind == Kind::kText) {
      put_length(text.size + 1);
      if (text.size > 0) put(text.data, text.size);
      *to++ = 0;
      return true;
    }
    put_length(text.size);
    for (std::size_t i = 0; i < text.size; ++i) {
      const char32_t wide = static_cast<const char16_t*>(text.data)[i];
      put(&wide, sizeof wide);
    }
    return true;
  }
  bool elements(const Instruction& now, const std::byte* from) noexcept {
    zero(now.skip);
    align(sizeof(std::uint32_t));
    const auto sequence = read<Sequence>(from);
    put_length(sequence.size);
    if (sequence.size == 0) return true;
    align(now.alignment);
    put(sequence.data, bytes_of(now, sequence.size));
    return true;
  }
  bool length(const Instruction& now, const std::byte* from, std::size_t& count) noexcept {
    pad(now);
    count = read<Sequence>(from).size;
    put_length(count);
    return true;
  }
};

template <typename Number>
void turn_round(std::byte* numbers, std::size_t count) noexcept {
  for (std::size_t i = 0; i < count; ++i, numbers += sizeof(Number)) {
    Number number = read<Number>(numbers);
    if constexpr (sizeof number == 2) number = __builtin_bswap16(number);
    if constexpr (sizeof number == 4) number = __builtin_bswap32(number);
    if constexpr (sizeof number == 8) number = __builtin_bswap64(number);
    std::memcpy(numbers, &number, sizeof number);
  }
}

void turn_round(std::byte* numbers, std::size_t bytes, std::size_t width) noexcept {
  if (width == 2) turn_round<std::uint16_t>(numbers, bytes / width);
  if (width == 4) turn_round<std::uint32_t>(numbers, bytes / width);
  if (width == 8) turn_round<std::uint64_t>(numbers, bytes / width);
}

// Runs over encoded bytes; every step returns false if they end early.
template <bool kSwapped>
struct Bytes {
  const std::uint8_t* origin;  // end of the encapsulation
  std::size_t size;
  std::size_t position = 0;

  [[nodiscard]] bool has(std::size_t bytes) const noexcept { return bytes <= size - position; }
  bool skip(std::size_t bytes) noexcept {
    if (!has(bytes)) return false;
    position += bytes;
    return true;
  }
  bool align(std::size_t alignment) noexcept { return skip(padding_at(position, alignment)); }
  bool pad(const Instruction& now) noexcept { return skip(now.skip) && align(now.alignment); }
  bool get_length(std::size_t& length) noexcept {
    if (!has(sizeof(std::uint32_t))) return false;
    const auto number = read<std::uint32_t>(origin + position);
    length = kSwapped ? __builtin_bswap32(number) : number;
    position += sizeof(std::uint32_t);
    return true;
  }
  static bool within(const Instruction& now, std::size_t count) noexcept {
    return now.count == 0 || count <= now.count;
  }
  // A string: its number of characters, its first character, and whether it is complete and within its bound;
  // moves past it. The length of octet strings counts the zero; an empty string may omit it.
  bool text(const Instruction& now, const std::uint8_t*& from, std::size_t& length) noexcept {
    if (!pad(now) || !get_length(length)) return false;
    const bool narrow = now.kind == Kind::kText;
    const std::size_t each = narrow ? 1 : sizeof(char32_t);
    if (length > (size - position) / each) return false;
    from = origin + position;
    position += length * each;
    if (narrow && length > 0 && from[length - 1] == 0) --length;
    return within(now, length);
  }
  // The number of elements of a sequence; false if they are incomplete. Moves to the first.
  bool elements_length(const Instruction& now, std::size_t& count) noexcept {
    if (!skip(now.skip) || !align(sizeof(std::uint32_t)) || !get_length(count) || !within(now, count)) return false;
    if (count == 0) return true;
    if (!align(now.alignment) || count > (size - position) / now.size + 1) return false;
    return has(bytes_of(now, count));
  }
  // The number of elements of a sequence; false if the bytes cannot contain that many.
  bool sequence_length(const Instruction& now, std::size_t& count) noexcept {
    return pad(now) && get_length(count) && within(now, count) && count <= (size - position) / now.least;
  }
};

// Decodes into a struct.
template <bool kSwapped>
struct Reader : Bytes<kSwapped> {
  using Base = Bytes<kSwapped>;
  using Base::origin, Base::position;

  static std::byte* data(const std::byte* of) noexcept { return static_cast<std::byte*>(read<Sequence>(of).data); }
  void get(std::byte* to, std::size_t bytes, std::size_t width) noexcept {
    std::memcpy(to, origin + position, bytes);
    position += bytes;
    if constexpr (kSwapped) turn_round(to, bytes, width);
  }

  bool bytes(const Instruction& now, std::byte* to) noexcept {
    if (!this->pad(now) || !this->has(now.size)) return false;
    get(to, now.size, now.width);
    return true;
  }
  bool text(const Instruction& now, std::byte* to) noexcept {
    std::size_t length = 0;
    const std::uint8_t* from = nullptr;
    const bool narrow = now.kind == Kind::kText;
    auto& text = *reinterpret_cast<Sequence*>(to);
    if (!Base::text(now, from, length)) return false;
    if (!resize_text(text, length, narrow ? Primitive::kString : Primitive::kWstring)) return false;
    if (narrow) {
      if (length > 0) std::memcpy(text.data, from, length);
      return true;
    }
    for (std::size_t i = 0; i < length; ++i, from += sizeof(char32_t)) {
      const auto number = read<std::uint32_t>(from);
      static_cast<char16_t*>(text.data)[i] = static_cast<char16_t>(kSwapped ? __builtin_bswap32(number) : number);
    }
    return true;
  }
  bool elements(const Instruction& now, std::byte* to) noexcept {
    std::size_t count = 0;
    auto& sequence = *reinterpret_cast<Sequence*>(to);
    if (!this->elements_length(now, count) || !resize(sequence, count, now.element)) return false;
    if (count > 0) get(static_cast<std::byte*>(sequence.data), bytes_of(now, count), now.width);
    return true;
  }
  bool length(const Instruction& now, std::byte* to, std::size_t& count) noexcept {
    return this->sequence_length(now, count) && resize(*reinterpret_cast<Sequence*>(to), count, now.element);
  }
};

// Only skips; memory is an offset within the struct. Stops at `watched`.
template <bool kSwapped>
struct Skipper : Bytes<kSwapped> {
  using Base = Bytes<kSwapped>;
  using Base::position;

  static constexpr std::size_t kElsewhere = SIZE_MAX / 2;  // marks elements of a sequence, which are not in
                                                           // the struct
  std::size_t watched = SIZE_MAX;

  static std::size_t data(std::size_t /*of*/) noexcept { return kElsewhere; }
  bool bytes(const Instruction& now, std::size_t offset) noexcept {
    if (!this->pad(now) || !this->has(now.size)) return false;
    if (watched >= offset && watched < offset + now.size) {
      position += watched - offset;
      watched = kElsewhere;  // found
      return false;
    }
    position += now.size;
    return true;
  }
  bool text(const Instruction& now, std::size_t /*offset*/) noexcept {
    std::size_t length = 0;
    const std::uint8_t* from = nullptr;
    return Base::text(now, from, length);
  }
  bool elements(const Instruction& now, std::size_t /*offset*/) noexcept {
    std::size_t count = 0;
    if (!this->elements_length(now, count)) return false;
    position += bytes_of(now, count);
    return true;
  }
  bool length(const Instruction& now, std::size_t /*offset*/, std::size_t& count) noexcept {
    return this->sequence_length(now, count);
  }
};

}  // namespace

struct Codec::Program {
  Instructions code;
};

Codec::Codec(const Type& type) : type_(&type) {
  for (const bool swapped : {false, true}) {
    Compiler compiler(swapped);
    compiler.structure(type, 0);
    programs_.push_back({std::move(compiler).take()});
  }
  if (type.plain) {
    Measure measure;
    const Instructions& code = programs_.front().code;
    // The size of a plain message does not depend on its content; nothing is read.
    run(code, 0, code.size(), reinterpret_cast<const std::byte*>(&type), measure);
    fixed_size_ = kEncapsulation + measure.position;
  }
}

Codec::~Codec() = default;
Codec::Codec(Codec&&) noexcept = default;
Codec& Codec::operator=(Codec&&) noexcept = default;

std::size_t Codec::encoded_size(const void* object) const noexcept {
  if (fixed_size_ > 0) return fixed_size_;
  Measure measure;
  const Instructions& code = programs_.front().code;
  run(code, 0, code.size(), static_cast<const std::byte*>(object), measure);
  return kEncapsulation + measure.position;
}

std::size_t Codec::encode(const void* object, std::span<std::uint8_t> to) const noexcept {
  const std::size_t size = encoded_size(object);
  if (to.size() < size) return 0;
  to[0] = 0;
  to[1] = kNative;
  to[2] = 0;
  to[3] = 0;
  Writer writer{to.data() + kEncapsulation};
  const Instructions& code = programs_.front().code;
  run(code, 0, code.size(), static_cast<const std::byte*>(object), writer);
  return size;
}

// Calls `use` with a cursor for the message's byte order and its instructions; returns a default if the bytes
// are not CDR.
template <template <bool> typename Cursor, typename Use>
auto Codec::with(std::span<const std::uint8_t> bytes, const Use& use) const noexcept {
  using Result = decltype(use(std::declval<Cursor<false>&>(), programs_.front().code));
  if (bytes.size() < kEncapsulation || bytes[0] != 0 || bytes[1] > 1) return Result{};
  const auto start = [&](auto cursor, const Instructions& code) {
    cursor.origin = bytes.data() + kEncapsulation;
    cursor.size = bytes.size() - kEncapsulation;
    return use(cursor, code);
  };
  return bytes[1] == kNative ? start(Cursor<false>{}, programs_.front().code)
                             : start(Cursor<true>{}, programs_.back().code);
}

bool Codec::decode(std::span<const std::uint8_t> bytes, void* object) const noexcept {
  return with<Reader>(bytes, [&](auto& reader, const Instructions& code) {
    return run(code, 0, code.size(), static_cast<std::byte*>(object), reader);
  });
}

std::size_t Codec::extent(std::span<const std::uint8_t> bytes) const noexcept {
  return with<Skipper>(bytes, [](auto& skipper, const Instructions& code) {
    const bool all = run(code, 0, code.size(), std::size_t{0}, skipper);
    return all ? kEncapsulation + skipper.position : 0;
  });
}

std::size_t Codec::position_in(std::span<const std::uint8_t> bytes, std::size_t offset) const noexcept {
  return with<Skipper>(bytes, [offset](auto& skipper, const Instructions& code) {
    skipper.watched = offset;
    run(code, 0, code.size(), std::size_t{0}, skipper);
    return skipper.watched == skipper.kElsewhere ? kEncapsulation + skipper.position : 0;
  });
}

std::size_t Codec::position_of(const void* object, std::size_t offset) const noexcept {
  const auto* const memory = static_cast<const std::byte*>(object);
  Measure measure(memory + offset);
  const Instructions& code = programs_.front().code;
  const bool all = run(code, 0, code.size(), memory, measure);
  return all ? 0 : kEncapsulation + measure.position;
}

}  // namespace perflab::message
