// Plug-in options, read with errors that name the option and say what would be right.
//
// Example:
//   Options options("sim", given, {"delay", "loss"});
//   const std::int64_t delay_ns = options.duration_ns("delay").value_or(0);
//   const double loss = options.probability("loss").value_or(0.0);
#pragma once

#include <cstdint>
#include <initializer_list>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "middleware/middleware.h"

namespace perflab::middleware::support {

// Every function throws BadInput for a malformed value.
class Options {
 public:
  // Refuses keys that are not in `known`, and keys given twice.
  Options(std::string_view plugin, std::span<const perflab_option> given,
          std::initializer_list<std::string_view> known);

  std::optional<std::string> text(std::string_view key) const;
  // "500us", "2ms", "1.5s", "100ns"; >= 0. A number without unit is refused, so that no unit is guessed.
  std::optional<std::int64_t> duration_ns(std::string_view key) const;
  // "65500", "64KiB", "4MiB".
  std::optional<std::uint64_t> bytes(std::string_view key) const;
  // The same from `least` to `most`; `range` describes the range in messages.
  std::optional<std::uint64_t> bytes(std::string_view key, std::uint64_t least, std::uint64_t most,
                                     std::string_view range) const;
  // True for the first word, false for the second.
  std::optional<bool> either(std::string_view key, std::string_view yes, std::string_view no) const;
  // An XML file, or XML text, which starts with '<'.
  std::optional<std::string> xml(std::string_view key) const;
  std::optional<std::uint64_t> integer(std::string_view key) const;
  // in [0, 1]
  std::optional<double> probability(std::string_view key) const;

  // Throws PERFLAB_BAD_OPTION for `key`, for rules of the plug-in itself.
  [[noreturn]] void refuse(std::string_view key, std::string_view would_be_right) const;

 private:
  std::string plugin_;
  std::map<std::string, std::string, std::less<>> values_;
};

// Settings of plug-ins whose messages stay on one machine.
struct LocalSettings {
  std::uint32_t domain;
  bool ignore_local_endpoints;
  std::int64_t max_blocking_time_ns;  // 1 s, or the option `max_blocking_time`
};

// `reach` says how far the plug-in's messages go, e.g. "leaves no process". Throws BadInput, and Unsupported
// for a network other than lo.
LocalSettings local_settings(std::string_view plugin, const perflab_participant_settings& given,
                             const Options& options, std::string_view reach);

// Domains are 0 to 232, as in DDS. Throws BadInput.
void check_domain(std::string_view plugin, std::uint32_t domain);

}  // namespace perflab::middleware::support
