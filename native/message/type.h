// Memory layout of message types: the same structs that rosidl_generator_c makes of the same definitions, so
// that ROS 2 and perflab can exchange messages in memory. Natural alignment; nested structs and arrays in
// place; strings and sequences as Sequence.
//
// Example:
//   Types types(library);
//   const Type& cloud = types.find("sensor_msgs/msg/PointCloud2");
//   cloud.size;                      // bytes of the struct
//   cloud.plain;                     // false: its data are elsewhere
//   cloud.member("data")->offset;
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "message/definition.h"
#include "message/library.h"

namespace perflab::message {

// A string or sequence in memory, as in rosidl_runtime_c. A string has a zero after its `size` characters, and a capacity of
// exactly size + 1: an RMW built with assertions checks it. All `capacity` elements of a sequence are initialized.
struct Sequence {
  void* data;
  std::size_t size;
  std::size_t capacity;
};

struct Type;

// The element type of a sequence, array or member.
struct Element {
  Primitive primitive = Primitive::kBool;  // if `type` is null
  const Type* type = nullptr;
  std::uint64_t text_bound = 0;  // 0: unbounded

  [[nodiscard]] bool is_text() const noexcept { return type == nullptr && message::is_text(primitive); }
  // Distance between elements in memory, in bytes.
  [[nodiscard]] std::size_t stride() const noexcept;
  [[nodiscard]] std::size_t alignment() const noexcept;
  [[nodiscard]] bool plain() const noexcept;
};

struct Member {
  std::string name;
  Element element;
  Plurality plurality = Plurality::kOne;
  std::uint64_t count = 0;  // N of an array or of a bounded sequence
  std::size_t offset = 0;
  std::vector<message::Value> defaults;
  bool has_default = false;
  bool key = false;

  [[nodiscard]] bool is_sequence() const noexcept {
    return plurality == Plurality::kBounded || plurality == Plurality::kSequence;
  }
  // Number of elements in place: N of an array, otherwise 1.
  [[nodiscard]] std::uint64_t in_place() const noexcept { return plurality == Plurality::kArray ? count : 1; }
};

struct Type {
  std::string name;  // "sensor_msgs/msg/PointCloud2"
  std::vector<Member> members;
  std::size_t size = 0;  // of the struct, without the contents of strings and sequences
  std::size_t alignment = 1;
  bool plain = true;  // has no strings or sequences: every message has the same size and can be loaned
  bool keyed = false;

  [[nodiscard]] const Member* member(std::string_view member_name) const noexcept;
};

// Creates types from definitions, each once. They live as long as this object.
class Types {
 public:
  explicit Types(Library& library) : library_(library) {}

  // By full name. Throws BadInput like Library::find().
  const Type& find(const std::string& full_name);

 private:
  Library& library_;
  std::map<std::string, std::unique_ptr<Type>> types_;
};

}  // namespace perflab::message
