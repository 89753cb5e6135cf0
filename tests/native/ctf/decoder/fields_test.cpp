// Fields of every kind against a reader that looks at one bit at a time.
#include <gtest/gtest.h>

#include <bit>
#include <cstring>
#include <memory>
#include <random>

#include "ctf/decoder.h"
#include "ctf/mapped_file.h"

namespace perflab::ctf {
namespace {

FieldTypePtr make(auto kind) { return std::make_shared<const FieldType>(FieldType{std::move(kind)}); }

FieldTypePtr integer(std::uint32_t bits, std::uint32_t alignment, ByteOrder order, bool is_signed) {
  Integer type;
  type.size = bits;
  type.alignment = alignment;
  type.order = order;
  type.is_signed = is_signed;
  return make(type);
}

// ---------------------------------------------------------------------------------------------------------------------
// The reader that knows nothing but the definitions

class Reference {
 public:
  Reference(const std::uint8_t* data, std::uint64_t at, std::uint64_t end)
      : data_(data), at_(at), end_(end) {}

  [[nodiscard]] std::uint64_t at() const { return at_; }

  static std::uint64_t alignment(const FieldType& type) {
    struct Of {
      std::uint64_t operator()(const Integer& i) const { return i.alignment; }
      std::uint64_t operator()(const Enumeration& e) const { return e.integer.alignment; }
      std::uint64_t operator()(const Float& f) const { return f.alignment; }
      std::uint64_t operator()(const Text&) const { return 8; }
      std::uint64_t operator()(const Array& a) const { return alignment(*a.element); }
      std::uint64_t operator()(const Sequence& s) const { return alignment(*s.element); }
      std::uint64_t operator()(const Variant&) const { return 1; }
      std::uint64_t operator()(const Structure& s) const {
        std::uint64_t result = s.minimum_alignment;
        for (const auto& field : s.fields) result = std::max(result, alignment(*field.type));
        return result;
      }
    };
    return std::visit(Of{}, type.kind);
  }

  // Reads the field and compares it with the slots, where there are any; false where it goes beyond the end.
  // `root` are the payload's slots, in which lengths and selectors stand.
  bool read(const FieldType& type, const FieldLayout* layout, const std::uint64_t* slots,
            const FieldLayout* root, const std::uint64_t* root_slots) {
    while (at_ % alignment(type) != 0) ++at_;
    return std::visit([&](const auto& kind) { return read_kind(kind, layout, slots, root, root_slots); },
                      type.kind);
  }

 private:
  bool bits(std::uint32_t count, ByteOrder order, std::uint64_t& value) {
    if (at_ + count > end_) return false;
    value = 0;
    for (std::uint32_t i = 0; i < count; ++i, ++at_) {
      const std::uint8_t byte = data_[at_ / 8];
      if (order == ByteOrder::little) {
        value |= static_cast<std::uint64_t>(byte >> (at_ % 8) & 1U) << i;
      } else {
        value = value << 1U | (byte >> (7 - at_ % 8) & 1U);
      }
    }
    return true;
  }
  bool read_kind(const Integer& type, const FieldLayout* layout, const std::uint64_t* slots,
                 const FieldLayout*, const std::uint64_t*) {
    std::uint64_t value = 0;
    if (!bits(type.size, type.order, value)) return false;
    if (type.is_signed && type.size < 64 && (value >> (type.size - 1) & 1U) != 0)
      value |= ~std::uint64_t{0} << type.size;
    if (layout != nullptr) {
      EXPECT_EQ(slots[layout->slot], value) << layout->name;
    }
    return true;
  }
  bool read_kind(const Enumeration& type, const FieldLayout* layout, const std::uint64_t* slots,
                 const FieldLayout* root, const std::uint64_t* root_slots) {
    return read_kind(type.integer, layout, slots, root, root_slots);
  }
  bool read_kind(const Float& type, const FieldLayout* layout, const std::uint64_t* slots, const FieldLayout*,
                 const std::uint64_t*) {
    std::uint64_t value = 0;
    const bool is_double = type.mantissa_bits == 53;
    if (!bits(is_double ? 64 : 32, type.order, value)) return false;
    if (layout == nullptr) return true;
    const auto found = std::bit_cast<double>(slots[layout->slot]);
    const double expected =
        is_double ? std::bit_cast<double>(value)
                  : static_cast<double>(std::bit_cast<float>(static_cast<std::uint32_t>(value)));
    if (expected == expected) {
      EXPECT_EQ(found, expected) << layout->name;
    } else {
      EXPECT_NE(found, found) << layout->name;
    }
    return true;
  }
  bool read_kind(const Text&, const FieldLayout* layout, const std::uint64_t* slots, const FieldLayout*,
                 const std::uint64_t*) {
    std::string text;
    while (true) {
      std::uint64_t byte = 0;
      if (!bits(8, ByteOrder::little, byte)) return false;
      if (byte == 0) break;
      text.push_back(static_cast<char>(byte));
    }
    if (layout != nullptr) {
      const auto* found = reinterpret_cast<const char*>(slots[layout->slot]);
      EXPECT_EQ(std::string(found, slots[layout->slot + 1]), text);
    }
    return true;
  }
  bool elements(const FieldType& element, std::uint64_t count, const FieldLayout* layout,
                const std::uint64_t* slots, const FieldLayout* root, const std::uint64_t* root_slots) {
    if (layout != nullptr) {
      EXPECT_EQ(slots[layout->slot + 1], count) << layout->name;
    }
    for (std::uint64_t i = 0; i < count; ++i) {
      if (layout == nullptr) {
        if (!read(element, nullptr, nullptr, root, root_slots)) return false;
      } else if (layout->bytes) {
        std::uint64_t byte = 0;
        while (at_ % alignment(element) != 0) ++at_;
        if (!bits(8, std::get<Integer>(element.kind).order, byte)) return false;
        EXPECT_EQ(reinterpret_cast<const std::uint8_t*>(slots[layout->slot])[i], byte)
            << layout->name << " " << i;
      } else {
        const auto* inner = reinterpret_cast<const std::uint64_t*>(slots[layout->slot]);
        const FieldLayout& child = layout->children.front();
        if (!read(element, &child, inner + i * child.width, root, root_slots)) return false;
      }
    }
    return true;
  }
  bool read_kind(const Array& type, const FieldLayout* layout, const std::uint64_t* slots,
                 const FieldLayout* root, const std::uint64_t* root_slots) {
    return elements(*type.element, type.length, layout, slots, root, root_slots);
  }
  bool read_kind(const Sequence& type, const FieldLayout* layout, const std::uint64_t* slots,
                 const FieldLayout* root, const std::uint64_t* root_slots) {
    return elements(*type.element, referred(type.length, root, root_slots), layout, slots, root, root_slots);
  }
  bool read_kind(const Structure& type, const FieldLayout* layout, const std::uint64_t* slots,
                 const FieldLayout* root, const std::uint64_t* root_slots) {
    for (std::size_t i = 0; i < type.fields.size(); ++i) {
      const FieldLayout* child = layout != nullptr ? &layout->children[i] : nullptr;
      if (!read(*type.fields[i].type, child, slots, root, root_slots)) return false;
    }
    return true;
  }
  bool read_kind(const Variant& type, const FieldLayout* layout, const std::uint64_t* slots,
                 const FieldLayout* root, const std::uint64_t* root_slots) {
    const std::uint64_t selector = referred(type.selector, root, root_slots);
    for (const auto& choice : type.choices) {
      if (selector < choice.lowest || selector > choice.highest) continue;
      if (layout != nullptr) {
        EXPECT_EQ(slots[layout->slot], choice.option);
      }
      return read(*type.options[choice.option].type,
                  layout != nullptr ? &layout->children[choice.option] : nullptr, slots, root, root_slots);
    }
    return false;
  }
  // The slots were compared before they are used here.
  static std::uint64_t referred(const FieldPath& path, const FieldLayout* root, const std::uint64_t* slots) {
    const FieldLayout* node = root;
    for (const auto index : path.indices) node = &node->children[index];
    return slots[node->slot];
  }

  const std::uint8_t* data_;
  std::uint64_t at_;
  std::uint64_t end_;
};

// A stream class with one event, whose payload is that structure, and no event header.
struct OneEvent {
  explicit OneEvent(FieldTypePtr payload) {
    stream.id = 0;
    event = std::make_shared<EventClass>();
    event->name = "event";
    event->payload = std::move(payload);
    stream.events.emplace(0, event);
    layouts.push_back(make_layout(stream, *event));
    decoder = std::make_unique<Decoder>(Metadata{}, stream, layouts, 0, std::nullopt);
  }
  StreamClass stream;
  std::shared_ptr<EventClass> event;
  std::vector<EventLayout> layouts;
  std::unique_ptr<Decoder> decoder;
};

enum class Agreement { event, failed };

// Decodes the event at bit `at` and compares all of it; also passes over it, which must end at the same
// place.
Agreement compare(const OneEvent& one, const MappedFile& bytes, std::uint64_t at, std::uint64_t end) {
  ElementMemory memory, scratch;
  std::vector<std::uint64_t> slots(one.decoder->slots());
  const FieldLayout& root = *one.layouts[0].payload;
  const FieldType& type = *one.event->payload;
  const auto decode = [&](std::uint8_t wanted, Cursor& cursor) {
    cursor.data = bytes.data();
    cursor.at = at;
    cursor.end = end;
    cursor.memory = &memory;
    cursor.scratch = &scratch;
    memory.clear();
    Decoder::Seen seen;
    seen.counts.resize(1);
    const auto step = one.decoder->next(cursor, slots.data(), &wanted, seen);
    return std::pair(step, seen.counts[0]);
  };
  Cursor cursor;
  const auto [step, count] = decode(1, cursor);
  Reference reference(bytes.data(), at, end);
  if (step == Decoder::Step::event) {
    EXPECT_TRUE(reference.read(type, &root, slots.data(), &root, slots.data()));
    EXPECT_EQ(cursor.at, reference.at());
    // The same event alone, passed over: to where the packet would end.
    const std::uint64_t after = cursor.at;
    Cursor passing;
    end = after;
    EXPECT_EQ(decode(0, passing).second, 1U);
    EXPECT_EQ(passing.at, after);
    // One bit less, and it is not there.
    if (after - at > 1) {
      end = after - 1;
      Cursor cut;
      EXPECT_EQ(decode(1, cut).first, Decoder::Step::failed);
      EXPECT_EQ(cut.at, at);
      Cursor cut_passing;
      EXPECT_EQ(decode(0, cut_passing).first, Decoder::Step::failed);
    }
    return Agreement::event;
  }
  EXPECT_EQ(count, 0U);
  // Slots of what was decoded before the failure are there for the reference, which fails, too.
  EXPECT_FALSE(reference.read(type, nullptr, nullptr, &root, slots.data()) && reference.at() <= end &&
               reference.at() > at);
  return Agreement::failed;
}

std::shared_ptr<const MappedFile> random_bytes(std::size_t size, std::mt19937& random) {
  std::vector<std::uint8_t> bytes(size);
  for (auto& byte : bytes) byte = static_cast<std::uint8_t>(random());
  return MappedFile::of_bytes(bytes);
}

class Integers : public testing::TestWithParam<std::tuple<std::uint32_t, ByteOrder, bool>> {};

TEST_P(Integers, OfEverySizeAndPlaceAreReadAsTheirBitsSay) {
  const auto [alignment, order, is_signed] = GetParam();
  std::mt19937 random(alignment);
  const auto bytes = random_bytes(64, random);
  for (std::uint32_t size = 1; size <= 64; ++size) {
    // A field before it brings it to every bit of a byte, known when compiling; the event's place does the
    // same later.
    for (std::uint32_t before = 0; before < 9; ++before) {
      Structure structure;
      if (before != 0) structure.fields.push_back({"before", integer(before, 1, order, false)});
      structure.fields.push_back({"value", integer(size, alignment, order, is_signed)});
      const OneEvent one(make(structure));
      for (std::uint64_t at = 0; at < 9; ++at) {
        ASSERT_EQ(compare(one, *bytes, at, 512), Agreement::event);
        ASSERT_FALSE(testing::Test::HasFailure()) << size << " bits after " << before << " at " << at;
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(All, Integers,
                         testing::Combine(testing::Values(1U, 2U, 4U, 8U, 16U, 32U, 64U, 128U),
                                          testing::Values(ByteOrder::little, ByteOrder::big),
                                          testing::Bool()));

TEST(Floats, OfBothSizesAndOrdersAreDoubles) {
  const std::array<std::uint8_t, 24> bytes{0x00, 0x00, 0x20, 0x40, 0x40, 0x20, 0x00, 0x00,  // 2.5 as binary32
                                           0,    0,    0,    0,    0,    0,    0x04, 0xC0,
                                           0xC0, 0x04, 0,    0,    0,    0,    0,    0};  // -2.5
  const auto real = [](std::uint32_t exponent, std::uint32_t mantissa, ByteOrder order) {
    Float type;
    type.exponent_bits = exponent;
    type.mantissa_bits = mantissa;
    type.alignment = 8;
    type.order = order;
    return make(type);
  };
  Structure structure;
  structure.fields = {{"a", real(8, 24, ByteOrder::little)},
                      {"b", real(8, 24, ByteOrder::big)},
                      {"c", real(11, 53, ByteOrder::little)},
                      {"d", real(11, 53, ByteOrder::big)}};
  const OneEvent one(make(structure));
  const auto file = MappedFile::of_bytes(bytes);
  ASSERT_EQ(compare(one, *file, 0, 192), Agreement::event);
  ElementMemory memory;
  Cursor cursor;
  cursor.data = file->data();
  cursor.end = 192;
  cursor.memory = cursor.scratch = &memory;
  std::vector<std::uint64_t> slots(one.decoder->slots());
  const std::uint8_t wanted = 1;
  Decoder::Seen seen;
  seen.counts.resize(1);
  ASSERT_EQ(one.decoder->next(cursor, slots.data(), &wanted, seen), Decoder::Step::event);
  const double expected[] = {2.5, 2.5, -2.5, -2.5};
  for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(std::bit_cast<double>(slots[i]), expected[i]) << i;
}

// Random nested types, with lengths and selectors that refer to earlier fields of the same payload.
class TypeMaker {
 public:
  explicit TypeMaker(std::mt19937& random) : random_(random) {}

  FieldTypePtr payload() {
    references_.clear();
    return structure({}, 0, true);
  }

 private:
  std::uint32_t below(std::uint32_t bound) { return static_cast<std::uint32_t>(random_() % bound); }
  std::uint32_t alignment() {
    constexpr std::uint32_t kAlignments[] = {1, 1, 8, 8, 8, 16, 32, 4};
    return kAlignments[below(8)];
  }
  ByteOrder order() { return below(2) == 0 ? ByteOrder::little : ByteOrder::big; }

  // `path`: where the structure stands; `direct`: outside of elements, so that others can refer into it.
  FieldTypePtr structure(const std::vector<std::uint32_t>& path, int depth, bool direct) {
    Structure result;
    if (below(4) == 0) result.minimum_alignment = alignment();
    const std::uint32_t fields = 1 + below(5);
    for (std::uint32_t i = 0; i < fields; ++i) {
      auto inner = path;
      inner.push_back(i);
      result.fields.push_back({"f" + std::to_string(i), field(inner, depth, direct)});
    }
    return make(result);
  }

  FieldTypePtr field(const std::vector<std::uint32_t>& path, int depth, bool direct) {
    switch (below(depth < 3 ? 12 : 5)) {
      case 0:
      case 1: {
        // Small, so that lengths are.
        if (direct) references_.push_back({Scope::payload, path});
        return integer(1 + below(4), alignment(), order(), false);
      }
      case 2:
        return integer(1 + below(64), alignment(), order(), below(2) == 0);
      case 3: {
        Float real;
        real.exponent_bits = below(2) == 0 ? 8 : 11;
        real.mantissa_bits = real.exponent_bits == 8 ? 24 : 53;
        real.alignment = alignment();
        real.order = order();
        return make(real);
      }
      case 4:
        return make(Text{});
      case 5:
      case 6: {
        Array array;
        array.length = below(4);
        array.element = element(depth);
        return make(array);
      }
      case 7:
      case 8: {
        if (references_.empty()) return make(Text{});
        Sequence sequence;
        sequence.length = references_[below(static_cast<std::uint32_t>(references_.size()))];
        sequence.element = element(depth);
        return make(sequence);
      }
      case 9: {
        if (references_.empty()) return make(Text{});
        Variant variant;
        variant.selector = references_[below(static_cast<std::uint32_t>(references_.size()))];
        const std::uint32_t options = 1 + below(4);
        for (std::uint32_t i = 0; i < options; ++i) {
          variant.options.push_back({"o" + std::to_string(i), field({}, depth + 1, false)});
          variant.choices.push_back({i * 4, i * 4 + 3, i});
        }
        return make(variant);
      }
      default:
        return structure(path, depth + 1, direct);
    }
  }

  FieldTypePtr element(int depth) {
    if (below(3) == 0) {
      Integer byte;
      byte.size = 8;
      byte.alignment = below(2) == 0 ? 8 : 1;
      byte.order = order();
      return make(byte);
    }
    return field({}, depth + 1, false);
  }

  std::mt19937& random_;
  std::vector<FieldPath> references_;
};

TEST(Types, AtRandomAreReadAsTheDefinitionsSay) {
  std::mt19937 random(7);
  TypeMaker maker(random);
  std::size_t events = 0, failures = 0;
  for (int round = 0; round < 3000; ++round) {
    const OneEvent one(maker.payload());
    const auto bytes = random_bytes(700, random);
    const std::uint64_t at = round % 3 == 0 ? random() % 17 : random() % 3 * 8;
    const std::uint64_t end = round % 4 == 0 ? 40 + random() % 400 : 5600;
    (compare(one, *bytes, at, end) == Agreement::event ? events : failures) += 1;
    ASSERT_FALSE(testing::Test::HasFailure()) << "round " << round;
  }
  // Both happened, often.
  EXPECT_GT(events, 500U);
  EXPECT_GT(failures, 100U);
}

TEST(Types, WithoutASizeThatCanBeReadAreRefused) {
  Structure structure;
  structure.fields = {{"value", integer(65, 8, ByteOrder::little, false)}};
  EXPECT_THROW(OneEvent(make(structure)), MetadataError);
  structure.fields = {{"value", integer(8, 24, ByteOrder::little, false)}};
  EXPECT_THROW(OneEvent(make(structure)), MetadataError);
}

// Twenty structures that each hold the next one twice.
TEST(Types, ThatGrowWithoutBoundAreRefused) {
  FieldTypePtr type = integer(8, 8, ByteOrder::little, false);
  for (int i = 0; i < 20; ++i) {
    Structure structure;
    structure.fields = {{"a", type}, {"b", type}};
    type = make(structure);
  }
  EXPECT_THROW(OneEvent{type}, MetadataError);
}

TEST(Elements, ThatCannotBeThereTakeNoMemory) {
  Structure structure;
  structure.fields = {{"length", integer(64, 8, ByteOrder::little, false)}};
  Sequence sequence;
  sequence.length = {Scope::payload, {0}};
  sequence.element = make(Structure{});  // takes no room
  structure.fields.push_back({"values", make(sequence)});
  const OneEvent one(make(structure));
  const auto bytes = MappedFile::of_bytes(std::vector<std::uint8_t>(16, 0xFF));
  ElementMemory memory, scratch;
  std::vector<std::uint64_t> slots(one.decoder->slots());
  for (const bool is_wanted : {false, true}) {
    const auto wanted = static_cast<std::uint8_t>(is_wanted);
    Cursor cursor;
    cursor.data = bytes->data();
    cursor.end = 128;
    cursor.memory = &memory;
    cursor.scratch = &scratch;
    Decoder::Seen seen;
    seen.counts.resize(1);
    EXPECT_EQ(one.decoder->next(cursor, slots.data(), &wanted, seen), Decoder::Step::failed);
    EXPECT_EQ(cursor.failure, Failure::too_many_elements);
  }
}

TEST(Layouts, GiveEveryFieldItsSlots) {
  Variant variant;
  variant.options = {{"small", integer(8, 8, ByteOrder::little, false)}, {"text", make(Text{})}};
  Structure inner;
  inner.fields = {{"x", integer(8, 8, ByteOrder::little, true)}, {"name", make(Text{})}};
  Array array;
  array.length = 3;
  array.element = make(inner);
  Structure structure;
  structure.fields = {{"variant", make(variant)}, {"inner", make(inner)}, {"array", make(array)}};
  const FieldLayout layout = make_layout("payload", *make(structure), 5);
  EXPECT_EQ(layout.width, 3U + 3U + 2U);
  EXPECT_EQ(layout.child("variant")->slot, 5U);
  EXPECT_EQ(layout.child("variant")->child("text")->slot, 6U);
  EXPECT_EQ(layout.child("inner")->child("name")->slot, 9U);
  EXPECT_EQ(layout.child("array")->slot, 11U);
  EXPECT_EQ(layout.child("array")->children.front().width, 3U);
  EXPECT_EQ(layout.child("array")->children.front().child("name")->slot, 1U);
  EXPECT_EQ(layout.child("nothing"), nullptr);
}

}  // namespace
}  // namespace perflab::ctf
