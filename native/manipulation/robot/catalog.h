// Finds and reads the data files of robots and scenes.
//
// Example:
//   const std::filesystem::path file = scene_file("table");
//   Fields fields(parse_json(file), "table.json");
//   const double mass = fields.number("mass");
//   fields.end();   // no other keys
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>
#include <string>
#include <vector>

namespace perflab::manipulation {

// The folder of a robot or the file of a scene, by name or by a path, which contains a '/'. Names are looked
// up in robots/ and scenes/ in the program's folder or its parent (as in tests). Throws BadInput, which lists
// the known names.
[[nodiscard]] std::filesystem::path robot_folder(const std::string& name);
[[nodiscard]] std::filesystem::path scene_file(const std::string& name);

// Throws BadInput with the file and where in it.
[[nodiscard]] nlohmann::json read_json_file(const std::filesystem::path& file);
[[nodiscard]] std::string read_text_file(const std::filesystem::path& file);

// An object all of whose keys must be known. Error messages begin with `where`. Throws BadInput.
class Fields {
 public:
  Fields(const nlohmann::json& object, std::string where);

  [[nodiscard]] bool has(const std::string& key) const { return object_.contains(key); }
  [[nodiscard]] const nlohmann::json& at(const std::string& key);
  [[nodiscard]] std::string text(const std::string& key);
  [[nodiscard]] std::string text(const std::string& key, const std::string& otherwise);
  [[nodiscard]] double number(const std::string& key);
  [[nodiscard]] double positive(const std::string& key);
  [[nodiscard]] std::vector<double> numbers(const std::string& key, std::size_t count);
  [[nodiscard]] std::vector<std::string> texts(const std::string& key);
  // Call it after all reads: throws for keys that were not read.
  void end() const;

  [[nodiscard]] const std::string& where() const noexcept { return where_; }

 private:
  const nlohmann::json& object_;
  const std::string where_;
  std::set<std::string> asked_;
};

}  // namespace perflab::manipulation
