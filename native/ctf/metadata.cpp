#include "ctf/metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <limits>
#include <numeric>
#include <set>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "ctf/tsdl_parser.h"

namespace perflab::ctf {

namespace {

using tsdl::Attribute;
using tsdl::Block;
using tsdl::Document;
using tsdl::Expression;
using tsdl::FieldNode;
using tsdl::in_quotes;
using tsdl::Location;
using tsdl::TypeNode;

// Bounds that no sensible trace comes near to; they keep a small text from asking for more memory than there
// is.
constexpr std::uint64_t kMostFields = 100'000;  // of one scope, those of types inside types included
constexpr std::uint64_t kMostFieldsOfAll =
    4'000'000;                                       // of all event classes, with their headers and contexts
constexpr std::uint64_t kMostElements = 1ULL << 26;  // of an array, those of arrays inside it included

constexpr std::array<const char*, kScopes> kScopeNames = {"trace.packet.header", "stream.packet.context",
                                                          "stream.event.header", "stream.event.context",
                                                          "event.context",       "event.fields"};

std::optional<Uuid> uuid_of(std::string_view text) {
  Uuid result{};
  std::size_t digits = 0;
  if (text.size() != 36) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (i == 8 || i == 13 || i == 18 || i == 23) {
      if (text[i] != '-') return std::nullopt;
      continue;
    }
    const char c = text[i];
    unsigned value = 0;
    if (c >= '0' && c <= '9') {
      value = static_cast<unsigned>(c - '0');
    } else if (c >= 'a' && c <= 'f') {
      value = static_cast<unsigned>(c - 'a' + 10);
    } else if (c >= 'A' && c <= 'F') {
      value = static_cast<unsigned>(c - 'A' + 10);
    } else {
      return std::nullopt;
    }
    auto& byte = result[digits / 2];
    byte = static_cast<std::uint8_t>(digits % 2 == 0 ? value << 4 : byte | value);
    ++digits;
  }
  return result;
}

// Without the one underscore that tracers put before names.
std::string_view without_underscore(std::string_view name) {
  return name.size() > 1 && name.front() == '_' ? name.substr(1) : name;
}

// Whether two names are the same but for one underscore in front of one of them.
bool is_alike(std::string_view a, std::string_view b) {
  return without_underscore(a) == b || a == without_underscore(b);
}

// A type with what is known of it while types are built.
struct Built {
  FieldTypePtr type;
  const TypeNode* node = nullptr;  // as written: has the names as written
  std::uint64_t fields = 0;        // with all inside
  std::uint64_t elements =
      1;  // integers, texts and so on in one field of this type; of arrays: of all elements
  unsigned levels = 0;
  bool refers = false;  // has a sequence or variant inside: differs from place to place
};

class Analysis {
 public:
  Analysis(std::string_view text, const std::string& name)
      : name_(name), document_(tsdl::parse(text, name)) {}

  Metadata run() {
    result_.warnings = document_.warnings;
    read_trace();
    for (const auto& block : document_.blocks) {
      if (block.kind == "clock") read_clock(block);
    }
    for (const auto& block : document_.blocks) {
      if (block.kind == "env") read_environment(block);
    }
    build_packet_header();
    for (const auto& block : document_.blocks) {
      if (block.kind == "stream") read_stream(block);
    }
    for (const auto& block : document_.blocks) {
      if (block.kind == "event") read_event(block);
    }
    check_streams();
    return std::move(result_);
  }

 private:
  [[noreturn]] void fail(Location where, const std::string& what) const { tsdl::fail(name_, where, what); }

  void warn(Location where, const std::string& what) {
    result_.warnings.push_back(fmt::format("{}:{}:{}: {}", name_, where.line, where.column, what));
  }

  // Attributes of blocks.

  // The attributes by name. Unknown ones are warned of, doubles refused.
  std::map<std::string, const Attribute*> attributes_of(const Block& block,
                                                        std::initializer_list<const char*> known) {
    std::map<std::string, const Attribute*> result;
    for (const auto& attribute : block.attributes) {
      if (!result.emplace(attribute.name, &attribute).second) {
        fail(attribute.where, fmt::format("the attribute {} of this {} is given twice; once is right",
                                          in_quotes(attribute.name), block.kind));
      }
      if (std::find(known.begin(), known.end(), attribute.name) == known.end()) {
        warn(attribute.where, fmt::format("the attribute {} of this {} is unknown and passed over",
                                          in_quotes(attribute.name), block.kind));
      }
    }
    return result;
  }

  using Attributes = std::map<std::string, const Attribute*>;

  static const Attribute* find(const Attributes& attributes, const char* key) {
    const auto found = attributes.find(key);
    return found == attributes.end() ? nullptr : found->second;
  }

  const Expression& value_of(const Attribute& attribute) const {
    if (attribute.type != nullptr) {
      fail(attribute.where,
           fmt::format("'{}' is given a type; write {} = VALUE", attribute.name, attribute.name));
    }
    return attribute.value;
  }

  const TypeNode* type_of(const Attribute& attribute) const {
    if (attribute.type == nullptr) {
      fail(attribute.where,
           fmt::format("'{}' must be a type; write {} := struct {{ ... }}", attribute.name, attribute.name));
    }
    return attribute.type;
  }

  std::uint64_t unsigned_of(const Attribute& attribute) const {
    const Expression& value = value_of(attribute);
    if (value.kind != Expression::Kind::integer || (value.negative && value.magnitude != 0)) {
      fail(value.where, fmt::format("'{}' must be a whole number, 0 or more", attribute.name));
    }
    return value.magnitude;
  }

  std::optional<std::int64_t> as_signed(const Expression& value) const {
    if (value.kind != Expression::Kind::integer) return std::nullopt;
    constexpr std::uint64_t kHalf = std::uint64_t{1} << 63;
    if (value.magnitude >= kHalf && !(value.negative && value.magnitude == kHalf)) return std::nullopt;
    return static_cast<std::int64_t>(value.negative ? ~value.magnitude + 1 : value.magnitude);
  }

  std::int64_t signed_of(const Attribute& attribute) const {
    const Expression& value = value_of(attribute);
    const auto number = as_signed(value);
    if (!number)
      fail(value.where,
           fmt::format("'{}' must be a whole number of at most 64 bits with its sign", attribute.name));
    return *number;
  }

  std::string text_of(const Attribute& attribute) const {
    const Expression& value = value_of(attribute);
    if (value.kind == Expression::Kind::integer) {
      fail(value.where, fmt::format("'{}' must be a string or a name", attribute.name));
    }
    return value.kind == Expression::Kind::text ? value.text : tsdl::joined(value.path);
  }

  Uuid uuid_of_attribute(const Attribute& attribute) const {
    const auto uuid = uuid_of(text_of(attribute));
    if (!uuid) {
      fail(attribute.value.where, "this is no UUID; one looks like \"2a6422d0-6cee-11e0-8c08-cb07d7b3a564\"");
    }
    return *uuid;
  }

  // Blocks.

  void read_trace() {
    const Block* trace = nullptr;
    for (const auto& block : document_.blocks) {
      if (block.kind != "trace") continue;
      if (trace == nullptr) {
        trace = &block;
      } else {
        warn(block.where, fmt::format("a second trace block is passed over; the first, at line {}, counts",
                                      trace->where.line));
      }
    }
    if (trace == nullptr) fail({}, "there is no trace block; it must say major, minor and byte_order");
    const auto attributes = attributes_of(*trace, {"major", "minor", "uuid", "byte_order", "packet.header"});
    const Attribute* major = find(attributes, "major");
    const Attribute* minor = find(attributes, "minor");
    if (major == nullptr || minor == nullptr) {
      fail(trace->where, fmt::format("this trace has no '{}'; CTF 1.8 has major = 1 and minor = 8",
                                     major == nullptr ? "major" : "minor"));
    }
    if (const auto version = unsigned_of(*major), part = unsigned_of(*minor); version != 1 || part != 8) {
      fail((version != 1 ? major : minor)->value.where,
           fmt::format("this is CTF {}.{}; only CTF 1.8 is read", version, part));
    }
    const Attribute* order = find(attributes, "byte_order");
    if (order == nullptr) fail(trace->where, "this trace has no 'byte_order'; it must be be or le");
    if (const std::string word = text_of(*order); word == "le") {
      result_.order = ByteOrder::little;
    } else if (word == "be" || word == "network") {
      result_.order = ByteOrder::big;
    } else {
      fail(order->value.where,
           fmt::format("the byte order of the trace is {}; it must be be or le", in_quotes(word)));
    }
    if (const Attribute* uuid = find(attributes, "uuid")) result_.uuid = uuid_of_attribute(*uuid);
    packet_header_ = find(attributes, "packet.header");
  }

  void read_clock(const Block& block) {
    const auto attributes = attributes_of(
        block, {"name", "uuid", "description", "freq", "precision", "offset_s", "offset", "absolute"});
    Clock clock;
    const Attribute* name = find(attributes, "name");
    if (name == nullptr) fail(block.where, "this clock has no 'name', by which integers are mapped to it");
    clock.name = text_of(*name);
    for (const auto& other : result_.clocks) {
      if (other.name == clock.name) {
        fail(name->value.where,
             fmt::format("the clock {} is declared twice; use another name", in_quotes(clock.name)));
      }
    }
    if (const Attribute* a = find(attributes, "uuid")) clock.uuid = uuid_of_attribute(*a);
    if (const Attribute* a = find(attributes, "description")) clock.description = text_of(*a);
    if (const Attribute* a = find(attributes, "freq")) {
      clock.frequency_hz = unsigned_of(*a);
      if (clock.frequency_hz == 0)
        fail(a->value.where, "the frequency of a clock is 0; it must be 1 Hz or more");
    }
    if (const Attribute* a = find(attributes, "precision")) clock.precision = unsigned_of(*a);
    if (const Attribute* a = find(attributes, "offset_s")) clock.offset_seconds = signed_of(*a);
    if (const Attribute* a = find(attributes, "offset")) clock.offset_cycles = signed_of(*a);
    if (const Attribute* a = find(attributes, "absolute")) clock.absolute = is_true(*a);
    result_.clocks.push_back(std::move(clock));
  }

  bool is_true(const Attribute& attribute) const {
    const Expression& value = value_of(attribute);
    if (value.kind == Expression::Kind::integer && !value.negative && value.magnitude <= 1)
      return value.magnitude == 1;
    if (value.kind != Expression::Kind::integer) {
      const std::string word = text_of(attribute);
      if (word == "true" || word == "TRUE") return true;
      if (word == "false" || word == "FALSE") return false;
    }
    fail(value.where, fmt::format("'{}' must be true, false, 1 or 0", attribute.name));
  }

  void read_environment(const Block& block) {
    for (const auto& attribute : block.attributes) {
      const Expression& value = attribute.value;
      std::optional<EnvironmentValue> entry;
      if (attribute.type == nullptr && value.kind == Expression::Kind::text) entry = value.text;
      if (attribute.type == nullptr && value.kind == Expression::Kind::integer) {
        if (const auto number = as_signed(value)) entry = *number;
      }
      if (!entry) {
        warn(attribute.where,
             fmt::format("the env entry {} is passed over; a value is a string or a number of 64 bits",
                         in_quotes(attribute.name)));
      } else if (!result_.environment.insert_or_assign(attribute.name, std::move(*entry)).second) {
        warn(attribute.where,
             fmt::format("the env entry {} is given twice; the last counts", in_quotes(attribute.name)));
      }
    }
  }

  void build_packet_header() {
    if (packet_header_ == nullptr) return;
    result_.packet_header = build_scope(Scope::packet_header, *packet_header_);
    check_packet_header();
  }

  struct StreamState {
    std::array<std::optional<Built>, kScopes> scopes;
    Location where;
    bool has_event_without_id = false;
    std::uint64_t fields = 0;
  };

  void read_stream(const Block& block) {
    const auto attributes = attributes_of(block, {"id", "event.header", "event.context", "packet.context"});
    StreamClass stream;
    if (const Attribute* id = find(attributes, "id")) stream.id = unsigned_of(*id);
    if (const auto found = streams_.find(stream.id); found != streams_.end()) {
      fail(block.where,
           fmt::format("a stream with the id {} is declared already at line {}; give each its own id",
                       stream.id, found->second.where.line));
    }
    begin_stream();
    if (const Attribute* a = find(attributes, "packet.context")) {
      stream.packet_context = build_scope(Scope::packet_context, *a);
      for (const auto* field : {"timestamp_begin", "timestamp_end", "content_size", "packet_size",
                                "events_discarded", "packet_seq_num", "stream_instance_id"}) {
        check_unsigned(Scope::packet_context, field);
      }
    }
    if (const Attribute* a = find(attributes, "event.header"))
      stream.event_header = build_scope(Scope::event_header, *a);
    if (const Attribute* a = find(attributes, "event.context")) {
      stream.event_context = build_scope(Scope::stream_event_context, *a);
    }
    StreamState state;
    state.scopes = scopes_;
    state.where = block.where;
    for (const auto& scope : scopes_) state.fields += scope ? scope->fields : 0;
    streams_.emplace(stream.id, std::move(state));
    result_.streams.emplace(stream.id, std::move(stream));
  }

  // Forgets the scopes of other streams.
  void begin_stream() {
    for (std::size_t i = static_cast<std::size_t>(Scope::packet_context); i < kScopes; ++i)
      scopes_[i].reset();
  }

  void read_event(const Block& block) {
    const auto attributes =
        attributes_of(block, {"name", "id", "stream_id", "context", "fields", "loglevel", "model.emf.uri"});
    auto event = std::make_shared<EventClass>();
    const Attribute* stream_id = find(attributes, "stream_id");
    if (stream_id != nullptr) {
      event->stream_class = unsigned_of(*stream_id);
      if (!streams_.contains(event->stream_class)) {
        fail(stream_id->value.where,
             fmt::format("there is no stream with the id {}; declare it, or name one that there is",
                         event->stream_class));
      }
    } else if (streams_.size() > 1) {
      fail(block.where,
           fmt::format("this event has no 'stream_id', and there are {} streams; say of which it is",
                       streams_.size()));
    } else if (streams_.empty()) {
      // A trace without any stream block has one stream of events without headers.
      StreamState state;
      state.scopes[static_cast<std::size_t>(Scope::packet_header)] =
          scopes_[static_cast<std::size_t>(Scope::packet_header)];
      state.where = block.where;
      streams_.emplace(0, std::move(state));
      result_.streams.emplace(0, StreamClass{});
    } else {
      event->stream_class = streams_.begin()->first;
    }
    StreamState& state = streams_.at(event->stream_class);
    StreamClass& stream = result_.streams.at(event->stream_class);
    const Attribute* id = find(attributes, "id");
    if (id != nullptr) {
      event->id = unsigned_of(*id);
    } else if (!stream.events.empty() || state.has_event_without_id) {
      fail(block.where, "this event has no 'id'; only the one event of a stream can do without");
    } else {
      state.has_event_without_id = true;
    }
    if (stream.events.contains(event->id)) {
      fail(block.where,
           fmt::format("an event with the id {} is declared already in the stream {}; give each its own id",
                       event->id, event->stream_class));
    }
    if (const Attribute* a = find(attributes, "name")) event->name = text_of(*a);
    if (const Attribute* a = find(attributes, "loglevel")) event->log_level = signed_of(*a);

    scopes_ = state.scopes;
    if (const Attribute* a = find(attributes, "context"))
      event->context = build_scope(Scope::event_context, *a);
    if (const Attribute* a = find(attributes, "fields")) event->payload = build_scope(Scope::payload, *a);
    all_fields_ += state.fields;
    if (all_fields_ > kMostFieldsOfAll) {
      fail(block.where,
           fmt::format("the events have too many fields in all; {} are the most", kMostFieldsOfAll));
    }
    stream.events.emplace(event->id, std::move(event));
  }

  // Fields that every reader of packets looks for must be of use.

  const Built* scope(Scope which) const {
    const auto& built = scopes_[static_cast<std::size_t>(which)];
    return built ? &*built : nullptr;
  }

  const FieldType* field_of(Scope which, std::string_view field, Location& where) const {
    const Built* built = scope(which);
    if (built == nullptr) return nullptr;
    const auto& structure = std::get<Structure>(built->type->kind);
    for (std::size_t i = 0; i < structure.fields.size(); ++i) {
      if (structure.fields[i].name != field) continue;
      where = (*built->node->fields)[i].where;
      return structure.fields[i].type.get();
    }
    return nullptr;
  }

  static const Integer* integer_of(const FieldType& type) {
    if (const auto* integer = std::get_if<Integer>(&type.kind)) return integer;
    if (const auto* enumeration = std::get_if<Enumeration>(&type.kind)) return &enumeration->integer;
    return nullptr;
  }

  void check_unsigned(Scope which, const char* field) const {
    Location where;
    const FieldType* type = field_of(which, field, where);
    if (type == nullptr) return;
    const Integer* integer = integer_of(*type);
    if (integer == nullptr || integer->is_signed) {
      fail(where, fmt::format("'{}' of {} must be an unsigned integer", field,
                              kScopeNames[static_cast<std::size_t>(which)]));
    }
  }

  void check_packet_header() const {
    Location where;
    check_unsigned(Scope::packet_header, "stream_id");
    check_unsigned(Scope::packet_header, "stream_instance_id");
    check_unsigned(Scope::packet_header, "magic");
    if (const FieldType* type = field_of(Scope::packet_header, "magic", where)) {
      if (integer_of(*type)->size != 32)
        fail(where, "'magic' of trace.packet.header must be an unsigned integer of 32 bits");
    }
    if (const FieldType* type = field_of(Scope::packet_header, "uuid", where)) {
      const auto* array = std::get_if<Array>(&type->kind);
      const Integer* element = array == nullptr ? nullptr : std::get_if<Integer>(&array->element->kind);
      if (element == nullptr || array->length != 16 || element->size != 8) {
        fail(where, "'uuid' of trace.packet.header must be an array of 16 integers of 8 bits");
      }
    }
  }

  void check_streams() {
    Location where;
    if (streams_.size() < 2) return;
    scopes_[0] = streams_.begin()->second.scopes[0];
    if (field_of(Scope::packet_header, "stream_id", where) == nullptr) {
      fail(std::next(streams_.begin())->second.where,
           fmt::format(
               "there are {} streams, but trace.packet.header has no field 'stream_id' to tell them apart",
               streams_.size()));
    }
  }

  // Types. While one is built, the types around it are on a stack, outermost first.

  struct Frame {
    const TypeNode* node = nullptr;
    const std::vector<Built>* built = nullptr;  // fields of a structure, as far as they are built
    std::uint32_t current = 0;                  // which field or option is being built
  };

  // The structure of a scope, which is known afterwards to scopes that come later.
  FieldTypePtr build_scope(Scope which, const Attribute& attribute) {
    const TypeNode* node = resolved(type_of(attribute));
    if (node->kind != TypeNode::Kind::structure) {
      fail(attribute.where,
           fmt::format("'{}' is {}; it must be a structure", attribute.name, tsdl::name_of(node->kind)));
    }
    current_scope_ = which;
    frames_.clear();
    scope_fields_ = 0;
    Built built = build(node, 0);
    all_fields_ += built.fields;
    auto type = built.type;
    scopes_[static_cast<std::size_t>(which)] = std::move(built);
    return type;
  }

  // Of a name that is declared further down at the top level: what is declared there.
  const TypeNode* resolved(const TypeNode* node) const {
    if (node->kind != TypeNode::Kind::later) return node;
    const auto found = document_.types.find(node->name);
    if (found == document_.types.end()) {
      fail(node->where, fmt::format("the type {} is unknown; {}", in_quotes(node->name), node->advice));
    }
    return found->second;
  }

  // In these scopes time stamps may be tied to the only clock without saying so: types are not shared with
  // other scopes.
  [[nodiscard]] bool has_implicit_clock() const {
    return result_.clocks.size() == 1 &&
           (current_scope_ == Scope::event_header || current_scope_ == Scope::packet_context);
  }

  // Whether a type may be another one elsewhere, although it refers to no field.
  [[nodiscard]] bool depends_on_place(const TypeNode& node) const {
    const bool is_leaf = node.element == nullptr && node.fields == nullptr;
    const bool is_label = node.kind == TypeNode::Kind::enumeration;
    return has_implicit_clock() && (!(is_leaf || is_label) || is_time_stamp());
  }

  Built build(const TypeNode* node, unsigned level) {
    node = resolved(node);
    const bool is_shared = !depends_on_place(*node);
    if (const auto shared = shared_.find(node); is_shared && shared != shared_.end()) {
      check_bounds(node, level, shared->second);
      count_fields(node, shared->second.fields);
      return shared->second;
    }
    if (level >= tsdl::kDeepest) {
      fail(node->where, fmt::format("types are nested too deeply; {} levels are the most", tsdl::kDeepest));
    }
    Built built = build_kind(node, level);
    built.node = node;
    if (is_shared && !built.refers) shared_.emplace(node, built);
    return built;
  }

  void check_bounds(const TypeNode* node, unsigned level, const Built& built) const {
    if (level + built.levels > tsdl::kDeepest) {
      fail(node->where, fmt::format("types are nested too deeply; {} levels are the most", tsdl::kDeepest));
    }
  }

  void count_fields(const TypeNode* node, std::uint64_t fields) {
    scope_fields_ += fields;
    if (scope_fields_ > kMostFields) {
      fail(node->where,
           fmt::format("with the structures inside it, this has too many fields and choices; {} are the most",
                       kMostFields));
    }
  }

  static Built leaf(FieldType type) {
    Built built;
    built.type = std::make_shared<const FieldType>(std::move(type));
    built.levels = 1;
    return built;
  }

  Built build_kind(const TypeNode* node, unsigned level) {
    switch (node->kind) {
      case TypeNode::Kind::integer:
        return leaf({build_integer(*node)});
      case TypeNode::Kind::floating:
        return leaf({build_float(*node)});
      case TypeNode::Kind::text:
        return leaf({Text{}});
      case TypeNode::Kind::enumeration:
        return leaf({build_enumeration(*node)});
      case TypeNode::Kind::array:
        return build_array(*node, level);
      case TypeNode::Kind::sequence:
        return build_sequence(*node, level);
      case TypeNode::Kind::structure:
        return build_structure(*node, level);
      case TypeNode::Kind::variant:
        return build_variant(*node, level);
      case TypeNode::Kind::later:
        break;
    }
    fail(node->where, "a type that refers to itself");
  }

  ByteOrder order_of(const TypeNode& node) const { return node.order.value_or(result_.order); }

  Integer build_integer(const TypeNode& node) const {
    Integer integer = node.integer;
    integer.order = order_of(node);
    if (node.map) {
      const std::string& clock = node.map->path[1];
      for (std::size_t i = 0; i < result_.clocks.size(); ++i) {
        if (result_.clocks[i].name == clock) integer.clock = static_cast<std::uint32_t>(i);
      }
      if (!integer.clock) {
        fail(node.map->where,
             fmt::format("this integer is of the clock {}, which is not declared", in_quotes(clock)));
      }
    } else if (has_implicit_clock() && is_time_stamp()) {
      integer.clock = 0;
    }
    return integer;
  }

  // Whether the field that is being built is where every tracer puts time.
  [[nodiscard]] bool is_time_stamp() const {
    if (frames_.empty() || frames_.back().node->kind != TypeNode::Kind::structure) return false;
    const Frame& frame = frames_.back();
    const std::string& field = (*frame.node->fields)[frame.current].name;
    if (current_scope_ == Scope::event_header) return field == "timestamp";
    return field == "timestamp_begin" || field == "timestamp_end";
  }

  Float build_float(const TypeNode& node) const {
    Float type = node.floating;
    type.order = order_of(node);
    return type;
  }

  Enumeration build_enumeration(const TypeNode& node) {
    const TypeNode* container = resolved(node.element);
    if (container->kind == TypeNode::Kind::enumeration) container = resolved(container->element);
    if (container->kind != TypeNode::Kind::integer) {
      fail(node.where, fmt::format("the type of this enumeration is {}; it must be an integer",
                                   tsdl::name_of(container->kind)));
    }
    Enumeration result;
    result.integer = build_integer(*container);
    const std::uint32_t size = result.integer.size;
    const bool is_signed = result.integer.is_signed;
    const auto fits = [&](std::uint64_t value, bool negative) {
      if (negative)
        return is_signed && (size == 64 || (value >> (size - 1)) == (~std::uint64_t{0} >> (size - 1)));
      const std::uint32_t bits = is_signed ? size - 1 : size;
      return bits == 64 || (value >> bits) == 0;
    };
    const bool first_time = warned_.insert(&node).second;
    for (const auto& label : node.labels) {
      if (first_time &&
          (!fits(label.lowest, label.lowest_negative) || !fits(label.highest, label.highest_negative))) {
        warn(label.where,
             fmt::format("the label {} stands for values that do not fit into {} bits {}",
                         in_quotes(label.label), size, is_signed ? "with a sign" : "without a sign"));
      }
      // What lies beyond the type on one side is cut off there, so that no other value gets this label.
      std::uint64_t lowest = label.lowest;
      std::uint64_t highest = label.highest;
      constexpr std::uint64_t kLargestSigned = std::numeric_limits<std::int64_t>::max();
      if (is_signed && !label.lowest_negative && lowest > kLargestSigned) continue;
      if (is_signed && !label.highest_negative) highest = std::min(highest, kLargestSigned);
      if (!is_signed && label.highest_negative) continue;
      if (!is_signed && label.lowest_negative) lowest = 0;
      result.mappings.push_back({label.label, lowest, highest});
    }
    return result;
  }

  Built build_element(const TypeNode& node, unsigned level) {
    Frame frame;
    frame.node = &node;
    frames_.push_back(frame);
    Built element = build(node.element, level + 1);
    frames_.pop_back();
    return element;
  }

  Built build_array(const TypeNode& node, unsigned level) {
    const Built element = build_element(node, level);
    Built built;
    built.elements =
        element.elements == 0 ? node.length : element.elements * std::min(node.length, kMostElements + 1);
    if (built.elements > kMostElements) {
      fail(node.where, fmt::format("this array of {} is absurdly large; {} elements in all are the most",
                                   node.length, kMostElements));
    }
    built.type = std::make_shared<const FieldType>(FieldType{Array{element.type, node.length}});
    inherit(built, element);
    return built;
  }

  static void inherit(Built& built, const Built& inner) {
    built.fields += inner.fields;
    built.levels = std::max(built.levels, inner.levels + 1);
    built.refers = built.refers || inner.refers;
  }

  Built build_sequence(const TypeNode& node, unsigned level) {
    Built target;
    Sequence sequence;
    sequence.length = find_field(*node.path, "the length of this sequence", target);
    const Integer* integer = integer_of(*target.type);
    if (integer == nullptr) {
      fail(node.path->where,
           fmt::format("the length of this sequence, {}, is {}; it must be an unsigned integer",
                       in_quotes(tsdl::joined(node.path->path)), tsdl::name_of(target.node->kind)));
    }
    if (integer->is_signed) {
      fail(node.path->where,
           fmt::format("the length of this sequence, {}, has a sign; it must be an unsigned integer",
                       in_quotes(tsdl::joined(node.path->path))));
    }
    const Built element = build_element(node, level);
    sequence.element = element.type;
    Built built;
    built.type = std::make_shared<const FieldType>(FieldType{std::move(sequence)});
    inherit(built, element);
    built.refers = true;
    return built;
  }

  // Names of fields without underscore, except where two would then be the same.
  static std::vector<std::string> shown_names(const std::vector<FieldNode>& fields) {
    std::vector<std::size_t> shortest_first(fields.size());
    std::iota(shortest_first.begin(), shortest_first.end(), std::size_t{0});
    std::stable_sort(shortest_first.begin(), shortest_first.end(), [&](std::size_t a, std::size_t b) {
      return fields[a].name.size() < fields[b].name.size();
    });
    std::unordered_set<std::string_view> taken;
    std::vector<std::string> result(fields.size());
    for (const auto i : shortest_first) {
      const std::string_view written = fields[i].name;
      auto shown = without_underscore(written);
      if (!taken.insert(shown).second) {
        shown = written;
        taken.insert(shown);
      }
      result[i] = shown;
    }
    return result;
  }

  Built build_structure(const TypeNode& node, unsigned level) {
    Structure structure;
    structure.minimum_alignment = node.alignment;
    Built built;
    built.elements = 0;
    std::vector<Built> members;
    const auto names = shown_names(*node.fields);
    count_fields(&node, names.size());
    built.fields = names.size();
    const std::size_t depth = frames_.size();
    frames_.push_back({&node, &members, 0});
    for (std::size_t i = 0; i < names.size(); ++i) {
      frames_[depth].current = static_cast<std::uint32_t>(i);
      Built member = build((*node.fields)[i].type, level + 1);
      built.elements = std::min(built.elements + member.elements, kMostElements + 1);
      inherit(built, member);
      structure.fields.push_back({names[i], member.type});
      members.push_back(std::move(member));
    }
    frames_.pop_back();
    built.levels = std::max(built.levels, 1U);
    built.type = std::make_shared<const FieldType>(FieldType{std::move(structure)});
    return built;
  }

  const TypeNode& options_of(const TypeNode& node) const {
    if (node.fields != nullptr) return node;
    const auto found = document_.types.find(node.name);
    if (found == document_.types.end()) {
      fail(node.where, fmt::format("the type {} is unknown; declare it with variant NAME {{ ... }}",
                                   in_quotes(node.name)));
    }
    return *found->second;
  }

  Built build_variant(const TypeNode& node, unsigned level) {
    if (!node.path)
      fail(node.where, "this variant has no selector; write variant <NAME OF AN ENUMERATION> { ... }");
    const TypeNode& written = options_of(node);
    Built target;
    Variant variant;
    variant.selector = find_field(*node.path, "the selector of this variant", target);
    const auto* selector = std::get_if<Enumeration>(&target.type->kind);
    if (selector == nullptr) {
      fail(node.path->where,
           fmt::format("the selector of this variant, {}, is {}; it must be an enumeration",
                       in_quotes(tsdl::joined(node.path->path)), tsdl::name_of(target.node->kind)));
    }
    variant.selector_is_signed = selector->integer.is_signed;
    Built built;
    built.refers = true;
    built.elements = 0;
    const auto names = shown_names(*written.fields);
    built.fields = names.size() + selector->mappings.size();
    count_fields(&node, built.fields);
    if (names.empty())
      fail(node.where, "this variant has no options; give it one for each label of its selector");
    const std::size_t depth = frames_.size();
    TypeNode frame_node;  // the names of the options, where they are declared elsewhere
    frame_node.kind = TypeNode::Kind::variant;
    frame_node.fields = written.fields;
    frames_.push_back({&frame_node, nullptr, 0});
    for (std::size_t i = 0; i < names.size(); ++i) {
      frames_[depth].current = static_cast<std::uint32_t>(i);
      Built option = build((*written.fields)[i].type, level + 1);
      built.elements = std::max(built.elements, option.elements);
      inherit(built, option);
      variant.options.push_back({names[i], option.type});
    }
    frames_.pop_back();
    choose(variant, *written.fields, *selector);
    built.type = std::make_shared<const FieldType>(FieldType{std::move(variant)});
    return built;
  }

  // Ties the options of a variant to the labels of its selector: those written alike, and then those alike
  // but for one leading underscore.
  void choose(Variant& variant, const std::vector<FieldNode>& options, const Enumeration& selector) const {
    std::unordered_map<std::string, std::uint32_t> as_written;
    for (std::size_t i = 0; i < options.size(); ++i) {
      as_written.emplace(options[i].name, static_cast<std::uint32_t>(i));
    }
    std::vector<bool> is_chosen(options.size());
    for (const auto& mapping : selector.mappings) {
      if (const auto found = as_written.find(mapping.label); found != as_written.end()) {
        is_chosen[found->second] = true;
      }
    }
    std::unordered_map<std::string, std::uint32_t> alike;  // to options that no label is written like
    for (std::size_t i = 0; i < options.size(); ++i) {
      if (is_chosen[i]) continue;
      alike.emplace(without_underscore(options[i].name), static_cast<std::uint32_t>(i));
      alike.emplace("_" + options[i].name, static_cast<std::uint32_t>(i));
    }
    for (const auto& mapping : selector.mappings) {
      auto option = as_written.find(mapping.label);
      if (option == as_written.end()) {
        option = alike.find(mapping.label);
        if (option == alike.end()) continue;
      }
      is_chosen[option->second] = true;
      variant.choices.push_back({mapping.lowest, mapping.highest, option->second});
    }
    for (std::size_t i = 0; i < options.size(); ++i) {
      if (!is_chosen[i]) {
        fail(options[i].where,
             fmt::format("no label of the variant's selector is {}; an option has the name of a label",
                         in_quotes(options[i].name)));
      }
    }
  }

  // Fields that lengths and selectors refer to.

  // Which field of a structure `name` means, if it is among the first `count`.
  std::optional<std::uint32_t> index_of(const TypeNode& structure, std::size_t count,
                                        const std::string& name) const {
    auto& index = indices_[structure.fields.get()];
    if (index.empty()) {
      for (std::size_t i = 0; i < structure.fields->size(); ++i) {
        index.emplace((*structure.fields)[i].name, static_cast<std::uint32_t>(i));
      }
    }
    for (const auto& written : {name, "_" + name, std::string(without_underscore(name))}) {
      const auto found = index.find(written);
      if (found != index.end() && found->second < count) return found->second;
    }
    return std::nullopt;
  }

  // Follows path[next...] into a structure that is built.
  static std::optional<Built> follow(const TypeNode* node, const FieldTypePtr& type,
                                     const std::vector<std::string>& path, std::size_t next, FieldPath& way,
                                     const Analysis& self) {
    const TypeNode* at = node;
    FieldTypePtr here = type;
    for (; next < path.size(); ++next) {
      if (at->kind != TypeNode::Kind::structure) return std::nullopt;
      const auto index = self.index_of(*at, at->fields->size(), path[next]);
      if (!index) return std::nullopt;
      way.indices.push_back(*index);
      here = std::get<Structure>(here->kind).fields[*index].type;
      at = self.resolved((*at->fields)[*index].type);
    }
    Built built;
    built.type = here;
    built.node = at;
    return built;
  }

  // From the structure at frames_[depth] on.
  std::optional<Built> follow_open(std::size_t depth, const std::vector<std::string>& path, std::size_t next,
                                   FieldPath& way) const {
    const Frame& frame = frames_[depth];
    const auto index = index_of(*frame.node, frame.current, path[next]);
    if (!index) return std::nullopt;
    way.indices.push_back(*index);
    const Built& member = (*frame.built)[*index];
    return follow(member.node, member.type, path, next + 1, way, *this);
  }

  // The way from the scope to the type at frames_[depth]. Arrays and sequences on the way add nothing: what
  // is meant is in the same element.
  FieldPath way_to(std::size_t depth) const {
    FieldPath way;
    way.scope = current_scope_;
    for (std::size_t i = 0; i < depth; ++i) {
      const auto kind = frames_[i].node->kind;
      if (kind == TypeNode::Kind::structure || kind == TypeNode::Kind::variant)
        way.indices.push_back(frames_[i].current);
    }
    return way;
  }

  static std::optional<std::pair<Scope, std::size_t>> absolute(const std::vector<std::string>& path) {
    const std::string whole = tsdl::joined(path);
    for (std::size_t i = 0; i < kScopes; ++i) {
      const std::string prefix = std::string(kScopeNames[i]) + ".";
      if (whole.starts_with(prefix)) {
        return std::pair(static_cast<Scope>(i),
                         static_cast<std::size_t>(std::count(prefix.begin(), prefix.end(), '.')));
      }
    }
    return std::nullopt;
  }

  FieldPath find_field(const Expression& expression, const char* what, Built& target) const {
    const auto& path = expression.path;
    if (const auto place = absolute(path)) return find_absolute(expression, what, *place, target);
    // In the structures around, from the innermost outward.
    for (std::size_t depth = frames_.size(); depth-- > 0;) {
      if (frames_[depth].node->kind != TypeNode::Kind::structure) continue;
      FieldPath way = way_to(depth);
      if (auto found = follow_open(depth, path, 0, way)) {
        target = std::move(*found);
        return way;
      }
    }
    // In the scopes before, from the last backward.
    for (std::size_t i = static_cast<std::size_t>(current_scope_); i-- > 0;) {
      if (!scopes_[i]) continue;
      FieldPath way;
      way.scope = static_cast<Scope>(i);
      if (auto found = follow(scopes_[i]->node, scopes_[i]->type, path, 0, way, *this)) {
        target = std::move(*found);
        return way;
      }
    }
    fail(expression.where, fmt::format("{}, {}, is not found; it must be a field that comes before, in the "
                                       "structures around or in an earlier "
                                       "scope",
                                       what, in_quotes(tsdl::joined(path))));
  }

  FieldPath find_absolute(const Expression& expression, const char* what,
                          const std::pair<Scope, std::size_t>& place, Built& target) const {
    const auto& path = expression.path;
    const auto [scope, first] = place;
    const auto* scope_name = kScopeNames[static_cast<std::size_t>(scope)];
    FieldPath way;
    way.scope = scope;
    if (scope > current_scope_) {
      fail(expression.where, fmt::format("{}, {}, comes after what it is for; {} is read before {}", what,
                                         in_quotes(tsdl::joined(path)),
                                         kScopeNames[static_cast<std::size_t>(current_scope_)], scope_name));
    }
    std::optional<Built> found;
    if (scope < current_scope_) {
      const auto& built = scopes_[static_cast<std::size_t>(scope)];
      if (!built) {
        fail(expression.where, fmt::format("{}, {}, is not found: there is no {} here", what,
                                           in_quotes(tsdl::joined(path)), scope_name));
      }
      found = follow(built->node, built->type, path, first, way, *this);
    } else {
      found = follow_around(path, first, way);
    }
    if (!found) {
      fail(expression.where, fmt::format("{}, {}, is not found; it must be a field of {} that comes before",
                                         what, in_quotes(tsdl::joined(path)), scope_name));
    }
    target = std::move(*found);
    return way;
  }

  // A path from the top of the scope that is being built: along the types around, until it turns off.
  std::optional<Built> follow_around(const std::vector<std::string>& path, std::size_t next,
                                     FieldPath& way) const {
    for (std::size_t depth = 0; depth < frames_.size() && next < path.size(); ++depth) {
      const Frame& frame = frames_[depth];
      const auto kind = frame.node->kind;
      if (kind != TypeNode::Kind::structure && kind != TypeNode::Kind::variant) continue;
      if (kind == TypeNode::Kind::structure) {
        FieldPath turned = way;
        if (auto found = follow_open(depth, path, next, turned)) {
          way = std::move(turned);
          return found;
        }
      }
      const auto& around = (*frame.node->fields)[frame.current].name;
      if (around != path[next] && !is_alike(around, path[next])) return std::nullopt;
      way.indices.push_back(frame.current);
      ++next;
    }
    return std::nullopt;
  }

  const std::string& name_;
  Document document_;
  Metadata result_;
  const Attribute* packet_header_ = nullptr;
  std::map<std::uint64_t, StreamState> streams_;
  std::array<std::optional<Built>, kScopes> scopes_;  // those that come before what is being built
  Scope current_scope_ = Scope::packet_header;
  std::vector<Frame> frames_;
  std::unordered_map<const TypeNode*, Built> shared_;  // types that are the same in all places
  // Of structures that were looked into: the fields by their names as written.
  mutable std::unordered_map<const void*, std::unordered_map<std::string_view, std::uint32_t>> indices_;
  std::set<const TypeNode*> warned_;
  std::uint64_t scope_fields_ = 0;
  std::uint64_t all_fields_ = 0;
};

// Metadata in packets.

constexpr std::uint32_t kPacketMagic = 0x75d11d57;
constexpr std::size_t kPacketHeader = 37;

class PacketReader {
 public:
  PacketReader(std::string_view bytes, bool swapped) : bytes_(bytes), swapped_(swapped) {}

  std::uint32_t u32(std::size_t offset) const {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < 4; ++i) {
      value |= static_cast<std::uint32_t>(u8(offset + i)) << (8 * (swapped_ ? 3 - i : i));
    }
    return value;
  }

  std::uint8_t u8(std::size_t offset) const { return static_cast<std::uint8_t>(bytes_[offset]); }

 private:
  std::string_view bytes_;
  bool swapped_;  // big-endian
};

// The text of all packets.
std::string unpacked(std::string_view bytes, bool big_endian, const std::string& name) {
  std::string text;
  std::string_view uuid;
  for (std::size_t offset = 0; offset < bytes.size();) {
    const auto broken = [&](const std::string& what) {
      tsdl::fail(name, {}, fmt::format("the metadata packet at byte {} is broken: {}", offset, what));
    };
    const std::string_view rest = bytes.substr(offset);
    if (rest.size() < kPacketHeader) {
      broken(fmt::format("{} bytes are left where the header has {}", rest.size(), kPacketHeader));
    }
    const PacketReader packet(rest, big_endian);
    if (packet.u32(0) != kPacketMagic) {
      broken(fmt::format("it begins with 0x{:08x}; 0x{:08x} would be right", packet.u32(0), kPacketMagic));
    }
    const std::string_view its_uuid = rest.substr(4, 16);
    if (offset == 0) uuid = its_uuid;
    if (its_uuid != uuid) broken("its UUID is not that of the packets before");
    const std::uint64_t content_bits = packet.u32(24);
    const std::uint64_t packet_bits = packet.u32(28);
    if (packet.u8(32) != 0) broken("it is compressed, which is not read");
    if (packet.u8(33) != 0) broken("it is encrypted, which is not read");
    if (packet.u8(35) != 1 || packet.u8(36) != 8) {
      broken(fmt::format("it is of CTF {}.{}; only CTF 1.8 is read", packet.u8(35), packet.u8(36)));
    }
    if (content_bits % 8 != 0 || packet_bits % 8 != 0 || content_bits < kPacketHeader * 8 ||
        content_bits > packet_bits) {
      broken(fmt::format(
          "it says {} bits of content in {} bits; whole bytes, at least the header's {}, would be right",
          content_bits, packet_bits, kPacketHeader * 8));
    }
    if (content_bits / 8 > rest.size()) {
      broken(fmt::format("it says {} bytes of content, but the file has {} from there", content_bits / 8,
                         rest.size()));
    }
    text += rest.substr(kPacketHeader, content_bits / 8 - kPacketHeader);
    offset += packet_bits / 8;  // the padding of the last packet may be cut off
  }
  return text;
}

enum class Packing : std::uint8_t { none, little, big };

Packing packing_of(std::string_view bytes) {
  if (bytes.size() < 4) return Packing::none;
  if (PacketReader(bytes, false).u32(0) == kPacketMagic) return Packing::little;
  return PacketReader(bytes, true).u32(0) == kPacketMagic ? Packing::big : Packing::none;
}

}  // namespace

std::optional<std::string> Metadata::environment_text(std::string_view key) const {
  const auto found = environment.find(std::string(key));
  if (found == environment.end()) return std::nullopt;
  if (const auto* number = std::get_if<std::int64_t>(&found->second)) return std::to_string(*number);
  return std::get<std::string>(found->second);
}

Metadata parse_metadata(std::string_view text, const std::string& name) { return Analysis(text, name).run(); }

std::string metadata_text(std::string_view bytes, const std::string& name) {
  const Packing packing = packing_of(bytes);
  if (packing != Packing::none) return unpacked(bytes, packing == Packing::big, name);
  const auto first = bytes.find_first_not_of(" \t\r\n\x1e");
  if (first == std::string_view::npos)
    tsdl::fail(name, {}, "the metadata is empty; it must begin with /* CTF 1.8 */");
  if (bytes[0] == '\x1e' || bytes[first] == '{' || bytes[first] == '[') {
    tsdl::fail(name, {}, "this is CTF 2 (JSON), which is not read; only CTF 1.8 is");
  }
  return std::string(bytes);
}

Metadata read_metadata(const std::filesystem::path& file) {
  const std::string name = file.string();
  std::ifstream stream(file, std::ios::binary);
  if (!stream || std::filesystem::is_directory(file)) {
    throw MetadataError(
        fmt::format("{}: cannot be opened: {}", name,
                    std::filesystem::is_directory(file) ? "it is a directory" : std::strerror(errno)));
  }
  const std::string bytes((std::istreambuf_iterator<char>(stream)), {});
  if (stream.bad()) throw MetadataError(fmt::format("{}: cannot be read", name));
  Metadata metadata = parse_metadata(metadata_text(bytes, name), name);
  if (packing_of(bytes) != Packing::none && metadata.uuid &&
      std::memcmp(bytes.data() + 4, metadata.uuid->data(), metadata.uuid->size()) != 0) {
    metadata.warnings.push_back(
        fmt::format("{}:1:1: the UUID of the metadata's packets is not that of its trace", name));
  }
  return metadata;
}

}  // namespace perflab::ctf
