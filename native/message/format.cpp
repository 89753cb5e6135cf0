#include "message/format.h"

#include <algorithm>
#include <cstring>

#include "base/time.h"
#include "message/object.h"

namespace perflab::message {
namespace {

constexpr std::string_view kHeaderType = "perflab_msgs/msg/Header";
constexpr std::string_view kOwnPackage = "perflab_msgs/";
constexpr std::size_t kTimeAndIdBytes = 16;

bool is_number(const Member& member, Primitive primitive) {
  return member.plurality == Plurality::kOne && member.element.type == nullptr && member.element.primitive == primitive;
}

// Puts a number at a place and goes behind it.
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

bool swapped(std::span<const std::uint8_t> bytes) noexcept { return bytes[1] != kNativeEncapsulation; }

}  // namespace

Format::Format(const Type& of, std::string called)
    : name(std::move(called)), type(&of), codec(of), variable(has_bulk(of)) {
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
    // Of a plain type, or where nothing of a length of its own stands before.
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

std::size_t Format::stamp_at(std::span<const std::uint8_t> bytes) const noexcept {
  std::size_t at = stamp_position;
  if (at == 0) {
    at = codec.position_in(bytes, stamp_offset);
  } else if (bytes.size() < kEncapsulationBytes || bytes[0] != 0 || bytes[1] > 1) {
    return 0;
  }
  return at + stamp_bytes <= bytes.size() ? at : 0;
}

bool Format::read_stamp(std::span<const std::uint8_t> bytes, Header& header) const noexcept {
  const std::size_t at = stamp_at(bytes);
  if (at == 0 || stamp == Stamp::kNone) return false;
  const bool turned = swapped(bytes);
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

void Format::write_stamp(const Header& header, std::span<std::uint8_t> bytes, std::size_t at) const noexcept {
  const bool turned = swapped(bytes);
  std::uint8_t* to = bytes.data() + at;
  if (stamp == Stamp::kTimeAndId) {
    to = put(to, header.published_ns, turned);
    put(to, header.sequence, turned);
  } else if (stamp == Stamp::kHeader && !turned) {
    std::memcpy(to, &header, kHeaderBytes);
  } else if (stamp == Stamp::kHeader) {
    to = put(to, header.intended_ns, turned);
    to = put(to, header.published_ns, turned);
    to = put(to, header.sequence, turned);
    to = put(to, header.size_bytes, turned);
    put(to, header.frequency_hz, turned);
  }
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

const Format* Formats::find(std::string_view name) {
  const std::optional<std::string> full = library_->full_name(name);
  if (!full || full->find("/msg/") == std::string::npos) return nullptr;
  return &format_of(*full, short_name(*full));
}

std::optional<std::string> Formats::full_service_name(std::string_view service) const {
  std::optional<std::string> full = library_->full_name(service);
  // perflab's own services are called as the messages in them.
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

const Format& Formats::format_of(const std::string& full_name, const std::string& name) {
  std::unique_ptr<Format>& format = formats_[full_name];
  if (!format) format = std::make_unique<Format>(types_.find(full_name), name);
  return *format;
}

std::string snake_case(std::string_view camel_case) {
  std::string snake;
  for (std::size_t i = 0; i < camel_case.size(); ++i) {
    const char here = camel_case[i];
    const bool upper = here >= 'A' && here <= 'Z';
    if (upper && i > 0) {
      const char before = camel_case[i - 1];
      const bool before_upper = before >= 'A' && before <= 'Z';
      const bool before_next_lower =
          i + 1 < camel_case.size() && camel_case[i + 1] >= 'a' && camel_case[i + 1] <= 'z';
      if (!before_upper || before_next_lower) snake += '_';
    }
    snake += upper ? static_cast<char>(here - 'A' + 'a') : here;
  }
  return snake;
}

std::string short_name(const std::string& full_name) {
  if (!full_name.starts_with(kOwnPackage)) return full_name;
  return snake_case(std::string_view(full_name).substr(full_name.rfind('/') + 1));
}

}  // namespace perflab::message
