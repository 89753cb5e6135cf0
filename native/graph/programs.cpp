#include "graph/programs.h"

#include <charconv>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "graph/check.h"
#include "graph/key_figures.h"
#include "graph/text.h"

namespace perflab::graph {
namespace {

using nlohmann::json;
using nlohmann::ordered_json;

json number_of(const Field& field) {
  const std::string& text = field.written();
  std::int64_t whole = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), whole);
  const bool is_whole = error == std::errc{} && end == text.data() + text.size();
  return is_whole ? json(whole) : json(field.number());
}

// Any value as JSON.
json to_json(const Field& field) {
  json value;
  switch (field.kind()) {
    case Kind::kNull:
      break;
    case Kind::kBoolean:
      value = field.boolean();
      break;
    case Kind::kNumber:
      value = number_of(field);
      break;
    case Kind::kString:
      value = field.text();
      break;
    case Kind::kList:
      value = json::array();
      for (const Field& item : field.items(field.name())) value.push_back(to_json(item));
      break;
    case Kind::kMapping:
      value = json::object();
      for (std::size_t i = 0; i < field.value().keys.size(); ++i) {
        const std::string& key = field.value().keys[i].text;
        value[key] = to_json(Field(field.document(), field.value().items[i], fmt::format("'{}'", key)));
      }
      break;
  }
  return value;
}

// A path is relative to the folder of the graph file; a bare name is searched next to perflab-node.
std::string resolved(const std::string& program, const std::string& file) {
  if (program.find('/') == std::string::npos) return program;
  const std::filesystem::path folder = std::filesystem::absolute(std::filesystem::path(file)).parent_path();
  return (folder / program).lexically_normal().string();
}

// The entries of a mapping by name, in file order; `read` parses each entry's fields.
template <typename Read>
std::string read_named(const Field& field, std::string_view what, const std::vector<std::string_view>& known, Read read) {
  field.require(Kind::kMapping);
  ordered_json found = ordered_json::object();
  for (std::size_t i = 0; i < field.value().keys.size(); ++i) {
    const Key& key = field.value().keys[i];
    if (const std::string problem = figure_name_problem(what, key.text); !problem.empty())
      field.document().fail(key.offset, problem);
    found[key.text] = read(Fields(Field(field.document(), field.value().items[i], fmt::format("'{}'", key.text)), what, known));
  }
  return found.dump();
}

template <std::size_t count>
std::string word_at(const Fields& fields, std::string_view key, const std::array<std::string_view, count>& words) {
  const auto field = fields.find(key);
  if (!field) return std::string(words.front());
  if (std::ranges::find(words, std::string_view(field->text())) == words.end())
    field->fail_word(key, {words.begin(), words.end()});
  return field->text();
}

void read_own_value(const Fields& figure, ordered_json& made) {
  constexpr std::array<std::string_view, 2> kBetter{"lower", "higher"}, kScales{"ratio", "difference"};
  constexpr std::array<std::string_view, 3> kSeveral{"median", "sum", "mean"};
  if (const auto unit = figure.find("unit")) made["unit"] = unit->text();
  if (const auto factor = figure.find("factor")) {
    if (!(factor->number() > 0)) factor->fail("factor: must be more than 0");
    made["factor"] = factor->number();
  }
  if (figure.find("several")) made["several"] = word_at(figure, "several", kSeveral);
  made["better"] = word_at(figure, "better", kBetter);
  made["scale"] = word_at(figure, "scale", kScales);
  if (const auto compared = figure.find("compared")) made["compared"] = compared->boolean();
}

void read_own_times(const Fields& figure, ordered_json& made) {
  if (const auto drawn = figure.find("drawn")) made["drawn"] = drawn->boolean();
  if (const auto floor = figure.find("floor")) made["floor"] = floor->text();
}

ordered_json read_own_figure(const Fields& figure) {
  constexpr std::array<std::string_view, 2> kKinds{"value", "times"};
  const std::string kind = word_at(figure, "kind", kKinds);
  ordered_json made = {{"kind", kind}, {"words", figure.text("words")}};
  if (kind == "times") {
    for (const char* const key : {"unit", "factor", "several", "better", "scale", "compared"}) {
      if (const auto of_value = figure.find(key))
        of_value->fail("'{}' is for values, but times are always in nanoseconds, and lower is better; "
                       "remove it",
                       key);
    }
    read_own_times(figure, made);
  } else {
    for (const char* const key : {"drawn", "floor"}) {
      if (const auto of_times = figure.find(key))
        of_times->fail("'{}' is for times, but this is a value; add 'kind: times', or remove it", key);
    }
    read_own_value(figure, made);
  }
  return made;
}

}  // namespace

void read_program(const Fields& fields, Process& process) {
  if (const auto program = fields.find("program")) {
    program->require_none(program_problem(program->text()));
    process.program = resolved(program->text(), fields.document().label());
  }
  if (const auto options = fields.find("options")) {
    options->require(Kind::kMapping);
    process.options = to_json(*options).dump();
  }
  if (const auto ends = fields.find("ends")) process.ends = ends->boolean();
  for (const char* const key : {"options", "ends"}) {
    if (const auto field = fields.find(key); field && process.program.empty())
      field->fail("'{}' is for programs, but the process has none; add 'program', or remove it", key);
  }
}

std::string read_own_figures(const Field& field) {
  return read_named(field, "figure", {"kind", "words", "unit", "factor", "several", "better", "scale", "compared", "drawn", "floor"},
                    [](const Fields& figure) { return read_own_figure(figure); });
}

std::string read_own_outcomes(const Field& field) {
  constexpr std::array<std::string_view, 2> kOf{"failed", "success"};
  return read_named(field, "outcome", {"words", "of"}, [&](const Fields& outcome) {
    return ordered_json{{"words", outcome.text("words")}, {"of", word_at(outcome, "of", kOf)}};
  });
}

}  // namespace perflab::graph
