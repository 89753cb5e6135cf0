#include "middleware/support/xml.h"

namespace perflab::middleware::support {

std::string element(std::string_view name, std::string_view content) {
  std::string out = "<";
  out.append(name).append(">").append(content).append("</").append(name).append(">");
  return out;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '&':
        out += "&amp;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

}  // namespace perflab::middleware::support
