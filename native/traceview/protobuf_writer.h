// Writes protobuf messages (https://protobuf.dev/programming-guides/encoding/) into memory, field by field.
// The caller gives the field numbers; nothing is checked against a schema.
//
// Example:
//   ProtobufWriter writer;
//   const auto packet = writer.begin(1);
//   writer.varint(8, 1'000);
//   writer.text(23, "callback");
//   writer.end(packet);
//   file.write(writer.bytes());
#pragma once

#include <array>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>

namespace perflab::traceview {

class ProtobufWriter {
 public:
  // uint32, uint64, bool and enumerations.
  void varint(std::uint32_t field, std::uint64_t value) {
    tag(field, 0);
    append_varint(value);
  }
  // int32 and int64: negative numbers are ten bytes long.
  void integer(std::uint32_t field, std::int64_t value) { varint(field, static_cast<std::uint64_t>(value)); }
  void fixed64(std::uint32_t field, std::uint64_t value) {
    tag(field, 1);
    std::array<char, 8> raw{};
    for (std::size_t i = 0; i < raw.size(); ++i) raw[i] = static_cast<char>(value >> (8 * i) & 0xff);
    bytes_.append(raw.data(), raw.size());
  }
  // string and bytes; also messages and packed fields that were encoded elsewhere.
  void text(std::uint32_t field, std::string_view value) {
    tag(field, 2);
    append_varint(value.size());
    bytes_.append(value);
  }

  // Begins a nested message, which contains all fields up to `end`.
  [[nodiscard]] std::size_t begin(std::uint32_t field) {
    tag(field, 2);
    bytes_.push_back('\0');  // placeholder of the length; most messages here are shorter than 128 bytes
    return bytes_.size();
  }
  void end(std::size_t begun) {
    std::size_t length = bytes_.size() - begun;
    std::array<char, 10> raw{};
    std::size_t used = 0;
    for (; length >= 0x80; length >>= 7) raw[used++] = static_cast<char>((length & 0x7f) | 0x80);
    raw[used++] = static_cast<char>(length);
    bytes_[begun - 1] = raw[0];
    if (used > 1) bytes_.insert(begun, raw.data() + 1, used - 1);
  }

  // A nested message that ends with the object's scope.
  class Message {
   public:
    Message(ProtobufWriter& writer, std::uint32_t field) : writer_(writer), begun_(writer.begin(field)) {}
    ~Message() { writer_.end(begun_); }
    Message(const Message&) = delete;
    Message& operator=(const Message&) = delete;

   private:
    ProtobufWriter& writer_;
    std::size_t begun_;
  };

  // A number without a tag, for a packed field that is then written with text().
  void append_varint(std::uint64_t value) {
    while (value >= 0x80) {
      bytes_.push_back(static_cast<char>((value & 0x7f) | 0x80));
      value >>= 7;
    }
    bytes_.push_back(static_cast<char>(value));
  }

  [[nodiscard]] std::string_view bytes() const noexcept { return bytes_; }
  [[nodiscard]] bool empty() const noexcept { return bytes_.empty(); }
  void clear() noexcept { bytes_.clear(); }

 private:
  void tag(std::uint32_t field, std::uint32_t wire_type) {
    append_varint(std::uint64_t{field} << 3 | wire_type);
  }

  std::string bytes_;
};

}  // namespace perflab::traceview
