// Structs of generated messages compared with message::Object: for every built-in type they have the same
// defaults, and each reads what the other wrote. Offsets and sizes are asserted in the headers.
#include <gtest/gtest.h>

#include <cstddef>
#include <new>
#include <string>
#include <vector>

#include "base/error.h"
#include "message/codec.h"
#include "message/definitions.h"
#include "message/object.h"
#include "messages/all.h"
#include "programs/messages/generate.h"

namespace perflab {
namespace {

using message::Object;
using messages::Sequence;
using messages::Text;

// Any struct.
struct Kind {
  const char* name;
  const char* hash;
  std::size_t size;
  void (*make)(void* at);
  void (*copy)(const void* from, void* at);
  void (*assign)(const void* from, void* to);
  bool (*equal)(const void* one, const void* other);
  void (*destroy)(void* at);
};

template <typename T>
constexpr Kind kind_of() {
  return {T::kTypeName,
          T::kTypeHash,
          sizeof(T),
          [](void* at) { new (at) T(); },
          [](const void* from, void* at) { new (at) T(*static_cast<const T*>(from)); },
          [](const void* from, void* to) { *static_cast<T*>(to) = *static_cast<const T*>(from); },
          [](const void* one, const void* other) { return *static_cast<const T*>(one) == *static_cast<const T*>(other); },
          [](void* at) { static_cast<T*>(at)->~T(); }};
}

const std::vector<Kind>& kinds() {
#define PERFLAB_KIND(type) kind_of<type>(),
  static const std::vector<Kind> all{PERFLAB_EACH_MESSAGE(PERFLAB_KIND)};
#undef PERFLAB_KIND
  return all;
}

// An instance in its own memory.
class Value {
 public:
  explicit Value(const Kind& kind) : kind_(kind), memory_(kind.size + sizeof(std::max_align_t)) { kind_.make(data()); }
  Value(const Kind& kind, const void* of) : kind_(kind), memory_(kind.size + sizeof(std::max_align_t)) {
    kind_.copy(of, data());
  }
  ~Value() { kind_.destroy(data()); }
  Value(const Value&) = delete;
  Value& operator=(const Value&) = delete;
  [[nodiscard]] void* data() { return memory_.data(); }

 private:
  const Kind& kind_;
  std::vector<std::byte> memory_;
};

TEST(Messages, OfAllTypesAreWhatObjectsAre) {
  message::Library library(message::brought());
  message::Types types(library);
  EXPECT_GT(kinds().size(), 300u);
  for (const Kind& kind : kinds()) {
    SCOPED_TRACE(kind.name);
    const message::Type& type = types.find(kind.name);
    ASSERT_EQ(type.size, kind.size);
    EXPECT_EQ(library.hash(kind.name), kind.hash);

    Value made(kind);
    EXPECT_TRUE(Object(type, made.data()) == Object(type)) << "defaults";

    Object filled(type);
    message::fill(filled, 5);
    Value copy(kind, filled.data());  // an object read as a struct
    EXPECT_TRUE(kind.equal(copy.data(), filled.data()));
    EXPECT_TRUE(Object(type, copy.data()) == filled);
    EXPECT_EQ(kind.equal(copy.data(), made.data()), Object(type) == filled);

    kind.assign(filled.data(), made.data());  // into existing memory
    EXPECT_TRUE(Object(type, made.data()) == filled);
    ASSERT_TRUE(message::assign(type, Object(type).data(), made.data()));  // and by code without C++
                                                                           // knowledge of the type
    EXPECT_TRUE(Object(type, made.data()) == Object(type));

    const message::Codec codec(type);
    const auto encoded = [&](const void* object) {
      std::vector<std::uint8_t> bytes(codec.encoded_size(object));
      bytes.resize(codec.encode(object, bytes));
      return bytes;
    };
    const std::vector<std::uint8_t> bytes = encoded(copy.data());
    EXPECT_EQ(bytes.size(), encoded(filled.data()).size());  // padding may differ
    Value decoded(kind);
    ASSERT_TRUE(codec.decode(bytes, decoded.data()));
    EXPECT_TRUE(kind.equal(decoded.data(), filled.data()));
  }
}

TEST(Messages, TextsAndSequencesAreThoseOfObjects) {
  EXPECT_EQ(sizeof(Text<>), sizeof(message::Sequence));
  Text<3> text = "abc";
  EXPECT_EQ(text, "abc");
  EXPECT_STREQ(text.c_str(), "abc");
  EXPECT_THROW(text = "abcd", std::length_error);
  EXPECT_EQ(text, "abc");
  text.clear();
  EXPECT_TRUE(text.empty());
  EXPECT_STREQ(Text<>().c_str(), "");
  // Also where its memory is used again.
  for (const char* const value : {"abc", "a", "", "ab"}) {
    text = value;
    EXPECT_EQ(reinterpret_cast<const message::Sequence&>(text).capacity, text.size() + 1);
  }
  text.clear();
  EXPECT_EQ(reinterpret_cast<const message::Sequence&>(text).capacity, 1U);

  Sequence<Text<>, 3> names{"a", "b"};
  names.push_back("c");
  EXPECT_THROW(names.push_back("d"), std::length_error);
  EXPECT_THROW(names.resize(4), std::length_error);
  Sequence<Text<>, 3> other = names;
  names.resize(1);
  names.resize(2);
  EXPECT_EQ(names[1], "");  // unlike before
  EXPECT_EQ(other[1], "b");
  other = std::move(names);
  EXPECT_EQ(other.size(), 2u);
  EXPECT_THROW(static_cast<void>(other.at(2)), std::out_of_range);
  other = std::vector<std::string>{"x", "y", "z"};
  EXPECT_EQ(other.back(), "z");
}

TEST(Messages, OfWhatIsUnknownHaveALine) {
  message::Library library(message::brought());
  const auto refused = [&](const std::string& name) {
    try {
      static_cast<void>(messages::headers_of({name}, library));
    } catch (const BadInput& error) {
      return std::string(error.what());
    }
    return std::string();
  };
  EXPECT_EQ(refused("std_msgs/msg/Strng"), "interface 'std_msgs/msg/Strng' is unknown; did you mean std_msgs/msg/String?");
  EXPECT_EQ(refused("String"), "interface 'String' is unknown; right would be package/msg/Name, package/srv/Name or "
                               "package/action/Name");
}

}  // namespace
}  // namespace perflab
