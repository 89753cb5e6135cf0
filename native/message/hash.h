// Type hashes of ROS 2 (REP 2016, RIHS01): SHA-256 of the JSON type description, without default values.
//
// Example:
//   rihs01(string, {});  // "RIHS01_df668c740482bbd48fb39d76a70dfd4bd59db1288021743503259e948f6b1a18"
#pragma once

#include <span>
#include <string>

#include "message/definition.h"

namespace perflab::message {

// The description as rosidl writes it: {"type_description": ..., "referenced_type_descriptions": [...]}.
// `referenced` are all structs used by the type, without the type itself, sorted by name. All names are full.
[[nodiscard]] std::string type_description(const Definition& type,
                                           std::span<const Definition* const> referenced);

[[nodiscard]] std::string rihs01(const Definition& type, std::span<const Definition* const> referenced);

}  // namespace perflab::message
