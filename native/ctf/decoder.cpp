#include "ctf/decoder.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <set>
#include <type_traits>
#include <utility>

namespace perflab::ctf {

using namespace detail;

std::uint64_t* ElementMemory::allocate(std::uint64_t slots) {
  if (slots > kMaximum - std::min(used_ - before_event_, kMaximum)) return nullptr;
  const auto wanted = static_cast<std::size_t>(slots);
  while (block_ < blocks_.size() && blocks_[block_].size - at_ < wanted) {
    ++block_;
    at_ = 0;
  }
  if (block_ == blocks_.size()) {
    const std::size_t size = std::max({wanted, used_, std::size_t{256}});
    // Uninitialised on purpose: the decoder writes slots before it reads them.
    blocks_.push_back({std::unique_ptr<std::uint64_t[]>(new std::uint64_t[size]), size});
    at_ = 0;
  }
  std::uint64_t* result = blocks_[block_].slots.get() + at_;
  at_ += wanted;
  used_ += wanted;
  return result;
}

const char* describe(Failure failure) noexcept {
  constexpr std::array kTexts{"nothing is wrong",
                              "a field reaches beyond the end of its packet's content",
                              "a text does not end within its packet",
                              "a selector names no option of its variant",
                              "it has more elements than fit into memory",
                              "its packet has far more elements than bytes",
                              "the metadata knows no event of that id",
                              "an event takes no room",
                              "it is later than the end of its packet"};
  return kTexts[static_cast<std::size_t>(failure)];
}

namespace {

// The number of loads in an event's run is padded to a multiple of this with loads into a spare slot. Events of
// different classes then mostly take the same branches; a mispredicted branch costs more than several loads.
constexpr std::size_t kLoadsAtOnce = 4;

// The rest of the packet does not bound the number of elements of zero size; more than this many are rejected.
constexpr std::uint64_t kMostWithoutRoom = 4096;

std::uint64_t load_native(const std::uint8_t* place) noexcept {
  std::uint64_t word = 0;
  std::memcpy(&word, place, sizeof word);
  return word;
}

std::uint64_t load_little(const std::uint8_t* place) noexcept {
  const std::uint64_t word = load_native(place);
  return std::endian::native == std::endian::little ? word : __builtin_bswap64(word);
}

std::uint64_t load_big(const std::uint8_t* place) noexcept {
  const std::uint64_t word = load_native(place);
  return std::endian::native == std::endian::big ? word : __builtin_bswap64(word);
}

// Bits count from the first byte's lowest bit in little-endian fields, from its highest bit in big-endian fields.
std::uint64_t read_bits(const std::uint8_t* data, std::uint64_t at, std::uint32_t bits, bool big) noexcept {
  const std::uint8_t* place = data + (at >> 3U);
  const auto shift = static_cast<std::uint32_t>(at & 7U);
  if (big) {
    std::uint64_t word = load_big(place) << shift;
    if (shift + bits > 64) word |= static_cast<std::uint64_t>(place[8]) >> (8 - shift);
    return word >> (64 - bits);
  }
  std::uint64_t word = load_little(place) >> shift;
  if (shift + bits > 64) word |= static_cast<std::uint64_t>(place[8]) << (64 - shift);
  return bits == 64 ? word : word & ((std::uint64_t{1} << bits) - 1);
}

std::uint64_t extend_sign(std::uint64_t value, std::uint32_t bits) noexcept {
  const std::uint64_t sign = std::uint64_t{1} << (bits - 1);
  return (value ^ sign) - sign;
}

constexpr std::uint64_t align_up(std::uint64_t at, std::uint64_t alignment) noexcept {
  return (at + alignment - 1) & ~(alignment - 1);
}

std::uint64_t widen(std::uint64_t bits) noexcept {
  return std::bit_cast<std::uint64_t>(
      static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(bits))));
}

bool chosen(const Variant::Choice& choice, std::uint64_t value, bool is_signed) noexcept {
  if (is_signed) {
    const auto number = static_cast<std::int64_t>(value);
    return static_cast<std::int64_t>(choice.lowest) <= number &&
           number <= static_cast<std::int64_t>(choice.highest);
  }
  return choice.lowest <= value && value <= choice.highest;
}

bool execute(const Code& code, Procedure procedure, Cursor& cursor, std::uint64_t* slots);

bool fail(Cursor& cursor, Failure failure) noexcept {
  cursor.failure = failure;
  return false;
}

// An array or sequence of bytes; copied if the bytes are not aligned to whole bytes.
bool execute_bytes(const Elements& elements, bool big, Cursor& cursor, std::uint64_t* place) {
  const std::uint64_t length =
      elements.length ? cursor.frames[elements.length->frame][elements.length->slot] : elements.fixed;
  if (cursor.at > cursor.end || length > (cursor.end - cursor.at) / 8)
    return fail(cursor, Failure::beyond_end);
  const std::uint8_t* bytes = cursor.data + (cursor.at >> 3U);
  if (place != nullptr) {
    if ((cursor.at & 7U) != 0 && length != 0) {
      auto* copy = reinterpret_cast<std::uint8_t*>(cursor.memory->allocate((length + 7) / 8));
      if (copy == nullptr) return fail(cursor, Failure::too_many_elements);
      for (std::uint64_t i = 0; i < length; ++i) {
        copy[i] = static_cast<std::uint8_t>(read_bits(cursor.data, cursor.at + 8 * i, 8, big));
      }
      bytes = copy;
    }
    place[0] = reinterpret_cast<std::uint64_t>(bytes);
    place[1] = length;
  }
  cursor.at += 8 * length;
  return true;
}

bool execute_elements(const Code& code, const Elements& elements, Cursor& cursor, std::uint64_t* place) {
  const std::uint64_t count =
      elements.length ? cursor.frames[elements.length->frame][elements.length->slot] : elements.fixed;
  if (cursor.at > cursor.end) return fail(cursor, Failure::beyond_end);
  const std::uint64_t room = cursor.end - cursor.at;
  if (elements.minimum_bits != 0 && count > room / elements.minimum_bits)
    return fail(cursor, Failure::beyond_end);
  if (elements.minimum_bits == 0 && count > room + kMostWithoutRoom)
    return fail(cursor, Failure::too_many_elements);
  const bool store = place != nullptr;
  // Unwanted elements share one frame, as lengths inside them may refer to its fields.
  const std::uint64_t kept = store ? count : std::min<std::uint64_t>(count, 1);
  if (elements.width != 0 && kept > ElementMemory::kMaximum / elements.width) {
    return fail(cursor, Failure::too_many_elements);
  }
  std::uint64_t* memory = cursor.memory->allocate(kept * elements.width);
  if (memory == nullptr) return fail(cursor, Failure::too_many_elements);
  if (store) {
    place[0] = reinterpret_cast<std::uint64_t>(memory);
    place[1] = count;
  }
  if (elements.integer_bits != 0) {
    for (std::uint64_t i = 0; i < count; ++i) {
      cursor.at = align_up(cursor.at, elements.integer_alignment);
      if (cursor.at + elements.integer_bits > cursor.end) return fail(cursor, Failure::beyond_end);
      if (store) {
        const std::uint64_t value = read_bits(cursor.data, cursor.at, elements.integer_bits, elements.big);
        memory[i] = elements.is_signed ? extend_sign(value, elements.integer_bits) : value;
      }
      cursor.at += elements.integer_bits;
    }
    return true;
  }
  const std::uint64_t operations = 1 + elements.element.end - elements.element.first;
  if (count > cursor.work / operations) return fail(cursor, Failure::too_much_work);
  cursor.work -= count * operations;
  const std::uint64_t* outer = cursor.frames[elements.frame];
  for (std::uint64_t i = 0; i < count; ++i) {
    // Elements without slots count as one slot each, so that kMaximum bounds them, too.
    if (elements.width == 0 && cursor.memory->allocate(1) == nullptr) {
      return fail(cursor, Failure::too_many_elements);
    }
    std::uint64_t* element = store ? memory + i * elements.width : memory;
    cursor.frames[elements.frame] = element;
    if (!execute(code, elements.element, cursor, element)) return false;
  }
  cursor.frames[elements.frame] = outer;
  return true;
}

[[gnu::always_inline]] inline void execute_plain_load(const Load& load, const std::uint8_t* place,
                                                      std::uint64_t* slots) noexcept {
  const std::uint64_t value = load_little(place + load.byte) & load.mask;
  slots[load.slot] = (value ^ load.sign) - load.sign;
}

inline void execute_bytes(const Code& code, const Run& run, const std::uint8_t* place,
                          std::uint64_t* slots) noexcept {
  const ByteField* bytes_end = code.byte_fields.data() + run.bytes_end;
  for (const ByteField* bytes = code.byte_fields.data() + run.first_bytes; bytes != bytes_end; ++bytes) {
    slots[bytes->slot] = reinterpret_cast<std::uint64_t>(place + bytes->byte);
    slots[bytes->slot + 1] = bytes->length;
  }
}

// A run of only plain loads, padded to a multiple of kLoadsAtOnce.
[[gnu::always_inline]] inline void execute_full_run(const Code& code, const Run& run,
                                                    const std::uint8_t* place,
                                                    std::uint64_t* slots) noexcept {
  const Load* load = code.loads.data() + run.first;
  const Load* const end = code.loads.data() + run.plain_end;
  for (; load != end; load += kLoadsAtOnce) {
    for (std::size_t i = 0; i < kLoadsAtOnce; ++i) execute_plain_load(load[i], place, slots);
  }
  execute_bytes(code, run, place, slots);
}

[[gnu::always_inline]] inline void execute_run(const Code& code, const Run& run, const std::uint8_t* place,
                                               std::uint64_t* slots) noexcept {
  const Load* load = code.loads.data() + run.first;
  const Load* plain_end = code.loads.data() + run.plain_end;
  for (; load != plain_end; ++load) execute_plain_load(*load, place, slots);
  const Load* little_end = code.loads.data() + run.little_end;
  for (; load != little_end; ++load) {
    const std::uint64_t value = (load_little(place + load->byte) >> load->shift) & load->mask;
    slots[load->slot] = (value ^ load->sign) - load->sign;
  }
  const Load* big_end = code.loads.data() + run.big_end;
  for (; load != big_end; ++load) {
    const std::uint64_t value = (load_big(place + load->byte) >> load->shift) & load->mask;
    slots[load->slot] = (value ^ load->sign) - load->sign;
  }
  execute_bytes(code, run, place, slots);
}

bool execute(const Code& code, Procedure procedure, Cursor& cursor, std::uint64_t* slots) {
  const Operation* const end = code.operations.data() + procedure.end;
  for (const Operation* operation = code.operations.data() + procedure.first; operation != end; ++operation) {
    switch (operation->what) {
      case Do::run: {
        const Run& run = code.runs[operation->index];
        if (cursor.at + run.bits > cursor.end) return fail(cursor, Failure::beyond_end);
        execute_run(code, run, cursor.data + (cursor.at >> 3U), slots);
        cursor.at += run.bits;
        break;
      }
      case Do::align:
        cursor.at = align_up(cursor.at, operation->amount);
        break;
      case Do::skip:
        if (operation->amount > cursor.end || cursor.at + operation->amount > cursor.end) {
          return fail(cursor, Failure::beyond_end);
        }
        cursor.at += operation->amount;
        break;
      case Do::integer: {
        if (cursor.at + operation->bits > cursor.end) return fail(cursor, Failure::beyond_end);
        const std::uint64_t value = read_bits(cursor.data, cursor.at, operation->bits, operation->big);
        slots[operation->slot] = operation->is_signed ? extend_sign(value, operation->bits) : value;
        cursor.at += operation->bits;
        break;
      }
      case Do::text: {
        const std::uint64_t first = cursor.at >> 3U;
        const std::uint64_t limit = cursor.end >> 3U;
        if (first >= limit) return fail(cursor, Failure::no_terminator);
        const std::uint8_t* text = cursor.data + first;
        const auto* zero =
            static_cast<const std::uint8_t*>(std::memchr(text, 0, static_cast<std::size_t>(limit - first)));
        if (zero == nullptr) return fail(cursor, Failure::no_terminator);
        const auto length = static_cast<std::uint64_t>(zero - text);
        if (operation->store) {
          slots[operation->slot] = reinterpret_cast<std::uint64_t>(text);
          slots[operation->slot + 1] = length;
        }
        cursor.at += 8 * (length + 1);
        break;
      }
      case Do::bytes:
        if (!execute_bytes(code.elements[operation->index], operation->big, cursor,
                           operation->store ? slots + operation->slot : nullptr)) {
          return false;
        }
        break;
      case Do::array:
        if (!execute_elements(code, code.elements[operation->index], cursor,
                              operation->store ? slots + operation->slot : nullptr)) {
          return false;
        }
        break;
      case Do::variant: {
        const Options& options = code.options[operation->index];
        const std::uint64_t selector = cursor.frames[options.selector.frame][options.selector.slot];
        const auto choice = std::find_if(
            options.choices.begin(), options.choices.end(),
            [&](const auto& candidate) { return chosen(candidate, selector, options.is_signed); });
        if (choice == options.choices.end()) return fail(cursor, Failure::no_option);
        slots[operation->slot] = choice->option;
        const Procedure& option = options.procedures[choice->option];
        const std::uint64_t operations = option.end - option.first;
        if (operations > cursor.work) return fail(cursor, Failure::too_much_work);
        cursor.work -= operations;
        if (!execute(code, option, cursor, slots)) return false;
        break;
      }
      case Do::clock:
        cursor.cycles = advance_clock(cursor.cycles, slots[operation->slot], operation->bits);
        break;
      case Do::id:
        cursor.id = slots[operation->slot];
        break;
      case Do::widen:
        slots[operation->slot] = widen(slots[operation->slot]);
        break;
    }
  }
  // A final alignment may have moved the cursor beyond the packet.
  return cursor.at <= cursor.end || fail(cursor, Failure::beyond_end);
}

// A position as far as it is known before decoding: position % modulus == remainder.
struct Place {
  std::uint64_t modulus = 1;  // a power of two
  std::uint64_t remainder = 0;

  [[nodiscard]] bool on_whole_byte() const noexcept { return modulus >= 8 && remainder % 8 == 0; }
  void advance(std::uint64_t bits) noexcept { remainder = (remainder + bits) & (modulus - 1); }
  [[nodiscard]] static Place either(const Place& one, const Place& other) noexcept {
    std::uint64_t modulus = std::min(one.modulus, other.modulus);
    while (((one.remainder - other.remainder) & (modulus - 1)) != 0) modulus /= 2;
    return {modulus, one.remainder & (modulus - 1)};
  }
};

constexpr Place kWholeByte{8, 0};
constexpr Place kAnywhere{1, 0};
constexpr std::uint64_t kLongestRun = std::uint64_t{1} << 30U;
class Compiler {
 public:
  using Scopes = std::array<const FieldLayout*, kScopes>;

  // `clock`: fields mapped to it, outside the payload, are the event's time. `named_time`: the header's
  // "timestamp" is the time even if it is not mapped to a clock.
  Compiler(Code& code, const Scopes& scopes, std::optional<std::uint32_t> clock, bool named_time)
      : code_(code), scopes_(scopes), clock_(clock), named_time_(named_time) {}

  // Compiles the scopes, in order, into one procedure. With `skip` it stores only fields that lengths or
  // selectors refer to, as found by an earlier compilation without `skip`. `spare_slot`: target of padding loads.
  Procedure compile(std::initializer_list<Scope> scopes, Place place, bool skip,
                    std::optional<std::uint32_t> spare_slot = std::nullopt) {
    skip_ = skip;
    spare_slot_ = spare_slot;
    Body body;
    body.place = place;
    for (const Scope scope : scopes) {
      const FieldLayout* root = scopes_[static_cast<std::size_t>(scope)];
      if (root == nullptr) continue;
      scope_ = scope;
      frame_ = base_frame(scope);
      field(body, *root);
    }
    return commit(body);
  }

  [[nodiscard]] bool has_clock() const noexcept { return has_clock_; }
  [[nodiscard]] bool uses_packet() const noexcept { return uses_packet_; }

 private:
  struct Body {
    std::vector<Operation> operations;
    Place place;
    bool open = false;            // a run is open
    std::uint64_t run_start = 0;  // bit in the run's first byte
    std::uint64_t run_bits = 0;
    std::vector<Load> plain, little, big;
    std::vector<ByteField> byte_fields;
    std::vector<Operation> after_run;
  };

  static std::uint32_t base_frame(Scope scope) noexcept {
    return scope == Scope::packet_header || scope == Scope::packet_context ? 0 : 1;
  }

  template <typename T>
  static std::uint32_t size_of(const std::vector<T>& all) noexcept {
    return static_cast<std::uint32_t>(all.size());
  }
  // Moves the contents of `more` to the end of `all` and returns the new size of `all`.
  template <typename T>
  static std::uint32_t append(std::vector<T>& all, std::vector<T>& more) {
    all.insert(all.end(), more.begin(), more.end());
    more.clear();
    return size_of(all);
  }

  static bool open_run(Body& body) {
    if (!body.open && body.place.modulus >= 8) {
      body.open = true;
      body.run_start = body.place.remainder % 8;
      body.run_bits = 0;
    }
    return body.open;
  }

  void close_run(Body& body) {
    if (!body.open) return;
    body.open = false;
    if (body.run_bits != 0 || !body.byte_fields.empty()) {
      if (spare_slot_) {
        Load nothing;
        nothing.slot = *spare_slot_;
        while (body.plain.size() % kLoadsAtOnce != 0) body.plain.push_back(nothing);
      }
      Run run;
      run.bits = body.run_bits;
      run.first = size_of(code_.loads);
      run.plain_end = append(code_.loads, body.plain);
      run.little_end = append(code_.loads, body.little);
      run.big_end = append(code_.loads, body.big);
      run.first_bytes = size_of(code_.byte_fields);
      run.bytes_end = append(code_.byte_fields, body.byte_fields);
      body.operations.push_back({.what = Do::run, .index = static_cast<std::uint32_t>(code_.runs.size())});
      code_.runs.push_back(run);
    }
    append(body.operations, body.after_run);
  }

  Procedure commit(Body& body) {
    close_run(body);
    const std::uint32_t first = size_of(code_.operations);
    return {first, append(code_.operations, body.operations)};
  }

  // Adds an operation that uses loaded values, hence after the loads of the open run.
  static void use(Body& body, const Operation& operation) {
    (body.open ? body.after_run : body.operations).push_back(operation);
  }

  void align(Body& body, std::uint64_t alignment) {
    if (!std::has_single_bit(alignment)) {
      throw MetadataError("an alignment of " + std::to_string(alignment) + " bits is no power of two");
    }
    if (alignment <= body.place.modulus) {
      const std::uint64_t beyond = body.place.remainder & (alignment - 1);
      if (beyond != 0) advance(body, alignment - beyond);
      return;
    }
    close_run(body);
    body.operations.push_back({.what = Do::align, .amount = alignment});
    body.place = {alignment, 0};
  }

  void advance(Body& body, std::uint64_t bits) {
    if (bits == 0) return;
    if (body.open && body.run_bits + bits > kLongestRun) close_run(body);
    if (bits <= kLongestRun && open_run(body)) {
      body.run_bits += bits;
    } else {
      close_run(body);
      body.operations.push_back({.what = Do::skip, .amount = bits});
    }
    body.place.advance(bits);
  }

  void load(Body& body, std::uint32_t bits, bool is_signed, bool big, std::uint32_t slot) {
    if (body.open && body.run_bits + bits > kLongestRun) close_run(body);
    if (open_run(body)) {
      const std::uint64_t position = body.run_start + body.run_bits;
      const auto shift = static_cast<std::uint32_t>(position % 8);
      if (shift + bits <= 64) {
        Load load;
        load.byte = static_cast<std::uint32_t>(position / 8);
        load.slot = slot;
        load.shift = big ? 64 - bits - shift : shift;
        load.mask = bits == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
        load.sign = is_signed ? std::uint64_t{1} << (bits - 1) : 0;
        (big ? body.big : shift != 0 ? body.little : body.plain).push_back(load);
        body.run_bits += bits;
        body.place.advance(bits);
        return;
      }
      close_run(body);
    }
    body.operations.push_back({.what = Do::integer,
                               .bits = static_cast<std::uint8_t>(bits),
                               .is_signed = is_signed,
                               .big = big,
                               .slot = slot});
    body.place.advance(bits);
  }

  [[nodiscard]] bool is_wanted(std::uint32_t slot) const {
    return !skip_ || needed_.count({frame_, slot}) != 0;
  }

  void field(Body& body, const FieldLayout& layout) {
    std::visit([&](const auto& kind) { compile(body, layout, kind); }, layout.type->kind);
  }

  void compile(Body& body, const FieldLayout& layout, const Integer& integer) {
    if (integer.size < 1 || integer.size > 64) {
      throw MetadataError("an integer has " + std::to_string(integer.size) + " bits; 1 to 64 can be read");
    }
    align(body, layout.type->alignment);
    const bool in_event = base_frame(scope_) == 1;
    const bool directly = frame_ == base_frame(scope_);
    const bool is_time = in_event && directly && scope_ != Scope::payload && is_time_field(layout, integer);
    const bool is_id = directly && ((scope_ == Scope::event_header && layout.name == "id") ||
                                    (scope_ == Scope::packet_header && layout.name == "stream_id"));
    if (!is_time && !is_id && !is_wanted(layout.slot)) {
      advance(body, integer.size);
      return;
    }
    load(body, integer.size, integer.is_signed, integer.order == ByteOrder::big, layout.slot);
    has_clock_ = has_clock_ || is_time;
    const auto bits = static_cast<std::uint8_t>(integer.size);
    if (is_time) use(body, {.what = Do::clock, .bits = bits, .slot = layout.slot});
    if (is_id) use(body, {.what = Do::id, .slot = layout.slot});
  }

  [[nodiscard]] bool is_time_field(const FieldLayout& layout, const Integer& integer) const {
    if (integer.clock) return integer.clock == clock_;
    return named_time_ && scope_ == Scope::event_header && !integer.is_signed && layout.name == "timestamp";
  }

  void compile(Body& body, const FieldLayout& layout, const Enumeration& enumeration) {
    compile(body, layout, enumeration.integer);
  }

  void compile(Body& body, const FieldLayout& layout, const Float& real) {
    align(body, layout.type->alignment);
    const std::uint32_t bits = real.exponent_bits + real.mantissa_bits;
    if (!(real.exponent_bits == 8 && bits == 32) && !(real.exponent_bits == 11 && bits == 64)) {
      throw MetadataError("a floating-point number has " + std::to_string(real.exponent_bits) + " + " +
                          std::to_string(real.mantissa_bits) + " bits; 8 + 24 and 11 + 53 can be read");
    }
    if (!is_wanted(layout.slot)) {
      advance(body, bits);
      return;
    }
    load(body, bits, false, real.order == ByteOrder::big, layout.slot);
    if (bits == 32) use(body, {.what = Do::widen, .slot = layout.slot});
  }

  void compile(Body& body, const FieldLayout& layout, const Text& /*text*/) {
    align(body, 8);
    close_run(body);
    body.operations.push_back({.what = Do::text, .store = !skip_, .slot = layout.slot});
    body.place = kWholeByte;
  }

  void compile(Body& body, const FieldLayout& layout, const Array& array) {
    elements(body, layout, *array.element, array.length, nullptr);
  }

  void compile(Body& body, const FieldLayout& layout, const Sequence& sequence) {
    elements(body, layout, *sequence.element, 0, &sequence.length);
  }

  void elements(Body& body, const FieldLayout& layout, const FieldType& element, std::uint64_t fixed,
                const FieldPath* length) {
    align(body, element.alignment);
    Elements elements;
    if (length != nullptr) elements.length = resolve(*length);
    elements.fixed = fixed;
    elements.minimum_bits = element.minimum_bits;
    elements.width = layout.children.front().width;
    elements.frame = frame_ + 1;
    if (elements.frame >= kFrames) throw MetadataError("arrays are nested too deeply");

    const Integer* const integer = integer_of(element);
    Operation operation{.what = layout.bytes ? Do::bytes : Do::array,
                        .big = integer != nullptr && integer->order == ByteOrder::big,
                        .store = !skip_,
                        .slot = layout.slot};
    if (layout.bytes && length == nullptr && fixed <= kLongestRun / 8 && body.place.on_whole_byte()) {
      bytes_in_run(body, layout.slot, fixed);
      return;
    }
    close_run(body);
    const Place start = body.place;
    if (layout.bytes) {
      body.place = Place::either(start, {8, start.remainder % 8});
    } else {
      if (integer != nullptr) {
        elements.integer_bits = integer->size;
        elements.integer_alignment = element.alignment;
        elements.is_signed = integer->is_signed;
        elements.big = operation.big;
      }
      Body inner;
      // An element may start at any position that its alignment allows.
      inner.place = kAnywhere;
      ++frame_;
      const auto spare_slot = std::exchange(spare_slot_, std::nullopt);
      align(inner, element.alignment);
      field(inner, layout.children.front());
      elements.element = commit(inner);
      spare_slot_ = spare_slot;
      --frame_;
      body.place = Place::either(start, inner.place);
    }
    operation.index = size_of(code_.elements);
    code_.elements.push_back(elements);
    body.operations.push_back(operation);
  }

  void bytes_in_run(Body& body, std::uint32_t slot, std::uint64_t length) {
    const std::uint64_t bits = 8 * length;
    if (body.open && body.run_bits + bits > kLongestRun) close_run(body);
    open_run(body);
    if (!skip_) {
      ByteField bytes;
      bytes.byte = static_cast<std::uint32_t>((body.run_start + body.run_bits) / 8);
      bytes.slot = slot;
      bytes.length = length;
      body.byte_fields.push_back(bytes);
    }
    body.run_bits += bits;
    body.place.advance(bits);
  }

  void compile(Body& body, const FieldLayout& layout, const Structure& /*structure*/) {
    align(body, layout.type->alignment);
    for (const auto& child : layout.children) field(body, child);
  }

  void compile(Body& body, const FieldLayout& layout, const Variant& variant) {
    close_run(body);
    Options options;
    options.selector = resolve(variant.selector);
    options.is_signed = variant.selector_is_signed;
    options.choices = variant.choices;
    for (const auto& choice : options.choices) {
      if (choice.option >= layout.children.size()) throw MetadataError("a variant's choice names no option");
    }
    std::optional<Place> end;
    for (const auto& option : layout.children) {
      Body inner;
      inner.place = body.place;
      field(inner, option);
      options.procedures.push_back(commit(inner));
      end = end ? Place::either(*end, inner.place) : inner.place;
    }
    body.operations.push_back({.what = Do::variant, .slot = layout.slot, .index = size_of(code_.options)});
    code_.options.push_back(std::move(options));
    if (end) body.place = *end;
  }

  Reference resolve(const FieldPath& path) {
    const FieldLayout* node = scopes_[static_cast<std::size_t>(path.scope)];
    std::uint32_t frame = base_frame(path.scope);
    if (node == nullptr) throw MetadataError("a length or selector refers to a scope that has no fields");
    for (const std::uint32_t index : path.indices) {
      while (node->kind == FieldKind::array || node->kind == FieldKind::sequence) {
        node = &node->children.front();
        ++frame;
      }
      if (index >= node->children.size()) throw MetadataError("a length or selector refers to no field");
      node = &node->children[index];
    }
    if (node->kind != FieldKind::integer && node->kind != FieldKind::enumeration) {
      throw MetadataError("a length or selector refers to \"" + node->name + "\", which is no integer");
    }
    const bool in_packet = base_frame(path.scope) == 0;
    const std::uint32_t highest = in_packet && base_frame(scope_) == 1 ? 0 : frame_;
    if (frame > highest) throw MetadataError("a length or selector refers into elements of another array");
    if (in_packet) uses_packet_ = true;
    needed_.insert({frame, node->slot});
    return {frame, node->slot};
  }

  Code& code_;
  Scopes scopes_;
  std::optional<std::uint32_t> clock_;
  bool named_time_ = false;
  bool skip_ = false;
  std::optional<std::uint32_t> spare_slot_;
  Scope scope_ = Scope::payload;
  std::uint32_t frame_ = 1;
  bool has_clock_ = false;
  bool uses_packet_ = false;
  std::set<std::pair<std::uint32_t, std::uint32_t>> needed_;  // frame and slot
};

const FieldLayout* pointer_to(const std::optional<FieldLayout>& layout) noexcept {
  return layout ? &*layout : nullptr;
}

// Clock of the first mapped field of the type, not counting elements of arrays.
std::optional<std::uint32_t> first_clock(const FieldType* type, int depth = 0) {
  if (type == nullptr || depth > 100) return std::nullopt;
  if (const auto* integer = integer_of(*type)) return integer->clock;
  const std::vector<NamedField>* fields = nullptr;
  if (const auto* structure = std::get_if<Structure>(&type->kind)) fields = &structure->fields;
  if (const auto* variant = std::get_if<Variant>(&type->kind)) fields = &variant->options;
  if (fields == nullptr) return std::nullopt;
  for (const auto& field : *fields) {
    if (const auto clock = first_clock(field.type.get(), depth + 1)) return clock;
  }
  return std::nullopt;
}

}  // namespace

PacketDecoder::PacketDecoder(const Metadata& metadata, const StreamClass* stream) {
  if (metadata.packet_header) {
    header_ = make_layout("packet header", *metadata.packet_header, slots_);
    slots_ += header_->width;
  }
  if (stream != nullptr && stream->packet_context) {
    context_ = make_layout("packet context", *stream->packet_context, slots_);
    slots_ += context_->width;
  }
  Compiler::Scopes scopes{};
  scopes[static_cast<std::size_t>(Scope::packet_header)] = header();
  scopes[static_cast<std::size_t>(Scope::packet_context)] = context();
  Compiler compiler(code_, scopes, std::nullopt, false);
  // The start of a packet satisfies every alignment, as alignment is relative to it.
  procedure_ =
      compiler.compile({Scope::packet_header, Scope::packet_context}, {std::uint64_t{1} << 32U, 0}, false);
}

bool PacketDecoder::decode(Cursor& cursor, std::uint64_t* slots) const {
  cursor.at = 0;
  cursor.frames[0] = slots;
  return execute(code_, procedure_, cursor, slots);
}

PacketFields PacketDecoder::fields(const std::uint64_t* slots) const {
  PacketFields result;
  const auto value = [&](const std::optional<FieldLayout>& scope,
                         const char* name) -> std::optional<std::uint64_t> {
    const auto* field = scope ? scope->child(name) : nullptr;
    if (field == nullptr || (field->kind != FieldKind::integer && field->kind != FieldKind::enumeration)) {
      return std::nullopt;
    }
    return slots[field->slot];
  };
  const auto bits = [&](const char* name) -> std::uint32_t {
    const auto* field = context_ ? context_->child(name) : nullptr;
    const auto* integer = field != nullptr ? integer_of(*field->type) : nullptr;
    return integer != nullptr ? integer->size : 64;
  };
  result.magic = value(header_, "magic");
  result.stream_class = value(header_, "stream_id");
  result.instance = value(header_, "stream_instance_id");
  if (const auto* field = header_ ? header_->child("uuid") : nullptr; field != nullptr && field->bytes) {
    if (slots[field->slot + 1] == sizeof(Uuid)) {
      Uuid uuid{};
      std::memcpy(uuid.data(), reinterpret_cast<const void*>(slots[field->slot]), uuid.size());
      result.uuid = uuid;
    }
  }
  result.begin_cycles = value(context_, "timestamp_begin");
  result.end_cycles = value(context_, "timestamp_end");
  result.begin_bits = bits("timestamp_begin");
  result.end_bits = bits("timestamp_end");
  result.content_bits = value(context_, "content_size");
  result.packet_bits = value(context_, "packet_size");
  result.events_discarded = value(context_, "events_discarded");
  result.sequence_number = value(context_, "packet_seq_num");
  result.cpu = value(context_, "cpu_id");
  return result;
}

std::optional<std::uint32_t> Decoder::clock_of(const StreamClass& stream) {
  for (const auto* type : {stream.event_header.get(), stream.event_context.get()}) {
    if (const auto clock = first_clock(type)) return clock;
  }
  for (const auto& [id, event] : stream.events) {
    if (const auto clock = first_clock(event->context.get())) return clock;
  }
  return first_clock(stream.packet_context.get());
}

Decoder::Decoder(const Metadata& metadata, const StreamClass& stream, std::span<const EventLayout> layouts,
                 std::uint32_t first_class, std::optional<std::uint32_t> clock)
    : packet_(metadata, &stream) {
  std::optional<FieldLayout> header;
  if (stream.event_header) {
    header = make_layout("header", *stream.event_header, 0);
    header_alignment_ = stream.event_header->alignment;
    slots_ = header->width;
  }
  Compiler::Scopes scopes{};
  scopes[static_cast<std::size_t>(Scope::packet_header)] = packet_.header();
  scopes[static_cast<std::size_t>(Scope::packet_context)] = packet_.context();
  scopes[static_cast<std::size_t>(Scope::event_header)] = pointer_to(header);
  const bool named_time = metadata.clocks.size() <= 1;
  {
    Compiler compiler(code_, scopes, clock, named_time);
    header_procedure_ = compiler.compile({Scope::event_header}, kAnywhere, false);
    has_clock_ = compiler.has_clock();
    uses_packet_ = compiler.uses_packet();
  }
  bool has_id = false;
  for (const auto& operation : code_.operations) has_id = has_id || operation.what == Do::id;

  for (const auto& layout : layouts) slots_ = std::max(slots_, layout.slots);
  const std::uint32_t spare_slot = slots_++;
  classes_end_ = first_class + static_cast<std::uint32_t>(layouts.size());
  std::uint32_t class_index = first_class;
  for (const auto& layout : layouts) {
    scopes[static_cast<std::size_t>(Scope::stream_event_context)] = pointer_to(layout.stream_context);
    scopes[static_cast<std::size_t>(Scope::event_context)] = pointer_to(layout.context);
    scopes[static_cast<std::size_t>(Scope::payload)] = pointer_to(layout.payload);
    Compiler compiler(code_, scopes, clock, named_time);
    const auto body = {Scope::stream_event_context, Scope::event_context, Scope::payload};
    ClassCode code;
    code.class_index = class_index++;
    code.full[0] = compiler.compile(body, kAnywhere, false);
    code.full[1] = compiler.compile(body, kWholeByte, false, spare_slot);
    code.skip[0] = compiler.compile(body, kAnywhere, true);
    code.skip[1] = compiler.compile(body, kWholeByte, true);
    const auto [first, end] = code.skip[1];
    if (first == end) {
      code.skip_is_one_step = true;
    } else if (end == first + 1 && code_.operations[first].what == Do::run) {
      const Run& run = code_.runs[code_.operations[first].index];
      code.skip_is_one_step = run.first == run.big_end;
      code.skip_bits = run.bits;
    }
    has_clock_ = has_clock_ || compiler.has_clock();
    uses_packet_ = uses_packet_ || compiler.uses_packet();
    classes_.push_back(code);
  }

  for (std::size_t i = 0; i < layouts.size(); ++i) {
    ClassCode& code = classes_[i];
    const auto [first, end] = code.full[1];
    if (end == first + 1 && code_.operations[first].what == Do::run) {
      code.run = &code_.runs[code_.operations[first].index];
      code.is_one_run = code.run->plain_end == code.run->big_end;
    }
    const Known known{&code, code.is_one_run ? code.run->bits : 0};
    const std::uint64_t id = layouts[i].event_class->id;
    if (id < std::uint64_t{1} << 16U) {
      if (by_small_id_.size() <= id) by_small_id_.resize(static_cast<std::size_t>(id) + 1);
      by_small_id_[static_cast<std::size_t>(id)] = known;
      plain_.resize(by_small_id_.size());
      if (code.is_one_run && code.run->bits % 8 == 0) {
        plain_[static_cast<std::size_t>(id)] = {code.run->bits / 8, code.class_index, layouts[i].slots, code.run};
      }
    } else {
      by_large_id_.emplace(id, known);
    }
  }
  if (!has_id && classes_.size() == 1) {
    only_ = {classes_.data(), classes_[0].is_one_run ? classes_[0].run->bits : 0};
  }
  recognise_header(stream);
  if (header_ == Header::large) finish_plain<true>();
  if (header_ == Header::compact) finish_plain<false>();
}

// Recognises LTTng's two event headers: an enumeration `id` selects `compact`, with a short time stamp, or
// `extended`, with the full id and time stamp.
void Decoder::recognise_header(const StreamClass& stream) {
  const auto* structure = stream.event_header ? std::get_if<Structure>(&stream.event_header->kind) : nullptr;
  if (structure == nullptr || header_alignment_ != 8 || structure->fields.size() != 2 || !has_clock_) return;
  const auto* id = std::get_if<Enumeration>(&structure->fields[0].type->kind);
  const auto* variant = std::get_if<Variant>(&structure->fields[1].type->kind);
  if (id == nullptr || variant == nullptr || structure->fields[0].name != "id") return;
  if (variant->options.size() != 2 || variant->choices.size() != 2 || variant->selector_is_signed) return;
  if (variant->selector.scope != Scope::event_header ||
      variant->selector.indices != std::vector<std::uint32_t>{0})
    return;

  const auto fields_of = [](const FieldType& type) -> const std::vector<NamedField>* {
    const auto* option = std::get_if<Structure>(&type.kind);
    return option != nullptr ? &option->fields : nullptr;
  };
  const auto* compact = fields_of(*variant->options[0].type);
  const auto* extended = fields_of(*variant->options[1].type);
  if (compact == nullptr || extended == nullptr || compact->size() != 1 || extended->size() != 2) return;
  // A little-endian unsigned integer whose alignment adds no padding at its position.
  const auto is_plain = [](const FieldType& type, std::uint32_t bits, std::uint32_t alignment) {
    const auto* integer = integer_of(type);
    return integer != nullptr && integer->size == bits && integer->alignment <= alignment &&
           !integer->is_signed && integer->order == ByteOrder::little;
  };
  const auto is_time = [&](const NamedField& field) {
    const auto* integer = integer_of(*field.type);
    return field.name == "timestamp" && integer != nullptr && integer->clock.has_value() &&
           integer->clock == clock_of(stream);
  };
  if (!is_time((*compact)[0]) || !is_time((*extended)[1]) || (*extended)[0].name != "id") return;
  if (!is_plain(*(*extended)[0].type, 32, 8) || !is_plain(*(*extended)[1].type, 64, 8)) return;

  const auto chooses = [&](std::uint64_t last) {
    const auto& choices = variant->choices;
    return choices[0].option == 0 && choices[0].lowest == 0 && choices[0].highest == last - 1 &&
           choices[1].option == 1 && choices[1].lowest == last && choices[1].highest == last;
  };
  const std::uint64_t compact_alignment = variant->options[0].type->alignment;
  const std::uint64_t extended_alignment = variant->options[1].type->alignment;
  const FieldType& short_id = *structure->fields[0].type;
  const FieldType& short_time = *(*compact)[0].type;
  if (is_plain(short_id, 16, 8) && is_plain(short_time, 32, 8) && compact_alignment <= 8 &&
      extended_alignment <= 8 && chooses(65535)) {
    header_ = Header::large;
  } else if (is_plain(short_id, 5, 8) && is_plain(short_time, 27, 1) && compact_alignment == 1 &&
             extended_alignment == 8 && chooses(31)) {
    header_ = Header::compact;
  }
}

bool Decoder::can_read_in_place(std::uint32_t class_index) const noexcept {
  const auto code = std::ranges::find(classes_, class_index, &ClassCode::class_index);
  return code != classes_.end() && code->is_one_run && has_special_header();
}

std::optional<FieldPlace> Decoder::place_of(std::uint32_t class_index, std::uint32_t slot) const noexcept {
  if (!can_read_in_place(class_index)) return std::nullopt;
  const Run& run = *std::ranges::find(classes_, class_index, &ClassCode::class_index)->run;
  for (const Load& load : std::span(code_.loads).subspan(run.first, run.plain_end - run.first)) {
    // Padding loads have no mask.
    if (load.slot == slot && load.mask != 0) return FieldPlace{.byte = load.byte, .mask = load.mask, .sign = load.sign};
  }
  for (const ByteField& bytes : std::span(code_.byte_fields).subspan(run.first_bytes, run.bytes_end - run.first_bytes)) {
    if (bytes.slot == slot)
      return FieldPlace{.byte = bytes.byte, .length = static_cast<std::uint32_t>(bytes.length)};
  }
  return std::nullopt;
}

inline Decoder::Known Decoder::find(std::uint64_t id) const noexcept {
  if (only_.code != nullptr) return only_;
  if (id < by_small_id_.size()) return by_small_id_[static_cast<std::size_t>(id)];
  const auto found = by_large_id_.find(id);
  return found == by_large_id_.end() ? Known{} : found->second;
}

namespace {

// LTTng's two event headers: an id and a short time stamp; or the id kExtended, padding to a whole byte, the full
// id (32 bits) and the full time stamp (64 bits).
template <bool kLarge>
struct LttngHeader {
  static constexpr std::uint32_t kIdBits = kLarge ? 16 : 5;
  static constexpr std::uint32_t kStampBits = kLarge ? 32 : 27;
  static constexpr std::uint64_t kBits = kIdBits + kStampBits;
  static constexpr std::uint64_t kExtended = (std::uint64_t{1} << kIdBits) - 1;
  static constexpr std::uint64_t kBeforeWholeId = kLarge ? 16 : 8;
  static constexpr std::uint64_t kExtendedBits = kBeforeWholeId + 32 + 64;

  static std::uint64_t id_of(std::uint64_t word) noexcept { return word & kExtended; }
  static std::uint64_t stamp_of(std::uint64_t word) noexcept {
    return (word >> kIdBits) & ((std::uint64_t{1} << kStampBits) - 1);
  }
};

template <bool kLarge>
[[gnu::always_inline]] inline bool decode_lttng_header(Cursor& cursor, std::uint64_t* slots) noexcept {
  using Header = LttngHeader<kLarge>;
  cursor.at = align_up(cursor.at, 8);
  const std::uint8_t* place = cursor.data + (cursor.at >> 3U);
  const std::uint64_t word = load_little(place);
  if (cursor.at + Header::kBits > cursor.end) return fail(cursor, Failure::beyond_end);
  slots[0] = Header::id_of(word);
  if (slots[0] != Header::kExtended) {
    slots[1] = 0;
    slots[2] = Header::stamp_of(word);
    cursor.id = slots[0];
    cursor.cycles = advance_clock(cursor.cycles, slots[2], Header::kStampBits);
    cursor.at += Header::kBits;
    return true;
  }
  if (cursor.at + Header::kExtendedBits > cursor.end) return fail(cursor, Failure::beyond_end);
  slots[1] = 1;
  slots[2] = (word >> Header::kBeforeWholeId) & 0xFFFFFFFFU;
  slots[3] = load_little(place + Header::kBeforeWholeId / 8 + 4);
  cursor.id = slots[2];
  cursor.cycles = slots[3];
  cursor.at += Header::kExtendedBits;
  return true;
}

}  // namespace

template <bool kLarge>
void Decoder::finish_plain() {
  using Lttng = LttngHeader<kLarge>;
  for (Plain& plain : plain_) {
    if (plain.run != nullptr) plain.bytes += Lttng::kBits / 8;
  }
  if (plain_.size() > Lttng::kExtended) plain_[Lttng::kExtended] = {};
}

[[gnu::always_inline]] inline bool Decoder::decode_header(Cursor& cursor, std::uint64_t* slots) const {
  if (header_ == Header::large) return decode_lttng_header<true>(cursor, slots);
  if (header_ == Header::compact) return decode_lttng_header<false>(cursor, slots);
  return execute(code_, header_procedure_, cursor, slots);
}

Decoder::Step Decoder::next(Cursor& cursor, std::uint64_t* slots, const std::uint8_t* wanted,
                            Seen& seen) const {
  cursor.frames[1] = slots;
  while (true) {
    const std::uint64_t start = cursor.at;
    const std::uint64_t cycles = cursor.cycles;
    if (align_up(start, header_alignment_) >= cursor.end) {
      cursor.at = cursor.end;
      return Step::end;
    }
    const auto failed = [&](Failure failure) {
      cursor.failure = failure;
      cursor.at = start;
      cursor.cycles = cycles;
      return Step::failed;
    };
    if (!decode_header(cursor, slots)) return failed(cursor.failure);
    if (cursor.cycles > cursor.latest) return failed(Failure::after_packet);
    const Known known = find(cursor.id);
    const ClassCode* const code = known.code;
    if (code == nullptr) return failed(Failure::unknown_event);
    const bool is_wanted = wanted[code->class_index] != kPass;
    cursor.body = nullptr;
    const auto whole_byte = static_cast<std::size_t>((cursor.at & 7U) == 0);
    if (is_wanted && code->is_one_run && whole_byte != 0) {
      const std::uint8_t* const place = cursor.data + (cursor.at >> 3U);
      cursor.at += known.run_bits;
      if (cursor.at > cursor.end) return failed(Failure::beyond_end);
      if (wanted[code->class_index] == kInPlace) {
        cursor.body = place;
      } else {
        execute_full_run(code_, *code->run, place, slots);
      }
    } else if (is_wanted) {
      if (!execute(code_, code->full[whole_byte], cursor, slots)) return failed(cursor.failure);
    } else if (code->skip_is_one_step && whole_byte != 0) {
      if (cursor.at + code->skip_bits > cursor.end) return failed(Failure::beyond_end);
      cursor.at += code->skip_bits;
    } else {
      cursor.scratch->clear();
      std::swap(cursor.memory, cursor.scratch);
      const bool passed = execute(code_, code->skip[whole_byte], cursor, slots);
      std::swap(cursor.memory, cursor.scratch);
      if (!passed) return failed(cursor.failure);
    }
    if (cursor.at == start) return failed(Failure::empty);

    ++seen.counts[code->class_index];
    const std::uint64_t now = cursor.cycles;
    if (now < seen.last_cycles) {
      seen.before_backwards_cycles = std::max(seen.before_backwards_cycles, seen.last_cycles);
      seen.backwards_cycles = seen.backwards == 0 ? now : std::min(seen.backwards_cycles, now);
      ++seen.backwards;
    }
    seen.last_cycles = now;
    if (!seen.first_cycles) seen.first_cycles = now;
    if (is_wanted) {
      cursor.class_index = code->class_index;
      return Step::event;
    }
  }
}

// Keeps the state that changes with every event in registers, as the step from one event to the next dominates
// the time.
template <bool kLarge>
void Decoder::next_plain(Cursor& cursor, Batch& batch, const std::uint8_t* wanted, Seen& seen) const {
  using Lttng = LttngHeader<kLarge>;
  // Both headers start on whole bytes, and so do the fields after them.
  static_assert(Lttng::kBits % 8 == 0);
  constexpr std::uint64_t kHeader = Lttng::kBits / 8;
  constexpr std::uint64_t kStampMask = (std::uint64_t{1} << Lttng::kStampBits) - 1;
  const std::uint8_t* place = cursor.data + (align_up(cursor.at, 8) >> 3U);
  const std::uint8_t* const end = cursor.data + (cursor.end >> 3U);
  const std::uint64_t latest = cursor.latest;
  const Plain* const classes = plain_.data();
  const std::size_t known = plain_.size();
  std::uint64_t cycles = cursor.cycles;
  std::uint64_t* const counts = seen.counts.data();
  Event* event = batch.events.data() + batch.count;
  Event* const events_end = batch.events.data() + batch.events.size();
  std::uint64_t* slots = batch.slots;
  const std::uint64_t* const last = batch.end - slots_;
  // From here on the clock only advances, so no event of the loop counts as backwards.
  if (cycles < seen.last_cycles || place > end) return;
  bool moved = false;
  while (event != events_end && static_cast<std::uint64_t>(end - place) >= kHeader) {
    const std::uint64_t word = load_little(place);
    const std::uint64_t id = Lttng::id_of(word);
    if (id >= known) break;
    const Plain& plain = classes[id];  // none with the id kExtended is plain
    if (plain.bytes > static_cast<std::uint64_t>(end - place)) break;
    const std::uint64_t stamp = Lttng::stamp_of(word);
    const std::uint64_t now = cycles + ((stamp - cycles) & kStampMask);  // as advance_clock()
    if (now > latest) break;
    const std::uint8_t want = wanted[plain.class_index];
    if (want == kDecode) {
      if (slots > last) break;
      slots[0] = id;
      slots[1] = 0;
      slots[2] = stamp;
      execute_full_run(code_, *plain.run, place + kHeader, slots);
    }
    ++counts[plain.class_index];
    cycles = now;
    moved = true;
    if (want != kPass) {
      event->time_ns = static_cast<std::int64_t>(now);
      event->class_index = plain.class_index;
      event->slots = want == kDecode ? slots : nullptr;
      event->body = want == kDecode ? nullptr : place + kHeader;
      ++event;
      if (want == kDecode) slots += plain.slots;
    }
    place += plain.bytes;
  }
  if (!moved) return;
  cursor.at = 8 * static_cast<std::uint64_t>(place - cursor.data);
  cursor.cycles = cycles;
  seen.last_cycles = cycles;
  batch.count = static_cast<std::size_t>(event - batch.events.data());
  batch.slots = slots;
}

void Decoder::next_plain(Cursor& cursor, Batch& batch, const std::uint8_t* wanted, Seen& seen) const {
  // next() must decode the first event, as it sets seen.first_cycles.
  if (!seen.first_cycles) return;
  if (header_ == Header::large) next_plain<true>(cursor, batch, wanted, seen);
  if (header_ == Header::compact) next_plain<false>(cursor, batch, wanted, seen);
}

}  // namespace perflab::ctf
