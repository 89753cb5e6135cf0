#include "ctf/metadata.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <map>
#include <utility>

#include "ctf/type_builder.h"

namespace perflab::ctf {

namespace {

using tsdl::Attribute;
using tsdl::Block;
using tsdl::Document;
using tsdl::Expression;
using tsdl::in_quotes;
using tsdl::Location;

// No sensible trace comes close to this limit: fields of all event classes, with their headers and contexts.
constexpr std::uint64_t kMostFieldsOfAll = 4'000'000;

std::optional<Uuid> uuid_of(std::string_view text) {
  constexpr std::string_view kForm = "xxxxxxxx-xxxx-xxxx-xxxx-xxxxxxxxxxxx";
  if (text.size() != kForm.size()) return std::nullopt;
  Uuid result{};
  std::size_t digits = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (kForm[i] == '-' && text[i] == '-') continue;
    unsigned digit = 0;
    if (kForm[i] == '-' || std::from_chars(&text[i], &text[i] + 1, digit, 16).ec != std::errc())
      return std::nullopt;
    auto& byte = result[digits++ / 2];
    byte = static_cast<std::uint8_t>(byte << 4 | digit);
  }
  return result;
}

class Analysis : tsdl::Reporter {
 public:
  Analysis(std::string_view text, const std::string& name)
      : Reporter(name, result_.warnings), document_(tsdl::parse(text, name)) {}

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
  // Attributes of blocks.

  // The attributes by name. Unknown ones cause a warning, repeated ones an error.
  std::map<std::string, const Attribute*> attributes_of(const Block& block,
                                                        std::initializer_list<const char*> known) {
    std::map<std::string, const Attribute*> result;
    for (const auto& attribute : block.attributes) {
      if (!result.emplace(attribute.name, &attribute).second) {
        fail(attribute.where, "the attribute {} of this {} is given twice; once is right",
             in_quotes(attribute.name), block.kind);
      }
      if (std::find(known.begin(), known.end(), attribute.name) == known.end()) {
        warn(attribute.where, "the attribute {} of this {} is unknown and passed over",
             in_quotes(attribute.name), block.kind);
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
      fail(attribute.where, "'{}' is given a type; write {} = VALUE", attribute.name, attribute.name);
    }
    return attribute.value;
  }

  std::uint64_t unsigned_of(const Attribute& attribute) const {
    const Expression& value = value_of(attribute);
    if (value.kind != Expression::Kind::integer || (value.negative && value.magnitude != 0)) {
      fail(value.where, "'{}' must be a whole number, 0 or more", attribute.name);
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
      fail(value.where, "'{}' must be a whole number of at most 64 bits with its sign", attribute.name);
    return *number;
  }

  std::string text_of(const Attribute& attribute) const {
    const Expression& value = value_of(attribute);
    if (value.kind == Expression::Kind::integer) {
      fail(value.where, "'{}' must be a string or a name", attribute.name);
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
        warn(block.where, "a second trace block is passed over; the first, at line {}, counts",
             trace->where.line);
      }
    }
    if (trace == nullptr) fail({}, "there is no trace block; it must say major, minor and byte_order");
    const auto attributes = attributes_of(*trace, {"major", "minor", "uuid", "byte_order", "packet.header"});
    const Attribute* major = find(attributes, "major");
    const Attribute* minor = find(attributes, "minor");
    if (major == nullptr || minor == nullptr) {
      fail(trace->where, "this trace has no '{}'; CTF 1.8 has major = 1 and minor = 8",
           major == nullptr ? "major" : "minor");
    }
    if (const auto version = unsigned_of(*major), part = unsigned_of(*minor); version != 1 || part != 8) {
      fail((version != 1 ? major : minor)->value.where, "this is CTF {}.{}; only CTF 1.8 is read", version,
           part);
    }
    const Attribute* order = find(attributes, "byte_order");
    if (order == nullptr) fail(trace->where, "this trace has no 'byte_order'; it must be 'be' or 'le'");
    if (const std::string word = text_of(*order); word == "le") {
      result_.order = ByteOrder::little;
    } else if (word == "be" || word == "network") {
      result_.order = ByteOrder::big;
    } else {
      fail(order->value.where, "the byte order of the trace is {}; it must be 'be' or 'le'", in_quotes(word));
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
        fail(name->value.where, "the clock {} is declared twice; use another name", in_quotes(clock.name));
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
    fail(value.where, "'{}' must be true, false, 1 or 0", attribute.name);
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
        warn(attribute.where, "the env entry {} is passed over; a value is a string or a number of 64 bits",
             in_quotes(attribute.name));
      } else if (!result_.environment.insert_or_assign(attribute.name, std::move(*entry)).second) {
        warn(attribute.where, "the env entry {} is given twice; the last counts", in_quotes(attribute.name));
      }
    }
  }

  void build_packet_header() {
    if (packet_header_ == nullptr) return;
    result_.packet_header = build_scope(types_, Scope::packet_header, *packet_header_);
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
      fail(block.where, "a stream with the id {} is declared already at line {}; give each its own id",
           stream.id, found->second.where.line);
    }
    begin_stream();
    if (const Attribute* a = find(attributes, "packet.context")) {
      stream.packet_context = build_scope(types_, Scope::packet_context, *a);
      for (const auto* field : {"timestamp_begin", "timestamp_end", "content_size", "packet_size",
                                "events_discarded", "packet_seq_num", "stream_instance_id"}) {
        check_unsigned(Scope::packet_context, field);
      }
    }
    if (const Attribute* a = find(attributes, "event.header"))
      stream.event_header = build_scope(types_, Scope::event_header, *a);
    if (const Attribute* a = find(attributes, "event.context")) {
      stream.event_context = build_scope(types_, Scope::stream_event_context, *a);
    }
    StreamState state;
    state.scopes = types_.scopes;
    state.where = block.where;
    for (const auto& scope : types_.scopes) state.fields += scope ? scope->fields : 0;
    streams_.emplace(stream.id, std::move(state));
    result_.streams.emplace(stream.id, std::move(stream));
  }

  // Clears the scopes of other streams.
  void begin_stream() {
    for (std::size_t i = index_of(Scope::packet_context); i < kScopes; ++i) types_.scopes[i].reset();
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
             "there is no stream with the id {}; declare it, or name one that there is", event->stream_class);
      }
    } else if (streams_.size() > 1) {
      fail(block.where, "this event has no 'stream_id', and there are {} streams; say of which it is",
           streams_.size());
    } else if (streams_.empty()) {
      // A trace without a stream block has one stream of events without headers.
      StreamState state;
      state.scopes[index_of(Scope::packet_header)] = types_.scopes[index_of(Scope::packet_header)];
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
      fail(block.where, "an event with the id {} is declared already in the stream {}; give each its own id",
           event->id, event->stream_class);
    }
    if (const Attribute* a = find(attributes, "name")) event->name = text_of(*a);
    if (const Attribute* a = find(attributes, "loglevel")) event->log_level = signed_of(*a);

    types_.scopes = state.scopes;
    if (const Attribute* a = find(attributes, "context"))
      event->context = build_scope(types_, Scope::event_context, *a);
    if (const Attribute* a = find(attributes, "fields"))
      event->payload = build_scope(types_, Scope::payload, *a);
    types_.all_fields += state.fields;
    if (types_.all_fields > kMostFieldsOfAll) {
      fail(block.where, "the events have too many fields in all; {} are the most", kMostFieldsOfAll);
    }
    stream.events.emplace(event->id, std::move(event));
  }

  // Checks the fields that every packet reader needs.

  const Built* scope(Scope which) const {
    const auto& built = types_.scopes[index_of(which)];
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

  void check_unsigned(Scope which, const char* field) const {
    Location where;
    const FieldType* type = field_of(which, field, where);
    if (type == nullptr) return;
    const Integer* integer = integer_of(*type);
    if (integer == nullptr || integer->is_signed) {
      fail(where, "'{}' of {} must be an unsigned integer", field, kScopeNames[index_of(which)]);
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
    types_.scopes[0] = streams_.begin()->second.scopes[0];
    if (field_of(Scope::packet_header, "stream_id", where) == nullptr) {
      fail(std::next(streams_.begin())->second.where,
           "there are {} streams, but trace.packet.header has no field 'stream_id' to tell them apart",
           streams_.size());
    }
  }

  Metadata result_;
  Document document_;
  Types types_{document_, result_, *this};
  const Attribute* packet_header_ = nullptr;
  std::map<std::uint64_t, StreamState> streams_;
};

}  // namespace

std::optional<std::string> Metadata::environment_text(std::string_view key) const {
  const auto found = environment.find(std::string(key));
  if (found == environment.end()) return std::nullopt;
  if (const auto* number = std::get_if<std::int64_t>(&found->second)) return std::to_string(*number);
  return std::get<std::string>(found->second);
}

Metadata parse_metadata(std::string_view text, const std::string& name) { return Analysis(text, name).run(); }

}  // namespace perflab::ctf
