#include "manipulation/robot/catalog.h"

#include <algorithm>
#include <cmath>
#include <fstream>
#include <sstream>

#include "base/error.h"
#include "base/text.h"

namespace perflab::manipulation {
namespace {

namespace fs = std::filesystem;

// The first folder of this kind at or above that of the program.
fs::path folder_of(const std::string& kind) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  for (fs::path at = program.parent_path(); !at.empty(); at = at.parent_path()) {
    for (const fs::path& folder : {at / kind, at / "lib" / "perflab" / kind}) {
      if (fs::is_directory(folder, error)) return folder;
    }
    if (at == at.root_path()) break;
  }
  throw Unsupported("perflab's folder " + kind + " was not found at or above " +
                    program.parent_path().string() + "; `make manipulation` installs it");
}

// Names of the files in the folder, without `extension`.
std::vector<std::string> names_in(const fs::path& folder, const std::string& extension) {
  std::vector<std::string> names;
  for (const auto& entry : fs::directory_iterator(folder)) {
    if (extension.empty() ? entry.is_directory() : entry.path().extension() == extension) {
      names.push_back(entry.path().stem().string());
    }
  }
  std::sort(names.begin(), names.end());
  return names;
}

fs::path find(const std::string& what, const std::string& name, const std::string& extension) {
  if (name.find('/') != std::string::npos) {
    if (!fs::exists(name)) throw BadInput("the " + what + " " + quote(name) + " does not exist");
    return name;
  }
  const fs::path folder = folder_of(what + "s");
  const std::vector<std::string> known = names_in(folder, extension);
  if (std::find(known.begin(), known.end(), name) == known.end()) {
    throw BadInput("unknown " + what + " " + quote(name) + "; known: " +
                   list_of(std::vector<std::string_view>(known.begin(), known.end())) + ", or a path with '/'");
  }
  return folder / (name + extension);
}

}  // namespace

fs::path robot_folder(const std::string& name) { return find("robot", name, ""); }
fs::path scene_file(const std::string& name) { return find("scene", name, ".json"); }

std::string read_text_file(const fs::path& file) {
  std::ifstream stream(file, std::ios::binary);
  std::ostringstream text;
  text << stream.rdbuf();
  if (!stream) throw BadInput(file.string() + ": cannot be read");
  return text.str();
}

nlohmann::json read_json_file(const fs::path& file) {
  try {
    return nlohmann::json::parse(read_text_file(file));
  } catch (const nlohmann::json::exception& error) {
    throw BadInput(file.string() + ": is not JSON: " + one_line(error.what()));
  }
}

Fields::Fields(const nlohmann::json& object, std::string where) : object_(object), where_(std::move(where)) {
  if (!object.is_object()) throw BadInput(where_ + ": must be an object");
}

const nlohmann::json& Fields::at(const std::string& key) {
  asked_.insert(key);
  const auto found = object_.find(key);
  if (found == object_.end()) throw BadInput(where_ + ": " + key + " is missing");
  return *found;
}

std::string Fields::text(const std::string& key) {
  const nlohmann::json& value = at(key);
  if (!value.is_string()) throw BadInput(where_ + ": " + key + " must be a text");
  return value.get<std::string>();
}

std::string Fields::text(const std::string& key, const std::string& otherwise) {
  asked_.insert(key);
  return has(key) ? text(key) : otherwise;
}

double Fields::number(const std::string& key) {
  const nlohmann::json& value = at(key);
  if (!value.is_number() || !std::isfinite(value.get<double>())) {
    throw BadInput(where_ + ": " + key + " must be a number");
  }
  return value.get<double>();
}

double Fields::positive(const std::string& key) {
  const double value = number(key);
  if (value <= 0.0) throw BadInput(where_ + ": " + key + " must be more than 0");
  return value;
}

std::vector<double> Fields::numbers(const std::string& key, std::size_t count) {
  const nlohmann::json& value = at(key);
  const bool fits = value.is_array() && value.size() == count &&
                    std::all_of(value.begin(), value.end(), [](const auto& each) { return each.is_number(); });
  if (!fits) throw BadInput(where_ + ": " + key + " must be a list of " + std::to_string(count) + " numbers");
  return value.get<std::vector<double>>();
}

std::vector<std::string> Fields::texts(const std::string& key) {
  const nlohmann::json& value = at(key);
  const bool fits =
      value.is_array() && std::all_of(value.begin(), value.end(), [](const auto& each) { return each.is_string(); });
  if (!fits) throw BadInput(where_ + ": " + key + " must be a list of texts");
  return value.get<std::vector<std::string>>();
}

void Fields::end() const {
  for (const auto& [key, value] : object_.items()) {
    if (asked_.count(key) == 0) throw BadInput(where_ + ": unknown key " + quote(key));
  }
}

}  // namespace perflab::manipulation
