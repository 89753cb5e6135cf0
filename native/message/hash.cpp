#include "message/hash.h"

#include "base/hex.h"
#include "message/sha256.h"

namespace perflab::message {
namespace {

// type_description_interfaces/msg/FieldType: an element's number, plus one for its plurality.
constexpr int kNested = 1;
constexpr int kBoundedString = 21;
constexpr int kBoundedWstring = 22;

int number_of(Primitive primitive, bool bounded) {
  switch (primitive) {
    case Primitive::kInt8:
      return 2;
    case Primitive::kChar:  // rosidl_adapter converts it to uint8
    case Primitive::kUint8:
      return 3;
    case Primitive::kInt16:
      return 4;
    case Primitive::kUint16:
      return 5;
    case Primitive::kInt32:
      return 6;
    case Primitive::kUint32:
      return 7;
    case Primitive::kInt64:
      return 8;
    case Primitive::kUint64:
      return 9;
    case Primitive::kFloat32:
      return 10;
    case Primitive::kFloat64:
      return 11;
    case Primitive::kBool:
      return 15;
    case Primitive::kByte:
      return 16;
    case Primitive::kString:
      return bounded ? kBoundedString : 17;
    case Primitive::kWstring:
      return bounded ? kBoundedWstring : 18;
  }
  return 0;
}

int number_of(Plurality plurality) {
  switch (plurality) {
    case Plurality::kOne:
      return 0;
    case Plurality::kArray:
      return 48;
    case Plurality::kBounded:
      return 96;
    case Plurality::kSequence:
      return 144;
  }
  return 0;
}

// Names need no escapes: they consist of letters, digits, underscores and slashes.
void append(std::string& json, const Field& field) {
  const auto* const primitive = std::get_if<Primitive>(&field.type.element);
  const int element = primitive != nullptr ? number_of(*primitive, field.type.text_bound > 0) : kNested;
  json.append("{\"name\": \"").append(field.name);
  json.append("\", \"type\": {\"type_id\": ");
  json.append(std::to_string(element + number_of(field.type.plurality)));
  json.append(", \"capacity\": ").append(std::to_string(field.type.count));
  json.append(", \"string_capacity\": ").append(std::to_string(field.type.text_bound));
  json.append(", \"nested_type_name\": \"");
  if (primitive == nullptr) json += std::get<std::string>(field.type.element);
  json += "\"}}";
}

void append(std::string& json, const Definition& type) {
  json.append("{\"type_name\": \"").append(type.name).append("\", \"fields\": [");
  const char* separator = "";
  for (const Field& field : type.fields) {
    json += separator;
    append(json, field);
    separator = ", ";
  }
  json += "]}";
}

}  // namespace

std::string type_description(const Definition& type, std::span<const Definition* const> referenced) {
  std::string json = "{\"type_description\": ";
  append(json, type);
  json += ", \"referenced_type_descriptions\": [";
  const char* separator = "";
  for (const Definition* const other : referenced) {
    json += separator;
    append(json, *other);
    separator = ", ";
  }
  return json += "]}";
}

std::string rihs01(const Definition& type, std::span<const Definition* const> referenced) {
  return "RIHS01_" + to_hex(sha256(type_description(type, referenced)));
}

}  // namespace perflab::message
