// Metadata as it lies in files: plain text, or text in packets.
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <utility>

#include "ctf/metadata.h"
#include "ctf/tsdl_lexer.h"

namespace perflab::ctf {
namespace {

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
    const auto broken = [&]<typename... Args>(fmt::format_string<Args...> format, Args&&... args) {
      tsdl::fail(name, {}, "the metadata packet at byte {} is broken: {}", offset,
                 fmt::format(format, std::forward<Args>(args)...));
    };
    const std::string_view rest = bytes.substr(offset);
    if (rest.size() < kPacketHeader) {
      broken("{} bytes are left where the header has {}", rest.size(), kPacketHeader);
    }
    const PacketReader packet(rest, big_endian);
    if (packet.u32(0) != kPacketMagic) {
      broken("it begins with 0x{:08x}; 0x{:08x} would be right", packet.u32(0), kPacketMagic);
    }
    const std::string_view its_uuid = rest.substr(4, 16);
    if (offset == 0) uuid = its_uuid;
    if (its_uuid != uuid) broken("its UUID is not that of the packets before");
    const std::uint64_t content_bits = packet.u32(24);
    const std::uint64_t packet_bits = packet.u32(28);
    if (packet.u8(32) != 0) broken("it is compressed, which is not read");
    if (packet.u8(33) != 0) broken("it is encrypted, which is not read");
    if (packet.u8(35) != 1 || packet.u8(36) != 8) {
      broken("it is of CTF {}.{}; only CTF 1.8 is read", packet.u8(35), packet.u8(36));
    }
    if (content_bits % 8 != 0 || packet_bits % 8 != 0 || content_bits < kPacketHeader * 8 ||
        content_bits > packet_bits) {
      broken("it says {} bits of content in {} bits; whole bytes, at least the header's {}, would be right",
             content_bits, packet_bits, kPacketHeader * 8);
    }
    if (content_bits / 8 > rest.size()) {
      broken("it says {} bytes of content, but the file has {} from there", content_bits / 8, rest.size());
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
