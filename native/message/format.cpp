#include "message/format.h"

#include <algorithm>
#include <cstring>

#include "base/time.h"
#include "message/definitions.h"
#include "message/object.h"
#include "message/parse.h"

namespace perflab::message {
namespace {

constexpr std::string_view kHeaderType = "perflab_msgs/msg/Header";
constexpr std::size_t kTimeAndIdBytes = 16;

bool is_number(const Member& member, Primitive primitive) {
  return member.plurality == Plurality::kOne && member.element.type == nullptr && member.element.primitive == primitive;
}

// Stores a number and returns the position after it.
template <typename Number>
std::uint8_t* put(std::uint8_t* to, Number number, bool swapped) noexcept {
  std::memcpy(to, &number, sizeof number);
  if (swapped) std::reverse(to, to + sizeof number);
  return to + sizeof number;
}

template <typename Number>
const std::uint8_t* get(const std::uint8_t* from, Number& number, bool swapped) noexcept {
  std::uint8_t bytes[sizeof number];
  std::memcpy(bytes, from, sizeof number);
  if (swapped) std::reverse(bytes, bytes + sizeof number);
  std::memcpy(&number, bytes, sizeof number);
  return from + sizeof number;
}

}  // namespace

Format::Format(const Type& of, std::string called)
    : name(std::move(called)), type(&of), codec(of), variable(has_bulk(of)), longest(bulk_bound(of)) {
  if (of.keyed) key.emplace(of);
  for (std::size_t i = 0; i < of.members.size(); ++i) {
    const Member& member = of.members[i];
    if (member.plurality == Plurality::kOne && member.element.type != nullptr &&
        member.element.type->name == kHeaderType) {
      stamp = Stamp::kHeader;
      stamp_bytes = kHeaderBytes;
    } else if (i + 1 < of.members.size() && member.name == "time" && is_number(member, Primitive::kInt64) &&
               of.members[i + 1].name == "id" && is_number(of.members[i + 1], Primitive::kUint64)) {
      stamp = Stamp::kTimeAndId;
      stamp_bytes = kTimeAndIdBytes;
    } else {
      continue;
    }
    stamp_offset = member.offset;
    // True for a plain type, or if nothing of variable length comes before.
    const bool same_in_all = std::all_of(of.members.begin(), of.members.begin() + static_cast<std::ptrdiff_t>(i),
                                         [](const Member& m) { return !m.is_sequence() && m.element.plain(); });
    if (same_in_all) stamp_position = codec.position_of(Object(of).data(), stamp_offset);
    return;
  }
}

std::size_t Format::payload_bytes(std::uint32_t length) const {
  std::size_t bytes = codec.fixed_size();
  if (bytes == 0) {
    Object object(*type);
    fill(object, length);
    bytes = codec.encoded_size(object.data());
  }
  bytes -= kEncapsulationBytes;
  if (stamp == Stamp::kHeader) bytes -= kHeaderBytes + (variable ? sizeof(std::uint32_t) : 0);
  return bytes;
}

std::uint64_t Format::largest_bytes(std::uint32_t length) const {
  constexpr std::uint32_t kShort = 100, kMore = 300;
  const std::size_t bytes = payload_bytes(kShort);
  if (!variable || length <= kShort) return bytes;
  const std::uint64_t each = (payload_bytes(kMore) - bytes) / (kMore - kShort);
  return bytes + each * (length - kShort);
}

std::string_view Format::unit() const noexcept { return bulk_unit(*type); }

std::size_t Format::stamp_at(std::span<const std::uint8_t> bytes) const noexcept {
  std::size_t at = stamp_position;
  if (at == 0) {
    at = codec.position_in(bytes, stamp_offset);
  } else if (!is_cdr(bytes)) {
    return 0;
  }
  return at + stamp_bytes <= bytes.size() ? at : 0;
}

bool Format::is_message(std::span<const std::uint8_t> bytes) const noexcept {
  const std::size_t fixed = codec.fixed_size();
  return fixed > 0 ? is_cdr(bytes) && bytes.size() >= fixed : codec.extent(bytes) > 0;
}

bool Format::read_any_stamp(std::span<const std::uint8_t> bytes, Header& header) const noexcept {
  const std::size_t at = stamp_at(bytes);
  if (at == 0 || stamp == Stamp::kNone) return false;
  const bool turned = is_swapped(bytes);
  const std::uint8_t* from = bytes.data() + at;
  if (stamp == Stamp::kTimeAndId) {
    header = {.intended_ns = kUnknownTime};
    from = get(from, header.published_ns, turned);
    get(from, header.sequence, turned);
  } else if (!turned) {
    std::memcpy(&header, from, kHeaderBytes);
  } else {
    from = get(from, header.intended_ns, turned);
    from = get(from, header.published_ns, turned);
    from = get(from, header.sequence, turned);
    from = get(from, header.size_bytes, turned);
    get(from, header.frequency_hz, turned);
  }
  return true;
}

void Format::write_any_stamp(const Header& header, bool swapped, std::uint8_t* to) const noexcept {
  if (stamp == Stamp::kTimeAndId) {
    to = put(to, header.published_ns, swapped);
    put(to, header.sequence, swapped);
  } else if (stamp == Stamp::kHeader) {
    to = put(to, header.intended_ns, swapped);
    to = put(to, header.published_ns, swapped);
    to = put(to, header.sequence, swapped);
    to = put(to, header.size_bytes, swapped);
    put(to, header.frequency_hz, swapped);
  }
}

Header Format::stamp_in(const void* object) const noexcept {
  const auto* const from = static_cast<const std::uint8_t*>(object) + stamp_offset;
  Header header;
  if (stamp == Stamp::kHeader) std::memcpy(&header, from, kHeaderBytes);
  if (stamp == Stamp::kTimeAndId) {
    header.intended_ns = kUnknownTime;
    get(get(from, header.published_ns, false), header.sequence, false);
  }
  return header;
}

// In memory it has the wire layout, in native byte order.
void Format::stamp_object(const Header& header, void* object) const noexcept {
  write_stamp(header, false, static_cast<std::uint8_t*>(object) + stamp_offset);
}

Encoded encode_filled(const Format& format, std::uint32_t length) {
  Object object(*format.type);
  fill(object, length);
  Encoded encoded;
  encoded.bytes.resize(format.codec.encoded_size(object.data()));
  format.codec.encode(object.data(), encoded.bytes);
  if (format.stamp != Stamp::kNone)
    encoded.stamp_at = format.codec.position_of(object.data(), format.stamp_offset);
  return encoded;
}

Formats::Formats(const std::map<std::string, std::string>& texts)
    : Formats(std::make_shared<Library>(brought())) {
  for (const auto& [name, text] : texts) library_->add_text(name, text, name);
}

std::string Formats::family_of(std::string_view full_name) {
  if (!full_name.starts_with(kOwnPackage)) return std::string(full_name.substr(0, full_name.find('/')));
  const std::string_view name = full_name.substr(full_name.rfind('/') + 1);
  // "Stamped10b", "StampedInt64": irobot_benchmark's types are one family despite their names.
  if (name.starts_with("Stamped")) return "Stamped";
  return std::string(name.substr(0, name.find_first_of("0123456789")));
}

std::vector<std::string> Formats::names(std::string_view kind) const {
  const std::string part = "/" + std::string(kind) + "/";
  std::vector<std::string> own, others;
  for (const std::string& full : library_->names()) {
    if (full.find(part) == std::string::npos) continue;
    (full.starts_with(kOwnPackage) ? own : others).push_back(short_name(full));
  }
  own.insert(own.end(), others.begin(), others.end());
  return own;
}

namespace {

// True if an interface has the same structs in both libraries, regardless of comments.
bool is_the_same(const std::string& interface_name, std::string_view text, Library& one, Library& other) {
  const InterfaceName name = split_name(interface_name).value();
  return std::ranges::all_of(parse_interface(name, text, interface_name), [&](const Definition& part) {
    if (is_aggregate(part.name)) return true;  // it consists of the others
    const Definition& a = one.find(part.name);
    const Definition& b = other.find(part.name);
    return a.fields == b.fields && a.constants == b.constants;
  });
}

}  // namespace

std::map<std::string, std::string> Formats::texts_of(const std::string& full_interface_name) {
  std::map<std::string, std::string> texts = library_->texts_of(full_interface_name);
  Library as_brought(brought());
  for (const InterfaceText& own : brought()) {
    const auto found = texts.find(std::string(own.package) + "/" + std::string(own.kind) + "/" + std::string(own.name));
    if (found == texts.end()) continue;
    if (found->second == own.text || is_the_same(found->first, found->second, *library_, as_brought)) texts.erase(found);
  }
  return texts;
}

const Format* Formats::find(std::string_view name) {
  const std::optional<std::string> full = library_->full_name(name);
  if (!full || full->find("/msg/") == std::string::npos) return nullptr;
  return &format_of(*full, short_name(*full));
}

std::optional<std::string> Formats::full_service_name(std::string_view service) const {
  std::optional<std::string> full = library_->full_name(service);
  // perflab's own services have the names of their messages.
  if (full) {
    if (const std::size_t msg = full->find("/msg/"); msg != std::string::npos && full->starts_with(kOwnPackage))
      full = library_->full_name(full->replace(msg, 5, "/srv/"));
  }
  if (!full || full->find("/srv/") == std::string::npos) return std::nullopt;
  return full;
}

std::optional<std::string> Formats::service_name(std::string_view service) const {
  const std::optional<std::string> full = full_service_name(service);
  return full ? std::optional(short_name(*full)) : std::nullopt;
}

const Format* Formats::find_request(std::string_view service) {
  const std::optional<std::string> full = full_service_name(service);
  return full ? &format_of(*full + "_Request", short_name(*full)) : nullptr;
}

const Format* Formats::find_response(std::string_view service) {
  const std::optional<std::string> full = full_service_name(service);
  return full ? &format_of(*full + "_Response", short_name(*full)) : nullptr;
}

std::optional<std::string> Formats::full_action_name(std::string_view action) const {
  // Elsewhere a short name is that of a message.
  if (action.find('/') == std::string_view::npos) {
    const std::string folder = std::string(kOwnPackage) + "action/";
    for (std::string& known : library_->names()) {
      if (known.starts_with(folder) && short_name(known) == action) return std::move(known);
    }
    return std::nullopt;
  }
  std::optional<std::string> full = library_->full_name(action);
  if (!full || full->find("/action/") == std::string::npos || full->find('_', full->rfind('/')) != std::string::npos)
    return std::nullopt;
  return full;
}

std::optional<std::string> Formats::action_name(std::string_view action) const {
  const std::optional<std::string> full = full_action_name(action);
  return full ? std::optional(short_name(*full)) : std::nullopt;
}

const ActionTypes* Formats::find_action(std::string_view action) {
  const std::optional<std::string> full = full_action_name(action);
  if (!full) return nullptr;
  std::unique_ptr<ActionTypes>& types = actions_[*full];
  if (!types) types = std::make_unique<ActionTypes>(action_types(*library_, types_, *full));
  return types.get();
}

const Format& Formats::format_of(const std::string& full_name, const std::string& name) {
  std::unique_ptr<Format>& format = formats_[full_name];
  if (!format) format = std::make_unique<Format>(types_.find(full_name), name);
  return *format;
}

bool Format::stamps_last(const Filter& filter) const noexcept {
  switch (stamp) {
    case Stamp::kHeader:
      return filter.reads(stamp_offset + offsetof(Header, published_ns), sizeof(Header::published_ns));
    case Stamp::kTimeAndId:
      return filter.reads(stamp_offset, sizeof(Header::published_ns));
    case Stamp::kNone:
      break;
  }
  return false;
}

const Filter& Formats::filter(const Format& format, const std::string& expression) {
  std::unique_ptr<Filter>& filter = filters_[{format.type, expression}];
  if (!filter) filter = std::make_unique<Filter>(*format.type, expression);
  return *filter;
}

}  // namespace perflab::message
