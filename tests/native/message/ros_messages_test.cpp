// The messages of ros/perflab_msgs, read as text, against perflab's own: half of a graph may be ROS 2, so
// every field must stand at the same place on the wire. Needs no ROS 2.

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <ostream>
#include <set>
#include <sstream>
#include <stdexcept>
#include <string>
#include <vector>

#include "message/cdr.h"
#include "message/types.h"

namespace perflab::message {
namespace {

namespace fs = std::filesystem;

const fs::path kPackage = PERFLAB_MSGS;
// Elements of the sequences that are compared.
constexpr std::size_t kSequenceLength = 5;

struct Field {
  std::string name;        // "header.sequence"
  std::string type;        // of one element
  std::size_t offset = 0;  // of the first element, from behind the encapsulation
  std::size_t bytes = 0;   // of all elements
  bool sequence = false;   // a uint32 length stands before them

  bool operator==(const Field&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Field& field) {
    return out << field.type << (field.sequence ? "[] " : " ") << field.name << " at " << field.offset << ", "
               << field.bytes << " bytes";
  }
};

struct Layout {
  std::vector<Field> fields;
  std::size_t bytes = 0;

  bool operator==(const Layout&) const = default;
  friend std::ostream& operator<<(std::ostream& out, const Layout& layout) {
    for (const Field& field : layout.fields) out << "\n  " << field;
    return out << "\n  = " << layout.bytes << " bytes";
  }
};

// --- what the interface files say
// ---------------------------------------------------------------------------

std::string read(const fs::path& file) {
  std::ifstream in(file);
  if (!in) throw std::runtime_error("cannot read " + file.string());
  std::ostringstream text;
  text << in.rdbuf();
  return text.str();
}

const std::map<std::string, std::size_t> kPrimitives{
    {"uint8", 1}, {"int8", 1},    {"uint16", 2}, {"int16", 2}, {"uint32", 4},
    {"int32", 4}, {"float32", 4}, {"uint64", 8}, {"int64", 8}, {"float64", 8}};

// Lays the fields of a definition behind what the layout has, by the rules of XCDR1: an element is aligned to
// its size, counted from behind the encapsulation; a nested message is its fields.
void append(const std::string& definition, const std::string& prefix, Layout& layout) {
  const auto align = [&layout](std::size_t size) { layout.bytes = (layout.bytes + size - 1) / size * size; };
  std::istringstream lines(definition);
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string type, name, more;
    if (!(words >> type)) continue;
    if (!(words >> name) || words >> more) throw std::runtime_error("not a field: " + line);
    std::size_t count = 1;
    bool sequence = false;
    if (const std::size_t bracket = type.find('['); bracket != std::string::npos) {
      const std::string length = type.substr(bracket + 1, type.size() - bracket - 2);
      if (type.back() != ']' || length.find_first_not_of("0123456789") != std::string::npos) {
        throw std::runtime_error("not an array: " + line);
      }
      sequence = length.empty();
      count = sequence ? kSequenceLength : std::stoul(length);
      type.resize(bracket);
    }
    if (!kPrimitives.contains(type)) {
      if (count != 1 || sequence) throw std::runtime_error("an array of messages: " + line);
      append(read(kPackage / "msg" / (type + ".msg")), prefix + name + ".", layout);
      continue;
    }
    const std::size_t size = kPrimitives.at(type);
    if (sequence) {
      align(4);
      layout.bytes += 4;
    }
    align(size);
    layout.fields.push_back({prefix + name, type, layout.bytes, size * count, sequence});
    layout.bytes += size * count;
  }
}

Layout layout_of_definition(const std::string& definition) {
  Layout layout;
  append(definition, "", layout);
  return layout;
}

// The names of the files of a kind, without suffix.
std::set<std::string> files(const std::string& kind) {
  std::set<std::string> names;
  for (const fs::directory_entry& entry : fs::directory_iterator(kPackage / kind)) {
    EXPECT_EQ(entry.path().extension(), "." + kind) << entry.path();
    names.insert(entry.path().stem().string());
  }
  return names;
}

// --- what perflab's structs say
// -----------------------------------------------------------------------------

template <typename T>
std::string primitive() {
  static_assert(std::is_arithmetic_v<T> && !std::is_same_v<T, bool>);
  const std::string bits = std::to_string(8 * sizeof(T));
  if constexpr (std::is_floating_point_v<T>) return "float" + bits;
  return (std::is_signed_v<T> ? "int" : "uint") + bits;
}

template <typename T>
struct Elements {
  using Type = T;
  static constexpr bool kSequence = false;
  static std::span<T> of(T& field) { return {&field, 1}; }
};
template <typename T, std::size_t N>
struct Elements<std::array<T, N>> {
  using Type = T;
  static constexpr bool kSequence = false;
  static std::span<T> of(std::array<T, N>& field) { return field; }
};
template <typename T>
struct Elements<std::vector<T>> {
  using Type = T;
  static constexpr bool kSequence = true;
  static std::span<T> of(std::vector<T>& field) { return field; }
};

// Where encode() puts each field, found out by encoding: the bytes that change when the field alone changes.
template <typename Message>
Layout layout_of_struct() {
  const auto message = std::make_unique<Message>();
  if constexpr (requires { message->data.resize(kSequenceLength); }) message->data.resize(kSequenceLength);
  const Header& header = message->header;
  const std::map<const void*, std::string> names{
      {&header.intended_ns, "header.intended_ns"},   {&header.published_ns, "header.published_ns"},
      {&header.sequence, "header.sequence"},         {&header.size_bytes, "header.size_bytes"},
      {&header.frequency_hz, "header.frequency_hz"}, {&message->data, "data"}};
  const std::vector<std::uint8_t> before = encode(*message);
  Layout layout{{}, before.size() - kEncapsulationBytes};
  for_each_field(*message, [&]<typename T>(T& field) {
    using Type = typename Elements<T>::Type;
    const std::span<Type> elements = Elements<T>::of(field);
    std::memset(elements.data(), 0xFF, elements.size_bytes());
    const std::vector<std::uint8_t> after = encode(*message);
    std::memset(elements.data(), 0, elements.size_bytes());
    const auto first = std::mismatch(before.begin(), before.end(), after.begin()).first;
    const auto last = std::mismatch(before.rbegin(), before.rend(), after.rbegin()).first.base();
    layout.fields.push_back({names.at(&field), primitive<Type>(),
                             static_cast<std::size_t>(first - before.begin()) - kEncapsulationBytes,
                             static_cast<std::size_t>(last - first), Elements<T>::kSequence});
  });
  return layout;
}

const std::map<std::string, std::function<Layout()>> kStructs{
    {"Stamped10b", layout_of_struct<Stamped10b>},
    {"Stamped100b", layout_of_struct<Stamped100b>},
    {"Stamped250b", layout_of_struct<Stamped250b>},
    {"Stamped1kb", layout_of_struct<Stamped1kb>},
    {"Stamped10kb", layout_of_struct<Stamped10kb>},
    {"Stamped50kb", layout_of_struct<Stamped50kb>},
    {"Stamped100kb", layout_of_struct<Stamped100kb>},
    {"Stamped250kb", layout_of_struct<Stamped250kb>},
    {"Stamped500kb", layout_of_struct<Stamped500kb>},
    {"Stamped600kb", layout_of_struct<Stamped600kb>},
    {"Stamped1mb", layout_of_struct<Stamped1mb>},
    {"Stamped4mb", layout_of_struct<Stamped4mb>},
    {"Stamped5mb", layout_of_struct<Stamped5mb>},
    {"Stamped8mb", layout_of_struct<Stamped8mb>},
    {"Stamped3Float32", layout_of_struct<Stamped3Float32>},
    {"Stamped4Float32", layout_of_struct<Stamped4Float32>},
    {"Stamped9Float32", layout_of_struct<Stamped9Float32>},
    {"Stamped12Float32", layout_of_struct<Stamped12Float32>},
    {"Stamped4Int32", layout_of_struct<Stamped4Int32>},
    {"StampedInt64", layout_of_struct<StampedInt64>},
    {"StampedVector", layout_of_struct<StampedVector>},
};

// "perflab_msgs/msg/Stamped10b" -> {"perflab_msgs/msg", "Stamped10b"}
std::pair<std::string, std::string> split(std::string_view ros_type) {
  const std::size_t slash = ros_type.rfind('/');
  return {std::string(ros_type.substr(0, slash)), std::string(ros_type.substr(slash + 1))};
}

// --- the tests
// ----------------------------------------------------------------------------------------------

TEST(RosDefinitions, AreLaidOutByTheRulesOfCdr) {
  const Layout layout =
      layout_of_definition("# first\nuint8 a # odd\n\nint64 b\nuint8[3] c\nfloat32[] d\nint16 e\n");
  const std::vector<Field> expected{{"a", "uint8", 0, 1, false},
                                    {"b", "int64", 8, 8, false},
                                    {"c", "uint8", 16, 3, false},
                                    {"d", "float32", 24, 4 * kSequenceLength, true},
                                    {"e", "int16", 44, 2, false}};
  EXPECT_EQ(layout.fields, expected);
  EXPECT_EQ(layout.bytes, 46u);
}

TEST(RosDefinitions, WithNestedMessagesHaveTheirFields) {
  const Layout layout = layout_of_definition("uint8 before\nHeader header\n");
  ASSERT_EQ(layout.fields.size(), 6u);
  EXPECT_EQ(layout.fields[1], (Field{"header.intended_ns", "int64", 8, 8, false}));
  EXPECT_EQ(layout.fields[5], (Field{"header.frequency_hz", "float32", 36, 4, false}));
}

TEST(RosDefinitions, ThatAreNoneAreRefused) {
  for (const char* definition : {"uint8", "uint8 a b", "uint8[x] a", "Header[2] a", "Unknown a"}) {
    EXPECT_THROW(layout_of_definition(definition), std::runtime_error) << definition;
  }
}

TEST(RosMessages, AreThoseOfPerflab) {
  std::set<std::string> expected{"Header"};
  for (const MessageType& type : all_types()) {
    const auto [package, name] = split(type.ros_type);
    EXPECT_EQ(package, "perflab_msgs/msg");
    EXPECT_TRUE(kStructs.contains(name)) << "no struct is compared with " << name;
    expected.insert(name);
  }
  // Others are performance_test's (definitions_test.cpp).
  EXPECT_TRUE(std::ranges::includes(files("msg"), expected));
  EXPECT_EQ(kStructs.size() + 1, expected.size());
}

TEST(RosMessages, HaveTheirFieldsWherePerflabHasThem) {
  for (const MessageType& type : all_types()) {
    const std::string name = split(type.ros_type).second;
    const Layout ros = layout_of_definition(read(kPackage / "msg" / (name + ".msg")));
    EXPECT_EQ(ros, kStructs.at(name)()) << name;
    ASSERT_FALSE(ros.fields.empty()) << name;
    EXPECT_EQ(ros.fields.back().sequence, type.variable) << name;
    if (type.variable) continue;
    EXPECT_EQ(ros.fields.back().bytes, type.payload_bytes) << name;
    EXPECT_EQ(ros.bytes + kEncapsulationBytes, fixed_encoded_size(type)) << name;
  }
}

TEST(RosServices, AreTheMessagesOfFixedSize) {
  std::set<std::string> expected;
  for (const MessageType& type : all_types()) {
    if (type.variable) continue;
    const auto [package, name] = split(service_ros_type(type));
    EXPECT_EQ(package, "perflab_msgs/srv");
    expected.insert(name);
  }
  EXPECT_EQ(files("srv"), expected);
}

TEST(RosServices, AskAndAnswerWithTheMessageOfTheirName) {
  constexpr std::string_view kSeparator = "---\n";
  for (const std::string& name : files("srv")) {
    const std::string text = read(kPackage / "srv" / (name + ".srv"));
    const std::size_t at = text.find(kSeparator);
    ASSERT_NE(at, std::string::npos) << name;
    ASSERT_TRUE(kStructs.contains(name)) << name;
    const Layout own = kStructs.at(name)();
    EXPECT_EQ(layout_of_definition(text.substr(0, at)), own) << name;
    EXPECT_EQ(layout_of_definition(text.substr(at + kSeparator.size())), own) << name;
  }
}

}  // namespace
}  // namespace perflab::message
