// Decodes the events of a stream class.
//
// Types are compiled into procedures: sequences of operations, so that decoding never inspects the types.
// Consecutive fields with offsets known at compilation form a "run": one check against the packet's end, then
// one load per field. The procedures of an event class are compiled twice: for fields that start on a whole
// byte, and for fields that start on any bit.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "ctf/event.h"
#include "ctf/layout.h"
#include "ctf/metadata.h"

namespace perflab::ctf {

// Memory for the elements of sequences. Pointers into it stay valid until clear().
class ElementMemory {
 public:
  // Uninitialised memory of `slots` slots; null if the current event needs more than kMaximum in total.
  [[nodiscard]] std::uint64_t* allocate(std::uint64_t slots);
  void clear() noexcept {
    block_ = 0;
    at_ = 0;
    used_ = 0;
    before_event_ = 0;
  }
  // Restarts the count for kMaximum.
  void begin_event() noexcept { before_event_ = used_; }
  [[nodiscard]] std::size_t used() const noexcept { return used_; }
  [[nodiscard]] std::size_t capacity() const noexcept {
    std::size_t all = 0;
    for (const Block& block : blocks_) all += block.size;
    return all;
  }

  static constexpr std::size_t kMaximum = std::size_t{1} << 24U;

 private:
  struct Block {
    std::unique_ptr<std::uint64_t[]> slots;
    std::size_t size = 0;
  };
  std::vector<Block> blocks_;
  std::size_t block_ = 0;  // current block
  std::size_t at_ = 0;     // first free slot of it
  std::size_t used_ = 0;   // slots in total
  std::size_t before_event_ = 0;
};

enum class Failure : std::uint8_t {
  none,
  beyond_end,
  no_terminator,
  no_option,
  too_many_elements,
  too_much_work,
  unknown_event,
  empty,
  after_packet
};
[[nodiscard]] const char* describe(Failure failure) noexcept;

// Number of slot frames: one for the packet, one for the event, and one for each level of nested arrays.
inline constexpr std::size_t kFrames = 104;

// Limit on decoding work for a packet of `bytes`, because elements of zero size cost time but take no room.
inline constexpr std::uint64_t kLeastWork = std::uint64_t{1} << 20U;
[[nodiscard]] constexpr std::uint64_t work_in(std::uint64_t bytes) noexcept {
  return kLeastWork + 64 * bytes;
}

// Position of a reader in a packet.
struct Cursor {
  const std::uint8_t* data = nullptr;  // of the packet; kReadableBeyond bytes after its end are readable, too
  std::uint64_t at = 0;  // bits from `data`
  std::uint64_t end = 0;
  std::uint64_t cycles = 0;                                          // current value of the clock
  std::uint64_t latest = std::numeric_limits<std::uint64_t>::max();  // a later event is an error
  std::uint64_t id = 0;  // of the event, or of the stream class in a packet's header
  std::uint32_t class_index = 0;
  const std::uint8_t* body = nullptr;  // of an event that is read in place
  Failure failure = Failure::none;
  std::uint64_t work = kLeastWork;  // remaining budget of elements and their operations
  ElementMemory* memory = nullptr;
  ElementMemory* scratch = nullptr;  // for skipped events
  std::array<const std::uint64_t*, kFrames> frames{};
};

// Replaces the low bits of a clock's value by a new reading of them. A smaller reading means that they wrapped
// around once.
[[nodiscard]] constexpr std::uint64_t advance_clock(std::uint64_t cycles, std::uint64_t reading,
                                                    std::uint32_t bits) noexcept {
  if (bits >= 64) return reading;
  const std::uint64_t mask = (std::uint64_t{1} << bits) - 1;
  const std::uint64_t advanced = (cycles & ~mask) + (reading & mask);
  return (reading & mask) < (cycles & mask) ? advanced + mask + 1 : advanced;
}

namespace detail {

enum class Do : std::uint8_t { run, align, integer, skip, text, bytes, array, variant, clock, id, widen };

struct Operation {
  Do what = Do::run;
  std::uint8_t bits = 0;  // integer, clock
  bool is_signed = false;
  bool big = false;
  bool store = true;
  std::uint32_t slot = 0;
  std::uint32_t index = 0;   // of the run, array or variant
  std::uint64_t amount = 0;  // align: bits; skip: bits
};

// value = (((word at byte) >> shift) & mask), sign-extended.
struct Load {
  std::uint32_t byte = 0;
  std::uint32_t slot = 0;
  std::uint32_t shift = 0;
  std::uint64_t mask = 0;
  std::uint64_t sign = 0;
};

struct ByteField {  // array of bytes in a run
  std::uint32_t byte = 0;
  std::uint32_t slot = 0;
  std::uint64_t length = 0;
};

struct Run {
  std::uint64_t bits = 0;
  // Order of the loads: little-endian fields without shift, other little-endian fields, big-endian fields.
  std::uint32_t first = 0, plain_end = 0, little_end = 0, big_end = 0;
  std::uint32_t first_bytes = 0, bytes_end = 0;
};

struct Procedure {
  std::uint32_t first = 0, end = 0;
};

struct Reference {  // to an integer that was decoded earlier
  std::uint32_t frame = 0;
  std::uint32_t slot = 0;
};

struct Elements {
  std::optional<Reference> length;  // nullopt: `fixed`
  std::uint64_t fixed = 0;
  std::uint64_t minimum_bits = 0;  // of one element
  std::uint32_t width = 0;
  std::uint32_t frame = 0;
  Procedure element;
  // Integer elements are read without the procedure.
  std::uint32_t integer_bits = 0;
  std::uint64_t integer_alignment = 1;
  bool is_signed = false;
  bool big = false;
};

struct Options {
  Reference selector;
  bool is_signed = false;
  std::vector<Variant::Choice> choices;
  std::vector<Procedure> procedures;
};

struct Code {
  std::vector<Operation> operations;
  std::vector<Load> loads;
  std::vector<ByteField> byte_fields;
  std::vector<Run> runs;
  std::vector<Elements> elements;
  std::vector<Options> options;
};

}  // namespace detail

// The fields of a packet's header and context that the reader uses.
struct PacketFields {
  std::optional<std::uint64_t> magic;
  std::optional<Uuid> uuid;
  std::optional<std::uint64_t> stream_class;
  std::optional<std::uint64_t> instance;
  std::optional<std::uint64_t> begin_cycles;  // raw values of begin_bits and end_bits bits
  std::optional<std::uint64_t> end_cycles;
  std::uint32_t begin_bits = 64;
  std::uint32_t end_bits = 64;
  std::optional<std::uint64_t> content_bits;
  std::optional<std::uint64_t> packet_bits;
  std::optional<std::uint64_t> events_discarded;
  std::optional<std::uint64_t> sequence_number;
  std::optional<std::uint64_t> cpu;
};

// Decodes the header of a packet and, if the stream class is given, the packet context.
class PacketDecoder {
 public:
  PacketDecoder(const Metadata& metadata, const StreamClass* stream);

  [[nodiscard]] std::uint32_t slots() const noexcept { return slots_; }
  // Decodes from the packet's start and leaves the cursor after the last field. False if the fields exceed
  // the cursor's end.
  bool decode(Cursor& cursor, std::uint64_t* slots) const;
  [[nodiscard]] PacketFields fields(const std::uint64_t* slots) const;
  // Null if there is none.
  [[nodiscard]] const FieldLayout* header() const noexcept { return header_ ? &*header_ : nullptr; }
  [[nodiscard]] const FieldLayout* context() const noexcept { return context_ ? &*context_ : nullptr; }

 private:
  detail::Code code_;
  detail::Procedure procedure_;
  std::optional<FieldLayout> header_;
  std::optional<FieldLayout> context_;
  std::uint32_t slots_ = 0;
};

class Decoder {
 public:
  // `layouts`: the layouts of the stream class's events, ordered by id; the first is Trace::layouts[first_class].
  // `clock`: the clock whose fields are the events' time. Throws MetadataError.
  Decoder(const Metadata& metadata, const StreamClass& stream, std::span<const EventLayout> layouts,
          std::uint32_t first_class, std::optional<std::uint32_t> clock);
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  enum class Step : std::uint8_t { event, end, failed };

  // Statistics of all events, including skipped ones.
  struct Seen {
    std::vector<std::uint64_t> counts;  // by class_index
    std::optional<std::uint64_t> first_cycles;
    std::uint64_t last_cycles = 0;
    std::uint64_t backwards = 0;                                      // events older than the one before
    std::uint64_t backwards_cycles = 0, before_backwards_cycles = 0;  // their widest span
  };

  // How next() treats the events of a class: skips them, decodes them, or returns their body undecoded.
  enum Want : std::uint8_t { kPass, kDecode, kInPlace };

  // Advances to the next event whose class is wanted (`wanted[class_index]` is not kPass). kDecode: decodes it
  // into `slots`, which has room for slots(). kInPlace (only if can_read_in_place()): sets only Cursor::body.
  // After a failure the cursor is at the start of the event.
  Step next(Cursor& cursor, std::uint64_t* slots, const std::uint8_t* wanted, Seen& seen) const;

  // Room for several events.
  struct Batch {
    std::span<Event> events;
    std::size_t count = 0;               // events in use
    std::uint64_t* slots = nullptr;      // first free slot
    const std::uint64_t* end = nullptr;  // end of the slots
  };
  // Fast path of next() for several events: LTTng's headers and fields of fixed size. Stops if the batch is full,
  // or at an event that needs next(). Sets time_ns in cycles.
  void next_plain(Cursor& cursor, Batch& batch, const std::uint8_t* wanted, Seen& seen) const;

  // Whether all fields of the class have fixed offsets from a whole byte, and each is an array of bytes or a
  // little-endian integer that starts on a whole byte.
  [[nodiscard]] bool can_read_in_place(std::uint32_t class_index) const noexcept;
  // Place of the field with that slot; nullopt if the class has no such field or cannot be read in place.
  [[nodiscard]] std::optional<FieldPlace> place_of(std::uint32_t class_index, std::uint32_t slot) const noexcept;

  [[nodiscard]] std::uint32_t slots() const noexcept { return slots_; }
  // The last class_index plus 1.
  [[nodiscard]] std::uint32_t classes_end() const noexcept { return classes_end_; }
  [[nodiscard]] const PacketDecoder& packet() const noexcept { return packet_; }
  // Whether lengths or selectors are in the packet's header or context; then Cursor::frames[0] must be set.
  [[nodiscard]] bool uses_packet() const noexcept { return uses_packet_; }
  [[nodiscard]] bool has_clock() const noexcept { return has_clock_; }
  // The clock to which the time stamps of this stream class are mapped: the clock of the first mapped field.
  [[nodiscard]] static std::optional<std::uint32_t> clock_of(const StreamClass& stream);

  // For tests: decodes every event header by the general procedure.
  void use_general_header() noexcept { header_ = Header::general; }
  [[nodiscard]] bool has_special_header() const noexcept { return header_ != Header::general; }

 private:
  enum class Header : std::uint8_t { general, large, compact };
  struct ClassCode {
    std::uint32_t class_index = 0;
    bool is_one_run = false;  // full[1] is a single run of plain loads
    const detail::Run* run = nullptr;
    detail::Procedure full[2];  // [1]: the event header ended on a whole byte
    detail::Procedure skip[2];
    bool skip_is_one_step = false;  // constant size from a whole byte
    std::uint64_t skip_bits = 0;
  };

  // Kept together with the class's size, so that the position of the next event is known early: the dependency
  // chain from event to event limits the speed.
  struct Known {
    const ClassCode* code = nullptr;
    std::uint64_t run_bits = 0;  // if the class is one run
  };

  // Data of a class for next_plain().
  struct Plain {
    std::uint64_t bytes = std::numeric_limits<std::uint64_t>::max();  // including the header; max(): not plain
    std::uint32_t class_index = 0;
    std::uint32_t slots = 0;
    const detail::Run* run = nullptr;
  };

  template <bool kLarge>
  void finish_plain();
  template <bool kLarge>
  void next_plain(Cursor& cursor, Batch& batch, const std::uint8_t* wanted, Seen& seen) const;
  [[nodiscard]] Known find(std::uint64_t id) const noexcept;
  [[nodiscard]] bool decode_header(Cursor& cursor, std::uint64_t* slots) const;
  void recognise_header(const StreamClass& stream);

  PacketDecoder packet_;
  detail::Code code_;
  detail::Procedure header_procedure_;
  std::uint64_t header_alignment_ = 1;
  Header header_ = Header::general;
  std::vector<ClassCode> classes_;
  std::vector<Known> by_small_id_;
  std::vector<Plain> plain_;  // by small id
  std::unordered_map<std::uint64_t, Known> by_large_id_;
  Known only_;  // if events have no id
  std::uint32_t classes_end_ = 0;
  std::uint32_t slots_ = 0;  // of the largest event, plus one for the loads that pad runs
  bool has_clock_ = false;
  bool uses_packet_ = false;
};

}  // namespace perflab::ctf
