// Helpers to write XML.
#pragma once

#include <string>
#include <string_view>

namespace perflab::middleware::support {

// <name>content</name>
std::string element(std::string_view name, std::string_view content);
// Escapes text for content and attributes.
std::string escaped(std::string_view text);

}  // namespace perflab::middleware::support
