// Messages of any type in any bytes: the input begins with a type (what its fields are, a byte each), and goes on with
// what comes from the network: bytes as they are, or a message of the type that is cut and overwritten.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "../native/message/plain_cdr.h"
#include "message/codec.h"
#include "message/filter.h"
#include "message/format.h"
#include "message/library.h"
#include "message/object.h"
#include "message/type.h"
#include "require.h"

namespace {

using perflab::fuzz::require;
using namespace perflab::message;

// Bytes of the input, one after the other; zeros behind its end.
class Input {
 public:
  explicit Input(std::span<const std::uint8_t> bytes) : bytes_(bytes) {}
  std::uint8_t next() {
    if (bytes_.empty()) return 0;
    const std::uint8_t byte = bytes_.front();
    bytes_ = bytes_.subspan(1);
    return byte;
  }
  std::size_t below(std::size_t end) { return next() % end; }
  std::uint32_t word() {
    std::uint32_t word = 0;
    for (int i = 0; i < 4; ++i) word = word << 8 | next();
    return word;
  }
  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  [[nodiscard]] std::span<const std::uint8_t> rest() const { return bytes_; }

 private:
  std::span<const std::uint8_t> bytes_;
};

constexpr std::array kElements{"bool",   "byte",   "char",    "int8",    "uint8",     "int16",
                               "uint16", "int32",  "uint32",  "int64",   "uint64",    "float32",
                               "float64", "string", "wstring", "string<=3", "wstring<=2", "perflab_msgs/Header"};
constexpr std::array kPluralities{"", "", "[]", "[<=3]", "[2]", "[<=1]"};
constexpr std::size_t kStructs = 4, kFields = 6;

// A message "T" that is made of others; of each only those before it.
const Type& type_of(Input& input, Library& library, Types& types) {
  const std::size_t structs = 1 + input.below(kStructs);
  for (std::size_t s = 0; s < structs; ++s) {
    std::string text;
    const std::size_t fields = 1 + input.below(kFields);
    for (std::size_t f = 0; f < fields; ++f) {
      const std::size_t element = input.below(kElements.size() + s);
      text += element < kElements.size() ? std::string(kElements[element])
                                         : "S" + std::to_string(element - kElements.size());
      text += kPluralities[input.below(kPluralities.size())];
      text += " f" + std::to_string(f) + "\n";
    }
    library.add_text("fuzz_msgs/msg/S" + std::to_string(s), text, "fuzz");
  }
  return types.find("fuzz_msgs/msg/S" + std::to_string(structs - 1));
}

// What comes from the network.
std::vector<std::uint8_t> bytes_of(Input& input, const Type& type) {
  const std::uint8_t how = input.next();
  const bool little_endian = (how & 1) != 0;
  if ((how & 2) != 0) {
    std::vector<std::uint8_t> bytes{0, static_cast<std::uint8_t>(little_endian ? 1 : 0), 0, 0};
    if ((how & 4) != 0) bytes[1] = input.next();
    bytes.insert(bytes.end(), input.rest().begin(), input.rest().end());
    return bytes;
  }
  Object object(type);
  fill(object, input.below(9), 1);
  std::vector<std::uint8_t> bytes = PlainCdr::encode(type, object.data(), little_endian);
  while (!input.empty()) {
    const std::uint8_t what = input.next();
    const std::size_t at = (static_cast<std::size_t>(input.next()) << 8 | input.next()) % (bytes.size() + 1);
    if (what % 3 == 0) {
      bytes.resize(at);
    } else {
      const std::uint32_t value = what % 3 == 1 ? input.word() : 0xFFFFFFFFu - input.next() % 4u;
      for (std::size_t i = 0; i < 4 && at + i < bytes.size(); ++i)
        bytes[at + i] = static_cast<std::uint8_t>(value >> (little_endian ? 8 * i : 24 - 8 * i));
    }
  }
  return bytes;
}

// Exactly as large as the bytes, so that whatever is read behind them is seen.
struct Exact {
  explicit Exact(std::span<const std::uint8_t> from) : bytes(std::make_unique<std::uint8_t[]>(from.size())) {
    std::ranges::copy(from, bytes.get());
    view = {bytes.get(), from.size()};
  }
  std::unique_ptr<std::uint8_t[]> bytes;
  std::span<const std::uint8_t> view;
};

std::vector<std::uint8_t> encode(const Codec& codec, const Object& object) {
  std::vector<std::uint8_t> bytes(codec.encoded_size(object.data()));
  require(codec.encode(object.data(), bytes) == bytes.size(), "a message has the size that was told");
  return bytes;
}

// What is decoded from the bytes, which is equal to the object.
Object require_same(const Codec& codec, const Object& object, std::span<const std::uint8_t> bytes) {
  Object copy(object.type());
  require(codec.decode(bytes, copy.data()) && copy == object, "what is decoded is what was encoded");
  return copy;
}

// What a filter by all fields that it can compare makes of the bytes, and of what was decoded from them; null where they are no
// message.
void check_filter(const Type& type, const Object* decoded, std::span<const std::uint8_t> bytes) {
  std::string expression;
  for (const Member& member : type.members) {
    const Primitive primitive = member.element.primitive;
    if (member.plurality != Plurality::kOne || member.element.type != nullptr || primitive == Primitive::kWstring) continue;
    const char* const value = primitive == Primitive::kBool ? "= TRUE" : primitive == Primitive::kString ? "> 'm'" : "> 7";
    expression += (expression.empty() ? "" : " OR ") + member.name + " " + value;
  }
  if (expression.empty()) return;
  const Filter filter(type, expression);
  const std::span<const std::uint8_t> halves[] = {bytes.first(bytes.size() / 2), bytes.subspan(bytes.size() / 2)};
  const std::span<const std::uint8_t> whole[] = {bytes};
  const Filter::Match match = filter.match(whole);
  require(filter.match(halves) == match, "pieces change nothing");
  if (decoded == nullptr) return;
  require(match == (filter.match_object(decoded->data()) ? Filter::Match::kYes : Filter::Match::kNo),
          "a filter says the same of a message and of its struct");
}

void check(const Type& type, const Codec& codec, Object& used, std::span<const std::uint8_t> from) {
  const Exact exact(from);
  const std::span<const std::uint8_t> bytes = exact.view;
  const std::size_t extent = codec.extent(bytes);
  require(extent <= bytes.size(), "a message is within its bytes");
  Object object(type);
  const bool decoded = codec.decode(bytes, object.data());
  require(decoded == (extent > 0), "what is a message for one is one for all");
  check_filter(type, decoded ? &object : nullptr, bytes);
  const bool again = codec.decode(bytes, used.data());
  require(again == decoded, "memory that is used again changes nothing");
  for (const Member& member : type.members)
    require(codec.position_in(bytes, member.offset) < bytes.size() + 1, "a place is within the bytes");
  if (!decoded) return;
  require(used == object, "memory that is used again changes nothing");
  require(codec.fixed_size() == 0 || extent == codec.fixed_size(), "a fixed size is that of every message");
  Object cut(type);
  require(!codec.decode(bytes.first(extent - 1), cut.data()), "a message ends with its last byte");

  // Bytes of its own say the same, in either byte order, and are those that the rules say, apart from padding that came
  // with the message.
  require_same(codec, object, encode(codec, object));
  for (const bool little_endian : {true, false}) {
    const std::vector<std::uint8_t> plain = PlainCdr::encode(type, object.data(), little_endian);
    const Object copy = require_same(codec, object, plain);
    require(is_swapped(plain) || encode(codec, copy) == plain, "the bytes are those of CDR's rules");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Input input({data, size});
  Library library;
  library.add_text("perflab_msgs/msg/Header", "int64 intended\nint64 published\nuint64 number\nuint32 size\nfloat32 rate\n",
                   "Header.msg");
  Types types(library);
  const Type& type = type_of(input, library, types);
  const Codec codec(type);
  const std::vector<std::uint8_t> bytes = bytes_of(input, type);
  Object used(type);
  fill(used, 5, 2);
  check(type, codec, used, bytes);
  return 0;
}
