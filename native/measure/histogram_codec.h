// The HdrHistogram V2 encoding (compressed, base64), readable by every HdrHistogram library.
//
// Layout, big-endian: cookie 0x1c849304, length of the zlib data, zlib data of { cookie 0x1c849303, payload
// length, normalizing index offset 0, significant digits, lowest and highest trackable value, conversion
// ratio 1.0, payload }. The payload is a list of ZigZag LEB128 numbers: a positive number is a count, a
// negative number -n stands for n zeros.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "measure/histogram.h"

namespace perflab::measure {

// The uncompressed encoding. Allocates; not for the measured path.
[[nodiscard]] std::vector<std::uint8_t> encode_v2(const Histogram& histogram);

// Base64 of the compressed encoding. Throws std::runtime_error if zlib fails.
[[nodiscard]] std::string encode_v2_base64(const Histogram& histogram);

}  // namespace perflab::measure
