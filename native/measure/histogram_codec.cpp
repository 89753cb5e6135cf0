#include "measure/histogram_codec.h"

#include <zlib.h>

#include <bit>
#include <span>
#include <stdexcept>

namespace perflab::measure {
namespace {

constexpr std::uint32_t kV2Cookie = 0x1c849303;
constexpr std::uint32_t kV2CompressedCookie = 0x1c849304;
constexpr std::size_t kHeaderSize = 40;
constexpr std::size_t kCompressedHeaderSize = 8;
// zlib's defaults use 260 kB of working memory, which would distort the memory figures of the measured
// process; an encoded histogram has a few hundred bytes. Any inflater reads the result.
constexpr int kWindowBits = 10;
constexpr int kMemoryLevel = 2;

template <typename T>
void put_big_endian(std::uint8_t* out, T value) noexcept {
  for (std::size_t i = 0; i < sizeof(T); ++i) {
    out[i] = static_cast<std::uint8_t>(value >> (8 * (sizeof(T) - 1 - i)));
  }
}

// LEB128 with at most 9 bytes: the ninth carries 8 bits, as the HdrHistogram format defines it.
void put_zigzag(std::vector<std::uint8_t>& out, std::int64_t value) {
  auto bits = (static_cast<std::uint64_t>(value) << 1) ^ static_cast<std::uint64_t>(value >> 63);
  for (int byte = 0; byte < 8; ++byte) {
    if (bits < 0x80) {
      out.push_back(static_cast<std::uint8_t>(bits));
      return;
    }
    out.push_back(static_cast<std::uint8_t>((bits & 0x7f) | 0x80));
    bits >>= 7;
  }
  out.push_back(static_cast<std::uint8_t>(bits));
}

std::string base64(std::span<const std::uint8_t> bytes) {
  static constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  std::string text;
  text.reserve((bytes.size() + 2) / 3 * 4);
  for (std::size_t i = 0; i < bytes.size(); i += 3) {
    const std::size_t left = bytes.size() - i;
    const std::uint32_t group = (std::uint32_t{bytes[i]} << 16) |
                                (left > 1 ? std::uint32_t{bytes[i + 1]} << 8 : 0u) |
                                (left > 2 ? std::uint32_t{bytes[i + 2]} : 0u);
    text += kAlphabet[group >> 18];
    text += kAlphabet[(group >> 12) & 63];
    text += left > 1 ? kAlphabet[(group >> 6) & 63] : '=';
    text += left > 2 ? kAlphabet[group & 63] : '=';
  }
  return text;
}

}  // namespace

std::vector<std::uint8_t> encode_v2(const Histogram& histogram) {
  std::vector<std::uint8_t> bytes(kHeaderSize);
  // Read once: another thread may be recording.
  const std::uint32_t begin = histogram.begin_index();
  const std::uint32_t end = histogram.end_index();
  std::uint32_t next = 0;  // index after the last count written
  histogram.each_count(begin, end, [&](std::uint32_t index, std::uint32_t count) {
    if (index > next) put_zigzag(bytes, -std::int64_t{index - next});
    put_zigzag(bytes, count);
    next = index + 1;
  });
  std::uint8_t* out = bytes.data();
  put_big_endian(out, kV2Cookie | 0x10u);
  put_big_endian(out + 4, static_cast<std::uint32_t>(bytes.size() - kHeaderSize));
  put_big_endian(out + 8, std::uint32_t{0});
  put_big_endian(out + 12, static_cast<std::uint32_t>(kSignificantDigits));
  put_big_endian(out + 16, static_cast<std::uint64_t>(kLowestDiscernible));
  put_big_endian(out + 24, static_cast<std::uint64_t>(kHighestTrackable));
  put_big_endian(out + 32, std::bit_cast<std::uint64_t>(1.0));
  return bytes;
}

std::string encode_v2_base64(const Histogram& histogram) {
  const std::vector<std::uint8_t> plain = encode_v2(histogram);
  z_stream stream{};
  if (deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kWindowBits, kMemoryLevel,
                   Z_DEFAULT_STRATEGY) != Z_OK) {
    throw std::runtime_error("histogram: zlib failed to initialize");
  }
  std::vector<std::uint8_t> bytes(kCompressedHeaderSize +
                                  deflateBound(&stream, static_cast<uLong>(plain.size())));
  stream.next_in = const_cast<Bytef*>(plain.data());
  stream.avail_in = static_cast<uInt>(plain.size());
  stream.next_out = bytes.data() + kCompressedHeaderSize;
  stream.avail_out = static_cast<uInt>(bytes.size() - kCompressedHeaderSize);
  const int status = deflate(&stream, Z_FINISH);
  const auto size = static_cast<std::uint32_t>(stream.total_out);
  deflateEnd(&stream);
  if (status != Z_STREAM_END) throw std::runtime_error("histogram: zlib failed to compress");
  put_big_endian(bytes.data(), kV2CompressedCookie | 0x10u);
  put_big_endian(bytes.data() + 4, size);
  bytes.resize(kCompressedHeaderSize + size);
  return base64(bytes);
}

}  // namespace perflab::measure
