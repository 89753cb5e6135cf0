// Metadata as text, for comparison with files of expected results: everything it holds, always in the same
// order.
#pragma once

#include <string>

#include "ctf/metadata.h"

namespace perflab::ctf::testing {

[[nodiscard]] std::string describe(const Metadata& metadata);

}  // namespace perflab::ctf::testing
