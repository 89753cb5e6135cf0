// ROS 2 interface definitions as data: the content of a .msg, .srv or .action file.
//
// A .srv file defines two structs, Name_Request and Name_Response; an .action file Name_Goal, Name_Result and
// Name_Feedback, from which ROS 2 derives the ones on the wire (library.h).
//
// Source: ROS 2, "Interfaces" (concepts) and "Topic and Service name mapping to DDS" (design).
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <variant>
#include <vector>

namespace perflab::message {

// Primitive types by their names in ROS 2, where `char` and `byte` are unsigned octets, in memory and on the
// wire like uint8. The type hash of `char` also equals that of uint8 (rosidl_adapter converts it), that of
// `byte` does not.
enum class Primitive : std::uint8_t {
  kBool, kByte, kChar, kInt8, kUint8, kInt16, kUint16, kInt32, kUint32, kInt64, kUint64, kFloat32, kFloat64,
  kString,  // UTF-8
  kWstring  // UTF-16
};

[[nodiscard]] constexpr bool is_text(Primitive primitive) noexcept {
  return primitive == Primitive::kString || primitive == Primitive::kWstring;
}

// Size of one value in memory and on the wire; 0 for strings, whose size varies.
[[nodiscard]] constexpr std::size_t size_of(Primitive primitive) noexcept {
  switch (primitive) {
    case Primitive::kBool:
    case Primitive::kByte:
    case Primitive::kChar:
    case Primitive::kInt8:
    case Primitive::kUint8:
      return 1;
    case Primitive::kInt16:
    case Primitive::kUint16:
      return 2;
    case Primitive::kInt32:
    case Primitive::kUint32:
    case Primitive::kFloat32:
      return 4;
    case Primitive::kInt64:
    case Primitive::kUint64:
    case Primitive::kFloat64:
      return 8;
    case Primitive::kString:
    case Primitive::kWstring:
      return 0;
  }
  return 0;
}

enum class Plurality : std::uint8_t {
  kOne,
  kArray,    // T[N]
  kBounded,  // T[<=N]
  kSequence  // T[]
};

struct FieldType {
  // A primitive, or a struct: by its full name ("geometry_msgs/msg/Point"), or, until the library resolves
  // it, by its short name ("Point").
  std::variant<Primitive, std::string> element = Primitive::kBool;
  Plurality plurality = Plurality::kOne;
  std::uint64_t count = 0;       // N of an array or of a bounded sequence, otherwise 0
  std::uint64_t text_bound = 0;  // N of string<=N, in bytes of UTF-8 or units of UTF-16; 0: unbounded

  bool operator==(const FieldType&) const = default;
};

// Values of constants and defaults: of bool, signed, unsigned and floating types, and strings (UTF-8).
using Value = std::variant<bool, std::int64_t, std::uint64_t, double, std::string>;

struct Field {
  std::string name;
  FieldType type;
  std::vector<Value> defaults;  // empty: no default; otherwise a single value, or one per element
  bool has_default = false;     // needed because an empty sequence is a valid default
  bool key = false;             // `@key` in the comment after or above the field

  bool operator==(const Field&) const = default;
};

struct Constant {
  std::string name;
  Primitive type = Primitive::kBool;
  Value value;

  bool operator==(const Constant&) const = default;
};

// A position for messages: file (or another name of the source), line and column from 1, in characters. Line
// 0: the whole file.
struct Place {
  std::string source;
  std::size_t line = 0;
  std::size_t column = 0;
};

struct Definition {
  std::string name;  // "sensor_msgs/msg/PointCloud2", "std_srvs/srv/SetBool_Request"
  std::vector<Field> fields;
  std::vector<Constant> constants;
  std::vector<Place> places;  // of each field's type; the file as a whole if no line has the field
};

}  // namespace perflab::message
