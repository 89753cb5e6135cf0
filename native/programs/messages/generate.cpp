#include "programs/messages/generate.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <set>
#include <sstream>
#include <string_view>
#include <utility>
#include <variant>

#include "base/error.h"
#include "base/text.h"
#include "message/names.h"
#include "message/type.h"

namespace perflab::messages {
namespace {

using message::Definition;
using message::Element;
using message::Primitive;

// C++ keywords that are valid field names; the member then gets a trailing underscore.
constexpr std::array kReserved{
    "alignas", "alignof", "and", "asm", "auto", "bitand", "bitor", "bool", "break", "case", "catch", "char", "class",
    "compl", "concept", "const", "constexpr", "consteval", "constinit", "continue", "decltype", "default", "delete", "do",
    "double", "else", "enum", "explicit", "export", "extern", "false", "float", "for", "friend", "goto", "if", "inline",
    "int", "long", "mutable", "namespace", "new", "noexcept", "not", "nullptr", "operator", "or", "private", "protected",
    "public", "register", "requires", "return", "short", "signed", "sizeof", "static", "struct", "switch", "template",
    "this", "throw", "true", "try", "typedef", "typeid", "typename", "union", "unsigned", "using", "virtual", "void",
    "volatile", "while", "xor"};

std::string member_name(const std::string& field) {
  return std::ranges::find(kReserved, std::string_view(field)) == kReserved.end() ? field : field + "_";
}

// The parts of "sensor_msgs/msg/JointState".
struct Name {
  std::string package, kind, name;

  explicit Name(const std::string& full) {
    const std::size_t first = full.find('/'), second = full.find('/', first + 1);
    package = full.substr(0, first);
    kind = full.substr(first + 1, second - first - 1);
    name = full.substr(second + 1);
  }
  [[nodiscard]] std::string full() const { return package + "/" + kind + "/" + name; }
  [[nodiscard]] std::string space() const { return "perflab::messages::" + package + "::" + kind; }
  [[nodiscard]] std::string qualified() const { return "::" + space() + "::" + name; }
  [[nodiscard]] std::string header() const {
    return "messages/" + package + "/" + kind + "/" + message::snake_case(name) + ".h";
  }
};

// The interface of a struct: for "SetBool_Request" it is "SetBool".
Name interface_of(const std::string& full) {
  Name name(full);
  if (name.kind != "msg") name.name = name.name.substr(0, name.name.find('_'));
  return name;
}

std::string_view number_of(Primitive primitive) {
  switch (primitive) {
    case Primitive::kBool:
      return "bool";
    case Primitive::kByte:
    case Primitive::kChar:
    case Primitive::kUint8:
      return "std::uint8_t";
    case Primitive::kInt8:
      return "std::int8_t";
    case Primitive::kInt16:
      return "std::int16_t";
    case Primitive::kUint16:
      return "std::uint16_t";
    case Primitive::kInt32:
      return "std::int32_t";
    case Primitive::kUint32:
      return "std::uint32_t";
    case Primitive::kInt64:
      return "std::int64_t";
    case Primitive::kUint64:
      return "std::uint64_t";
    case Primitive::kFloat32:
      return "float";
    case Primitive::kFloat64:
      return "double";
    case Primitive::kString:
    case Primitive::kWstring:
      break;
  }
  return "";
}

std::string element_of(const Element& element) {
  if (element.type != nullptr) return Name(element.type->name).qualified();
  if (!element.is_text()) return std::string(number_of(element.primitive));
  const std::string bound = element.text_bound > 0 ? std::to_string(element.text_bound) : "";
  return (element.primitive == Primitive::kString ? "Text<" : "WideText<") + bound + ">";
}

std::string type_of(const message::Member& member) {
  const std::string element = element_of(member.element);
  switch (member.plurality) {
    case message::Plurality::kOne:
      return element;
    case message::Plurality::kArray:
      return "std::array<" + element + ", " + std::to_string(member.count) + ">";
    case message::Plurality::kBounded:
      return "Sequence<" + element + ", " + std::to_string(member.count) + ">";
    case message::Plurality::kSequence:
      return "Sequence<" + element + ">";
  }
  return element;
}

// `wide`: a UTF-16 literal, converted by the compiler from the UTF-8 source.
std::string literal_of(std::string_view text, bool wide = false) {
  std::string literal = wide ? "u\"" : "\"";
  for (const char c : text) {
    const auto octet = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      literal += std::string("\\") + c;
    } else if (octet >= 0x20 && (octet < 0x7F || wide)) {
      literal += c;
    } else {  // as octal, which has at most three digits
      for (const int shift : {6, 3, 0}) literal += (shift == 6 ? "\\" : "") + std::to_string(octet >> shift & 7);
    }
  }
  return literal + "\"";
}

std::string real_of(double value, bool single) {
  const std::string limits = single ? "std::numeric_limits<float>::" : "std::numeric_limits<double>::";
  if (std::isnan(value)) return limits + "quiet_NaN()";
  if (std::isinf(value)) return (value < 0 ? "-" : "") + limits + "infinity()";
  std::ostringstream text;
  text.precision(std::numeric_limits<double>::max_digits10);
  text << value;
  return (single ? "static_cast<float>(" : "") + text.str() + (single ? ")" : "");
}

// A default or constant as an expression of that type.
std::string expression_of(const message::Value& value, Primitive primitive) {
  return std::visit(
      [&]<typename Given>(const Given& given) -> std::string {
        if constexpr (std::is_same_v<Given, std::string>) {
          return literal_of(given, primitive == Primitive::kWstring);
        } else {
          if (primitive == Primitive::kFloat32 || primitive == Primitive::kFloat64)
            return real_of(static_cast<double>(given), primitive == Primitive::kFloat32);
          if (primitive == Primitive::kBool) return given != 0 ? "true" : "false";
          const std::string type(number_of(primitive));
          if constexpr (std::is_same_v<Given, std::uint64_t>) return "static_cast<" + type + ">(" + std::to_string(given) + "U)";
          if constexpr (std::is_same_v<Given, std::int64_t>) {
            if (given == std::numeric_limits<std::int64_t>::min()) return "std::numeric_limits<std::int64_t>::min()";
          }
          return "static_cast<" + type + ">(" + std::to_string(static_cast<std::int64_t>(given)) + ")";
        }
      },
      value);
}

std::string initial(const message::Member& member) {
  if (member.defaults.empty()) return "{}";
  std::string list;
  for (const message::Value& value : member.defaults)
    list += (list.empty() ? "" : ", ") + expression_of(value, member.element.primitive);
  return "{" + list + "}";
}

class Writer {
 public:
  Writer(message::Library& library, std::map<std::string, std::string>& headers)
      : library_(library), types_(library), headers_(headers) {}

  void add(const Name& interface) {
    if (!headers_.emplace(interface.header(), "").second) return;
    std::ostringstream body;
    std::set<std::string> included;
    for (const std::string& part : parts_of(interface)) write_struct(part, interface, body, included);
    if (interface.kind == "srv") write_service(interface, body);
    if (interface.kind == "action") write_action(interface, body);
    std::ostringstream header;
    header << "// Made of " << interface.full() << " by perflab-messages.\n#pragma once\n\n"
           << "#include <array>\n#include <cstddef>\n#include <cstdint>\n#include <limits>\n#include <string_view>\n\n"
           << "#include \"program/message.h\"\n";
    for (const std::string& path : included) header << "#include \"" << path << "\"\n";
    header << "\nnamespace " << interface.space() << " {\n\n" << body.str() << "}  // namespace " << interface.space() << "\n";
    headers_[interface.header()] = header.str();
  }

 private:
  static std::vector<std::string> parts_of(const Name& interface) {
    const std::string full = interface.full();
    if (interface.kind == "srv") return {full + "_Request", full + "_Response"};
    if (interface.kind == "action") return {full + "_Goal", full + "_Result", full + "_Feedback"};
    return {full};
  }

  void write_struct(const std::string& full, const Name& interface, std::ostringstream& to, std::set<std::string>& included) {
    const message::Type& type = types_.find(full);
    const Name name(full);
    to << "struct " << name.name << " {\n"
       << "  static constexpr const char* kTypeName = " << literal_of(full) << ";\n"
       << "  static constexpr const char* kTypeHash = " << literal_of(library_.hash(full)) << ";\n";
    for (const message::Constant& constant : library_.find(full).constants) {
      const bool text = message::is_text(constant.type);
      const std::string_view view = constant.type == Primitive::kWstring ? "std::u16string_view" : "std::string_view";
      to << "  static constexpr " << (text ? view : number_of(constant.type)) << " " << member_name(constant.name) << " = "
         << expression_of(constant.value, constant.type) << ";\n";
    }
    to << "\n";
    for (const message::Member& member : type.members) {
      to << "  " << type_of(member) << " " << member_name(member.name) << initial(member) << ";\n";
      if (member.element.type != nullptr) {
        const Name other = interface_of(member.element.type->name);
        if (other.full() != interface.full()) included.insert(other.header());
        add(other);
      }
    }
    to << "\n  bool operator==(const " << name.name << "&) const = default;\n};\n";
    to << "static_assert(sizeof(" << name.name << ") == " << type.size << " && alignof(" << name.name
       << ") == " << type.alignment << ");\n";
    for (const message::Member& member : type.members)
      to << "static_assert(offsetof(" << name.name << ", " << member_name(member.name) << ") == " << member.offset << ");\n";
    to << "\n";
  }

  static void write_service(const Name& name, std::ostringstream& to) {
    to << "struct " << name.name << " {\n  static constexpr const char* kTypeName = " << literal_of(name.full()) << ";\n"
       << "  using Request = " << name.name << "_Request;\n  using Response = " << name.name << "_Response;\n};\n\n";
  }
  static void write_action(const Name& name, std::ostringstream& to) {
    to << "struct " << name.name << " {\n  static constexpr const char* kTypeName = " << literal_of(name.full()) << ";\n"
       << "  using Goal = " << name.name << "_Goal;\n  using Result = " << name.name << "_Result;\n  using Feedback = "
       << name.name << "_Feedback;\n};\n\n";
  }

  message::Library& library_;
  message::Types types_;
  std::map<std::string, std::string>& headers_;
};

}  // namespace

std::string header_of_all(const std::map<std::string, std::string>& headers) {
  std::ostringstream all, each;
  all << "// Made by perflab-messages.\n#pragma once\n\n";
  for (const auto& [path, text] : headers) {
    all << "#include \"" << path << "\"\n";
    constexpr std::string_view kName = "kTypeName = \"", kHash = "\";\n  static constexpr const char* kTypeHash";
    for (std::size_t at = text.find(kName); at != std::string::npos; at = text.find(kName, at + 1)) {
      const std::size_t begin = at + kName.size(), end = text.find('"', begin);
      // Those with a hash are structs, the others list the parts of a service or action.
      if (text.compare(end, kHash.size(), kHash) == 0) each << " VISIT(" << Name(text.substr(begin, end - begin)).qualified() << ")";
    }
  }
  all << "\n#define PERFLAB_EACH_MESSAGE(VISIT)" << each.str() << "\n";
  return all.str();
}

std::map<std::string, std::string> headers_of(const std::vector<std::string>& interfaces, message::Library& library) {
  std::map<std::string, std::string> headers;
  Writer writer(library, headers);
  const std::vector<std::string> known = library.names();
  for (const std::string& interface : interfaces) {
    if (!std::ranges::binary_search(known, interface)) {
      const std::string_view near = closest(interface, {known.begin(), known.end()});
      throw BadInput("interface " + quote(interface) + " is unknown" +
                     (near.empty() ? "; right would be package/msg/Name, package/srv/Name or package/action/Name"
                                   : "; did you mean " + std::string(near) + "?"));
    }
    writer.add(Name(interface));
  }
  return headers;
}

}  // namespace perflab::messages
