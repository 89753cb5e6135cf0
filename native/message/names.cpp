#include "message/names.h"

namespace perflab::message {
namespace {

std::string prefixed(std::string_view prefix, std::string_view ros_name) {
  std::string name(prefix);
  if (!ros_name.starts_with('/')) name += '/';
  return name.append(ros_name);
}

}  // namespace

std::string dds_topic_name(std::string_view ros_topic) { return prefixed("rt", ros_topic); }

std::string dds_request_name(std::string_view ros_service) { return prefixed("rq", ros_service) + "Request"; }

std::string dds_reply_name(std::string_view ros_service) { return prefixed("rr", ros_service) + "Reply"; }

std::string dds_type_name(std::string_view ros_type) {
  std::string name;
  std::size_t begin = 0;
  for (std::size_t slash = ros_type.find('/'); slash != std::string_view::npos;
       slash = ros_type.find('/', begin)) {
    name.append(ros_type.substr(begin, slash - begin)).append("::");
    begin = slash + 1;
  }
  return name.append("dds_::").append(ros_type.substr(begin)).append("_");
}

std::string ros_type_name(std::string_view dds_type) {
  constexpr std::string_view kMark = "dds_::";
  const std::size_t mark = dds_type.rfind(kMark);
  const bool is_ros = mark != std::string_view::npos && dds_type.ends_with('_') &&
                      dds_type.substr(mark + kMark.size()).find("::") == std::string_view::npos;
  if (!is_ros) return std::string(dds_type);
  std::string name;
  std::string_view packages = dds_type.substr(0, mark);
  for (std::size_t colons = packages.find("::"); colons != std::string_view::npos; colons = packages.find("::")) {
    name.append(packages.substr(0, colons)).append("/");
    packages.remove_prefix(colons + 2);
  }
  dds_type.remove_prefix(mark + kMark.size());
  dds_type.remove_suffix(1);
  return name.append(dds_type);
}

std::string snake_case(std::string_view camel) {
  const auto is_capital = [](char c) { return c >= 'A' && c <= 'Z'; };
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  const auto is_small = [](char c) { return c >= 'a' && c <= 'z'; };
  std::string result;
  for (std::size_t i = 0; i < camel.size(); ++i) {
    const char c = camel[i];
    const bool begins = i > 0 && is_capital(c) &&
                        (is_small(camel[i - 1]) || is_digit(camel[i - 1]) ||
                         (i + 1 < camel.size() && is_small(camel[i + 1]) && camel[i - 1] != '_'));
    if (begins) result += '_';
    result += is_capital(c) ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return result;
}

std::string short_name(std::string_view full_name) {
  if (!full_name.starts_with(kOwnPackage)) return std::string(full_name);
  return snake_case(full_name.substr(full_name.rfind('/') + 1));
}

}  // namespace perflab::message
