// Answers each line of standard input with one line, so that a test can compare the codec with another CDR
// library. TYPE is a full name; HEX is a message with its encapsulation header.
//
//   decode TYPE HEX          the message, decoded and encoded again in native byte order, or "refused"
//   fill TYPE LENGTH SEED    a filled message (object.h)
//   hash TYPE                RIHS01_...
//   filter TYPE HEX FILTER   result for a message: "yes", "no" or "malformed"; or the error in the filter
#include <iostream>
#include <map>
#include <memory>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "message/codec.h"
#include "message/definitions.h"
#include "message/filter.h"
#include "message/library.h"
#include "message/object.h"

namespace {

using namespace perflab::message;

// Tests are compiled without optimization, and messages have megabytes: base/hex.h would dominate the run
// time.
std::string to_hex(const std::vector<std::uint8_t>& bytes) {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string text(2 * bytes.size(), '0');
  char* to = text.data();
  const std::uint8_t* const end = bytes.data() + bytes.size();
  for (const std::uint8_t* byte = bytes.data(); byte != end; ++byte) {
    *to++ = kDigits[*byte >> 4];
    *to++ = kDigits[*byte & 15];
  }
  return text;
}

std::vector<std::uint8_t> from_hex(const std::string& text) {
  std::uint8_t values[256] = {};
  for (unsigned digit = 0; digit < 16; ++digit)
    values[static_cast<std::uint8_t>("0123456789abcdef"[digit])] = static_cast<std::uint8_t>(digit);
  std::vector<std::uint8_t> bytes(text.size() / 2);
  const auto* from = reinterpret_cast<const std::uint8_t*>(text.data());
  std::uint8_t* const end = bytes.data() + bytes.size();
  for (std::uint8_t* byte = bytes.data(); byte != end; ++byte, from += 2)
    *byte = static_cast<std::uint8_t>(values[from[0]] << 4 | values[from[1]]);
  return bytes;
}

class Tool {
 public:
  std::string answer(const std::string& line) {
    std::istringstream words(line);
    std::string question, type;
    words >> question >> type;
    if (question == "decode") {
      std::string hex;
      words >> hex;
      return decode(codec(type), from_hex(hex));
    }
    if (question == "fill") {
      std::size_t length = 0;
      std::uint64_t seed = 0;
      words >> length >> seed;
      Object object(codec(type).type());
      fill(object, length, seed);
      return encode(codec(type), object);
    }
    if (question == "hash") return library_.hash(type);
    if (question == "filter") {
      std::string hex, expression;
      words >> hex;
      std::getline(words, expression);
      return filtered(types_.find(type), from_hex(hex), expression);
    }
    throw perflab::BadInput("no such question: " + line);
  }

 private:
  const Codec& codec(const std::string& type) {
    std::unique_ptr<Codec>& codec = codecs_[type];
    if (!codec) codec = std::make_unique<Codec>(types_.find(type));
    return *codec;
  }

  static std::string encode(const Codec& codec, const Object& object) {
    std::vector<std::uint8_t> bytes(codec.encoded_size(object.data()));
    codec.encode(object.data(), bytes);
    return to_hex(bytes);
  }

  static std::string decode(const Codec& codec, const std::vector<std::uint8_t>& bytes) {
    Object object(codec.type());
    return codec.decode(bytes, object.data()) ? encode(codec, object) : "refused";
  }

  static std::string filtered(const Type& type, const std::vector<std::uint8_t>& bytes, const std::string& expression) {
    try {
      const Filter filter(type, expression);
      const std::span<const std::uint8_t> pieces[] = {bytes};
      const Filter::Match match = filter.match(pieces);
      return match == Filter::Match::kYes ? "yes" : match == Filter::Match::kNo ? "no" : "malformed";
    } catch (const perflab::BadInput& error) {
      return error.what();
    }
  }

  Library library_{brought()};
  Types types_{library_};
  std::map<std::string, std::unique_ptr<Codec>> codecs_;
};

}  // namespace

int main() {
  std::ios::sync_with_stdio(false);  // messages of megabytes
  Tool tool;
  try {
    for (std::string line; std::getline(std::cin, line);) std::cout << tool.answer(line) << std::endl;
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 1;
  }
}
