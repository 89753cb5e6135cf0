#include "graph/names.h"

#include <fmt/format.h>

#include <algorithm>

#include "graph/text.h"

namespace perflab::graph {
namespace {

constexpr std::size_t kMaxNodeName = 255;
constexpr std::size_t kMaxNamespace = 245;
constexpr std::size_t kMaxTopic = 247;
constexpr std::size_t kMaxService = 246;
constexpr std::size_t kMaxAction = 226;
constexpr std::size_t kMaxFileName = 100;

bool is_alphanumeric(char c) { return is_digit(c) || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
bool is_word(char c) { return is_alphanumeric(c) || c == '_'; }
bool is_file_word(char c) { return is_word(c) || c == '-' || c == '+' || c == '.'; }

// Checks the parts between slashes of a name without its leading slash.
std::string tokens_problem(std::string_view all, std::string_view tokens, std::string_view what) {
  if (tokens.empty()) return fmt::format("{} {} has no name after the slash", what, quote(all));
  if (tokens.ends_with('/')) return fmt::format("{} {} ends with a slash; remove it", what, quote(all));
  bool at_start = true;
  for (const char c : tokens) {
    if (at_start && c == '/')
      return fmt::format("{} {} has two slashes in a row; remove one", what, quote(all));
    if (at_start && is_digit(c)) {
      return fmt::format("{} {} has a part that begins with a digit; begin it with a letter", what,
                         quote(all));
    }
    if (c != '/' && !is_word(c)) {
      return fmt::format("{} {} has a character that ROS 2 does not allow; use letters, digits, '_' and '/'",
                         what, quote(all));
    }
    at_start = c == '/';
  }
  return {};
}

std::string length_problem(std::string_view name, std::size_t limit, std::string_view what) {
  if (name.size() <= limit) return {};
  return fmt::format("{} {} has {} characters; at most {} are allowed", what, quote(name), name.size(),
                     limit);
}

// A topic or service as written; `what` is its kind.
std::string relative_problem(std::string_view name, std::string_view what) {
  if (name.empty()) return fmt::format("{} is empty; give it a name", what);
  std::string_view tokens = name;
  if (name.starts_with("~/")) {
    tokens.remove_prefix(2);
  } else if (name.starts_with('/')) {
    tokens.remove_prefix(1);
  }
  return tokens_problem(name, tokens, what);
}

std::string qualified_problem(std::string_view name, std::size_t limit, std::string_view what) {
  if (!name.starts_with('/')) return fmt::format("{} {} does not begin with '/'", what, quote(name));
  if (std::string problem = tokens_problem(name, name.substr(1), what); !problem.empty()) return problem;
  return length_problem(name, limit, what);
}

}  // namespace

std::string node_name_problem(std::string_view name) {
  if (name.empty()) return "node name is empty; give it a name";
  if (is_digit(name.front())) {
    return fmt::format("node name {} begins with a digit; begin it with a letter", quote(name));
  }
  if (!std::ranges::all_of(name, is_word)) {
    return fmt::format("node name {} has a character that ROS 2 does not allow; use letters, digits and '_'",
                       quote(name));
  }
  return length_problem(name, kMaxNodeName, "node name");
}

std::string namespace_problem(std::string_view name) {
  if (name == "/") return {};
  if (!name.starts_with('/')) return fmt::format("namespace {} does not begin with '/'", quote(name));
  if (std::string problem = tokens_problem(name, name.substr(1), "namespace"); !problem.empty())
    return problem;
  return length_problem(name, kMaxNamespace, "namespace");
}

std::string topic_problem(std::string_view topic) { return relative_problem(topic, "topic"); }

std::string qualified_topic_problem(std::string_view topic) {
  return qualified_problem(topic, kMaxTopic, "topic");
}

std::string service_problem(std::string_view service) { return relative_problem(service, "service"); }

std::string qualified_service_problem(std::string_view service) {
  return qualified_problem(service, kMaxService, "service");
}

std::string action_problem(std::string_view action) { return relative_problem(action, "action"); }

std::string qualified_action_problem(std::string_view action) { return qualified_problem(action, kMaxAction, "action"); }

std::string file_name_problem(std::string_view name) {
  if (name.empty()) return "name is empty; give it a name";
  if (!is_alphanumeric(name.front()) || !std::ranges::all_of(name, is_file_word)) {
    return fmt::format(
        "name {} cannot be a file name; use letters, digits, '_', '-', '+' and '.', beginning "
        "with a letter or digit",
        quote(name));
  }
  return length_problem(name, kMaxFileName, "name");
}

std::string as_file_name(std::string_view text) {
  std::string name(text.substr(0, kMaxFileName));
  std::ranges::replace_if(name, [](char c) { return !is_file_word(c); }, '_');
  if (name.empty() || !is_alphanumeric(name.front())) name = ("graph" + name).substr(0, kMaxFileName);
  return name;
}

std::string qualify_namespace(std::string_view name) {
  return name.starts_with('/') ? std::string(name) : "/" + std::string(name);
}

std::string qualify_topic(std::string_view topic, std::string_view node_namespace,
                          std::string_view node_name) {
  if (topic.starts_with('/')) return std::string(topic);
  std::string result(node_namespace);
  if (!result.ends_with('/')) result += '/';
  if (!topic.starts_with("~/")) return result.append(topic);
  return result.append(node_name).append(topic.substr(1));
}

}  // namespace perflab::graph
