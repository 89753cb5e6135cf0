#include "message/parse.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <span>
#include <utility>

#include "base/error.h"
#include "base/text.h"
#include "message/literal.h"

namespace perflab::message {
namespace {

constexpr std::array kKinds{std::pair{InterfaceKind::kMessage, std::string_view("msg")},
                            std::pair{InterfaceKind::kService, std::string_view("srv")},
                            std::pair{InterfaceKind::kAction, std::string_view("action")}};

// Suffixes of structs of a service or action. First those defined by the text.
constexpr std::array<std::string_view, 2> kServiceParts{"_Request", "_Response"};
constexpr std::array<std::string_view, 3> kActionParts{"_Goal", "_Result", "_Feedback"};
constexpr std::string_view kEvent = "_Event";
constexpr std::string_view kSendGoal = "_SendGoal";
constexpr std::string_view kGetResult = "_GetResult";
constexpr std::string_view kFeedbackMessage = "_FeedbackMessage";

constexpr std::string_view kSeparator = "---";
constexpr char kComment = '#';
constexpr char kAssignment = '=';
constexpr std::string_view kBound = "<=";
constexpr std::string_view kKey = "@key";

bool is_lower(char c) noexcept { return c >= 'a' && c <= 'z'; }
bool is_upper(char c) noexcept { return c >= 'A' && c <= 'Z'; }
bool is_word(char c) noexcept { return is_lower(c) || is_upper(c) || is_digit(c) || c == '_'; }

// A letter of the given case first, then letters of that case, digits and single underscores; no underscore
// at the end.
bool is_snake(std::string_view name, bool (*is_letter)(char)) {
  if (name.empty() || name.size() > kMaxNameBytes || !is_letter(name[0]) || name.ends_with('_')) return false;
  return name.find("__") == std::string_view::npos &&
         std::ranges::all_of(name, [&](char c) { return is_letter(c) || is_digit(c) || c == '_'; });
}

bool is_camel(std::string_view name) {
  return !name.empty() && name.size() <= kMaxNameBytes && is_upper(name[0]) &&
         std::ranges::all_of(name, [](char c) { return is_word(c) && c != '_'; });
}

// rosidl allows message names that look like parts of services and actions.
bool is_message(std::string_view name) {
  if (name.starts_with("Sample_")) name.remove_prefix(7);
  for (const std::string_view part : {"_Request", "_Response", "_Goal", "_Result", "_Feedback"}) {
    if (name.ends_with(part)) name.remove_suffix(part.size());
  }
  return is_camel(name);
}

constexpr std::string_view kSnakeRule =
    "use lower case letters, digits and single underscores, a letter first";
constexpr std::string_view kCamelRule = "use letters and digits, in CamelCase";

// True if a struct of a service has this suffix.
bool is_service_part(std::string_view suffix) {
  return suffix == kEvent || std::ranges::find(kServiceParts, suffix) != kServiceParts.end();
}

bool is_action_service(std::string_view suffix) { return suffix == kSendGoal || suffix == kGetResult; }

bool is_suffix(InterfaceKind kind, std::string_view suffix) {
  if (suffix.empty()) return true;
  if (kind == InterfaceKind::kService) return is_service_part(suffix);
  if (kind != InterfaceKind::kAction) return false;
  for (const std::string_view service : {kSendGoal, kGetResult}) {
    if (suffix.starts_with(service)) {
      const std::string_view part = suffix.substr(service.size());
      return part.empty() || is_service_part(part);
    }
  }
  return suffix == kFeedbackMessage || std::ranges::find(kActionParts, suffix) != kActionParts.end();
}

// "std_srvs/srv/SetBool" and "_Request" for "std_srvs/srv/SetBool_Request". Names of services and actions
// have no underscores; those of messages may.
std::optional<std::pair<InterfaceName, std::string_view>> split_struct(std::string_view struct_name) {
  std::optional<InterfaceName> name = split_name(struct_name);
  if (!name) return std::nullopt;
  std::string_view suffix;
  if (name->kind != InterfaceKind::kMessage) {
    const std::size_t underscore = name->name.find('_');
    if (underscore != std::string::npos) {
      suffix = struct_name.substr(struct_name.size() - (name->name.size() - underscore));
      name->name.resize(underscore);
    }
  }
  if (!is_suffix(name->kind, suffix)) return std::nullopt;
  return std::pair{*std::move(name), suffix};
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (static_cast<unsigned char>(c) & 0xc0) != 0x80; }));
}

bool has_key(std::string_view comment) {
  for (std::size_t at = comment.find(kKey); at != std::string_view::npos; at = comment.find(kKey, at + 1)) {
    const std::size_t end = at + kKey.size();
    const bool begins = at == 0 || !is_word(comment[at - 1]);
    if (begins && (end == comment.size() || !is_word(comment[end]))) return true;
  }
  return false;
}

Field nested(std::string name, std::string type, Plurality plurality = Plurality::kOne,
             std::uint64_t count = 0) {
  return {std::move(name), {std::move(type), plurality, count, 0}, {}, false, false};
}

Field primitive(std::string name, Primitive type) {
  return {std::move(name), {type, Plurality::kOne, 0, 0}, {}, false, false};
}

// A derived struct, which has no line in the file.
Definition derived(std::string name, std::vector<Field> fields, const std::string& source) {
  std::vector<Place> places(fields.size(), Place{source, 0, 0});
  return {std::move(name), std::move(fields), {}, std::move(places)};
}

// Appends what follows from a service's request and response: its event, and the service itself.
void derive_service(const std::string& service, const std::string& source, std::vector<Definition>& structs) {
  const std::string request = service + std::string(kServiceParts[0]);
  const std::string response = service + std::string(kServiceParts[1]);
  const std::string event = service + std::string(kEvent);
  structs.push_back(derived(event,
                            {nested("info", "service_msgs/msg/ServiceEventInfo"),
                             nested("request", request, Plurality::kBounded, 1),
                             nested("response", response, Plurality::kBounded, 1)},
                            source));
  structs.push_back(derived(service,
                            {nested("request_message", request), nested("response_message", response),
                             nested("event_message", event)},
                            source));
}

void derive_action(const std::string& action, const std::string& source, std::vector<Definition>& structs) {
  const std::string goal = action + std::string(kActionParts[0]);
  const std::string result = action + std::string(kActionParts[1]);
  const std::string feedback = action + std::string(kActionParts[2]);
  const std::string message = action + std::string(kFeedbackMessage);
  const std::string send = action + std::string(kSendGoal);
  const std::string get = action + std::string(kGetResult);
  const Field goal_id = nested("goal_id", "unique_identifier_msgs/msg/UUID");
  const auto add = [&](std::string name, std::vector<Field> fields) {
    structs.push_back(derived(std::move(name), std::move(fields), source));
  };
  add(message, {goal_id, nested("feedback", feedback)});
  add(send + std::string(kServiceParts[0]), {goal_id, nested("goal", goal)});
  add(send + std::string(kServiceParts[1]),
      {primitive("accepted", Primitive::kBool), nested("stamp", "builtin_interfaces/msg/Time")});
  derive_service(send, source, structs);
  add(get + std::string(kServiceParts[0]), {goal_id});
  add(get + std::string(kServiceParts[1]), {primitive("status", Primitive::kInt8), nested("result", result)});
  derive_service(get, source, structs);
  add(action, {nested("goal", goal), nested("result", result), nested("feedback", feedback),
               nested("send_goal_service", send), nested("get_result_service", get),
               nested("feedback_message", message)});
}

class Parser {
 public:
  Parser(const InterfaceName& name, std::string_view text, const std::string& source)
      : name_(name), text_(text), source_(source) {}

  std::vector<Definition> run() {
    check_name();
    check_text();
    begin_struct();
    std::string_view rest = text_;
    if (rest.starts_with("\xef\xbb\xbf")) rest.remove_prefix(3);  // the byte order mark of some editors
    while (!rest.empty()) read_line(take_line(rest));
    end_struct();
    if (structs_.size() != parts().size()) refuse_separators();
    if (name_.kind == InterfaceKind::kService) derive_service(name_.full(), source_, structs_);
    if (name_.kind == InterfaceKind::kAction) derive_action(name_.full(), source_, structs_);
    return std::move(structs_);
  }

 private:
  // ---- the file as a whole

  void check_name() const {
    if (!is_snake(name_.package, is_lower)) {
      refuse({source_, 0, 0},
             quote(name_.package) + " is not a package name; " + std::string(kSnakeRule));
    }
    if (name_.kind == InterfaceKind::kMessage ? !is_message(name_.name) : !is_camel(name_.name)) {
      refuse({source_, 0, 0}, quote(name_.name) + " is not an interface name; " + std::string(kCamelRule));
    }
  }

  void check_text() const {
    if (text_.size() > kMaxTextBytes) {
      refuse({source_, 0, 0}, std::to_string(text_.size()) + " bytes; an interface file has at most " +
                                  std::to_string(kMaxTextBytes));
    }
    if (const std::size_t bad = find_invalid_utf8(text_); bad != std::string_view::npos) {
      refuse(place_of(bad), "not UTF-8 text; is it an interface file?");
    }
    if (const std::size_t bad = text_.find('\0'); bad != std::string_view::npos) {
      refuse(place_of(bad), "a NUL byte; an interface file is text");
    }
  }

  // Counts from the beginning, so only for errors.
  Place place_of(std::size_t offset) const {
    const std::string_view before = text_.substr(0, offset);
    const auto line = static_cast<std::size_t>(std::ranges::count(before, '\n')) + 1;
    const std::size_t begin = before.rfind('\n') + 1;
    return {source_, line, characters(before.substr(begin)) + 1};
  }

  // ---- lines

  // Up to "\n", "\r\n" or "\r".
  std::string_view take_line(std::string_view& rest) {
    const std::size_t end = std::min(rest.size(), rest.find_first_of("\r\n"));
    const std::string_view line = rest.substr(0, end);
    const bool pair = rest.substr(end).starts_with("\r\n");
    rest.remove_prefix(std::min(rest.size(), end + (pair ? 2 : 1)));
    ++number_;
    return line;
  }

  void read_line(std::string_view line) {
    line_ = line;
    line = line.substr(0, line.find_last_not_of(" \t\v\f") + 1);
    if (line.starts_with(kSeparator)) return read_separator(line);
    const std::size_t hash = line.find(kComment);
    const std::string_view comment = hash == std::string_view::npos ? "" : line.substr(hash);
    const std::string_view content = line.substr(0, hash);
    if (trimmed(content).empty()) return read_comment(comment, !content.empty());
    const bool key = has_key(comment) || key_above_;
    key_above_ = false;
    if (is_blank(content[0])) {
      refuse(content, "the line begins with a blank; ROS 2 requires the type in the first column");
    }
    read_definition(trimmed(content));
    if (key) set_key(comment.empty() ? content : comment);
  }

  // An indented comment continues what is above it, any other introduces what is below, as in rosidl.
  void read_comment(std::string_view comment, bool indented) {
    if (comment.empty()) {
      key_above_ = false;
    } else if (!indented) {
      key_above_ = key_above_ || has_key(comment);
    } else if (has_key(comment)) {
      set_key(comment);
    }
  }

  void set_key(std::string_view at) {
    if (!last_is_field_) {
      refuse(at, "@key belongs to no field; put it in a comment after a field or directly above one");
    }
    current().fields.back().key = true;
  }

  void read_separator(std::string_view line) {
    if (line != kSeparator) refuse(line, "a separator is a line that contains only ---");
    end_struct();
    if (structs_.size() >= parts().size()) refuse_separators();
    begin_struct();
  }

  std::span<const std::string_view> parts() const {
    static constexpr std::array<std::string_view, 1> kWhole{""};
    if (name_.kind == InterfaceKind::kService) return kServiceParts;
    if (name_.kind == InterfaceKind::kAction) return kActionParts;
    return kWhole;
  }

  [[noreturn]] void refuse_separators() const {
    const Place place{source_, std::max<std::size_t>(number_, 1), 1};
    switch (name_.kind) {
      case InterfaceKind::kMessage:
        refuse(place, "a message has no separator ---; only services (.srv) and actions (.action) have one");
      case InterfaceKind::kService:
        refuse(place, "a service has one separator ---, between request and response");
      case InterfaceKind::kAction:
        break;
    }
    refuse(place, "an action has two separators ---, between goal, result and feedback");
  }

  // ---- structs

  struct Seen {
    std::map<std::string_view, std::size_t> fields;  // field names and their lines
    std::map<std::string_view, std::size_t> constants;
  };

  Definition& current() { return structs_.back(); }

  void begin_struct() {
    structs_.push_back({name_.full() + std::string(parts()[structs_.size()]), {}, {}, {}});
    seen_ = {};
    key_above_ = false;
    last_is_field_ = false;
  }

  void end_struct() {
    if (!current().fields.empty()) return;
    current().fields.push_back(primitive("structure_needs_at_least_one_member", Primitive::kUint8));
    current().places.push_back({source_, 0, 0});
  }

  // ---- definitions

  void read_definition(std::string_view content) {
    const std::size_t type_end = std::min(content.size(), content.find_first_of(" \t"));
    const std::string_view type = content.substr(0, type_end);
    const std::string_view rest = trimmed(content.substr(type_end));
    if (rest.empty()) {
      refuse(type,
             quote(type) + " is not followed by a name; write  TYPE NAME, TYPE NAME DEFAULT or TYPE "
                           "NAME=VALUE");
    }
    const std::size_t assignment = rest.find(kAssignment);
    if (assignment == std::string_view::npos) {
      const std::size_t name_end = std::min(rest.size(), rest.find_first_of(" \t"));
      read_field(type, rest.substr(0, name_end), trimmed(rest.substr(name_end)));
    } else {
      read_constant(type, trimmed(rest.substr(0, assignment)), trimmed(rest.substr(assignment + 1)),
                    rest.substr(assignment, 1));
    }
  }

  void read_field(std::string_view type, std::string_view name, std::string_view value) {
    Field field{std::string(name), read_type(type), {}, !value.empty(), false};
    if (name.starts_with('[')) refuse(name, "remove the blank before [; write T[N] NAME");
    if (!is_snake(name, is_lower)) {
      refuse(name, quote(name) + " is not a field name; " + std::string(kSnakeRule));
    }
    note_name(seen_.fields, "field", name);
    if (field.has_default) read_default(field, value);
    current().fields.push_back(std::move(field));
    current().places.push_back(place(type));
    last_is_field_ = true;
  }

  void read_constant(std::string_view type, std::string_view name, std::string_view value,
                     std::string_view sign) {
    const std::optional<Primitive> known = primitive_of(type);
    if (!is_snake(name, is_upper)) {
      if (name.empty()) refuse(sign, "the name of the constant is missing; write TYPE NAME=VALUE");
      if (name.starts_with('<')) refuse(name, "remove the blank before <=; write string<=N NAME");
      refuse(name, quote(name) + " is not a constant name; use upper case letters, digits and single "
                                 "underscores, a letter first (a line with = is a constant)");
    }
    if (!known) {
      read_type(type);  // reports an unknown type first
      refuse(type, "a constant has a primitive type without bounds, such as int32 or string");
    }
    note_name(seen_.constants, "constant", name);
    if (value.empty() && !is_text(*known)) refuse(sign, "the value is missing; write TYPE NAME=VALUE");
    Value read = read_value(*known, 0, value, value.empty() ? sign : value);
    current().constants.push_back({std::string(name), *known, std::move(read)});
    last_is_field_ = false;
  }

  void note_name(std::map<std::string_view, std::size_t>& lines, std::string_view what,
                 std::string_view name) {
    const auto [known, is_new] = lines.emplace(name, number_);
    if (is_new) return;
    refuse(name, std::string(what) + " " + quote(name) + " is also in line " + std::to_string(known->second) +
                     "; give each its own name");
  }

  // ---- types

  FieldType read_type(std::string_view text) {
    FieldType type;
    std::string_view element = text;
    if (text.ends_with(']')) {
      const std::size_t bracket = text.rfind('[');
      if (bracket == std::string_view::npos) {
        refuse(text, quote(text) + " has no [; write T[N], T[<=N] or T[]");
      }
      element = text.substr(0, bracket);
      if (element.ends_with(']')) {
        refuse(text, "ROS 2 has no arrays of arrays; put the inner one into a message");
      }
      read_plurality(type, text.substr(bracket + 1, text.size() - bracket - 2));
    }
    if (element.empty()) refuse(text, "the type is missing; write TYPE NAME");
    if (const std::optional<Primitive> known = primitive_of(element)) {
      type.element = *known;
      return type;
    }
    const std::size_t bound = element.find(kBound);
    if (bound != std::string_view::npos) {
      const std::optional<Primitive> known = primitive_of(element.substr(0, bound));
      if (!known || !is_text(*known)) {
        refuse(element, "only string and wstring can have a bound; for a bounded sequence write T[<=N]");
      }
      type.element = *known;
      type.text_bound = read_count(element.substr(bound + kBound.size()), element);
      return type;
    }
    type.element = read_struct_name(element);
    return type;
  }

  void read_plurality(FieldType& type, std::string_view inner) {
    if (inner.empty()) {
      type.plurality = Plurality::kSequence;
      return;
    }
    const bool bounded = inner.starts_with(kBound);
    type.plurality = bounded ? Plurality::kBounded : Plurality::kArray;
    type.count = read_count(bounded ? inner.substr(kBound.size()) : inner, inner);
  }

  std::uint64_t read_count(std::string_view digits, std::string_view at) {
    std::uint64_t count = 0;
    const char* const end = digits.data() + digits.size();
    const auto [last, code] = std::from_chars(digits.data(), end, count);
    const bool number = last == end && code != std::errc::invalid_argument;
    if (!number || code != std::errc{} || count == 0 || count > kMaxCount) {
      refuse(digits.empty() ? at : digits,
             quote(digits) + " is not a size; use a whole number from 1 to " + std::to_string(kMaxCount));
    }
    return count;
  }

  std::string read_struct_name(std::string_view text) {
    const std::size_t first = text.find('/');
    if (first == std::string_view::npos) {
      if (!is_message(text)) refuse_type(text);
      return std::string(text);
    }
    const std::string_view package = text.substr(0, first);
    std::string_view name = text.substr(first + 1);
    if (name.starts_with("msg/")) name.remove_prefix(4);
    if (name.find('/') != std::string_view::npos) {
      refuse(text, quote(text) + " is not a message; write NAME, PACKAGE/NAME or PACKAGE/msg/NAME");
    }
    if (!is_snake(package, is_lower)) {
      refuse(package.empty() ? text : package,
             quote(package) + " is not a package name; " + std::string(kSnakeRule));
    }
    if (!is_message(name)) {
      refuse(name.empty() ? text : name, quote(name) + " is not a message name; " + std::string(kCamelRule));
    }
    return std::string(package).append("/msg/").append(name);
  }

  [[noreturn]] void refuse_type(std::string_view text) {
    const std::string unknown = "unknown type " + quote(text);
    if (text == "time") refuse(text, unknown + "; ROS 2 has builtin_interfaces/Time");
    if (text == "duration") refuse(text, unknown + "; ROS 2 has builtin_interfaces/Duration");
    const std::string_view near = closest(text, primitive_names());
    if (!near.empty()) refuse(text, unknown + "; did you mean '" + std::string(near) + "'?");
    refuse(text, unknown + "; if it is a message, " + std::string(kCamelRule));
  }

  // ---- values

  void read_default(Field& field, std::string_view text) {
    const auto* const known = std::get_if<Primitive>(&field.type.element);
    if (known == nullptr) refuse(text, "a struct has no default; give its fields defaults instead");
    if (field.type.plurality == Plurality::kOne) {
      field.defaults.push_back(read_value(*known, field.type.text_bound, text, text));
      return;
    }
    const Elements elements = split_elements(text, is_text(*known));
    if (!elements.problem.empty()) refuse(text.substr(elements.at), elements.problem);
    const std::size_t count = elements.texts.size();
    if (field.type.plurality == Plurality::kArray && count != field.type.count) {
      refuse(text, "the array has " + std::to_string(field.type.count) + " elements, but its default " +
                       std::to_string(count) + "; give one value per element");
    }
    if (field.type.plurality == Plurality::kBounded && count > field.type.count) {
      refuse(text, "the default has " + std::to_string(count) + " elements; the sequence has at most " +
                       std::to_string(field.type.count));
    }
    for (const std::string_view element : elements.texts) {
      field.defaults.push_back(read_value(*known, field.type.text_bound, element, element));
    }
  }

  Value read_value(Primitive type, std::uint64_t text_bound, std::string_view text, std::string_view at) {
    Literal literal = read_literal(type, text_bound, text);
    if (!literal.value) refuse(at, literal.problem);
    return *std::move(literal.value);
  }

  // ---- errors

  // `part` is a part of the current line.
  Place place(std::string_view part) const {
    const auto offset = static_cast<std::size_t>(part.data() - line_.data());
    return {source_, number_, characters(line_.substr(0, offset)) + 1};
  }
  [[noreturn]] void refuse(std::string_view part, std::string_view what) const {
    message::refuse(place(part), what);
  }
  [[noreturn]] void refuse(const Place& place, std::string_view what) const {
    message::refuse(place, what);
  }

  const InterfaceName& name_;
  const std::string_view text_;
  const std::string& source_;
  std::vector<Definition> structs_;
  Seen seen_;
  std::string_view line_;
  std::size_t number_ = 0;
  bool key_above_ = false;
  bool last_is_field_ = false;
};

}  // namespace

std::string_view to_text(InterfaceKind kind) noexcept {
  return std::ranges::find(kKinds, kind, &decltype(kKinds)::value_type::first)->second;
}

std::optional<InterfaceKind> interface_kind_of(std::string_view text) noexcept {
  const auto* const found = std::ranges::find(kKinds, text, &decltype(kKinds)::value_type::second);
  if (found == kKinds.end()) return std::nullopt;
  return found->first;
}

std::string InterfaceName::full() const { return package + "/" + std::string(to_text(kind)) + "/" + name; }

std::optional<InterfaceName> split_name(std::string_view full_name) {
  const std::size_t first = full_name.find('/');
  const std::size_t last = full_name.rfind('/');
  if (first == std::string_view::npos || last == first) return std::nullopt;
  const std::optional<InterfaceKind> kind = interface_kind_of(full_name.substr(first + 1, last - first - 1));
  if (!kind) return std::nullopt;
  return InterfaceName{std::string(full_name.substr(0, first)), *kind,
                       std::string(full_name.substr(last + 1))};
}

void refuse(const Place& place, std::string_view what) {
  std::string text = place.source;
  if (place.line > 0) text += ":" + std::to_string(place.line) + ":" + std::to_string(place.column);
  throw BadInput(one_line(text.append(": ").append(what)));
}

std::vector<Definition> parse_interface(const InterfaceName& name, std::string_view text,
                                        const std::string& source) {
  return Parser(name, text, source).run();
}

bool is_aggregate(std::string_view struct_name) {
  const auto parts = split_struct(struct_name);
  return parts && parts->first.kind != InterfaceKind::kMessage &&
         (parts->second.empty() || is_action_service(parts->second));
}

std::optional<InterfaceName> interface_of(std::string_view struct_name) {
  auto parts = split_struct(struct_name);
  if (!parts) return std::nullopt;
  return std::move(parts->first);
}

}  // namespace perflab::message
