// The monitor's file: append-only JSON lines.
#pragma once

#include <string>
#include <string_view>

namespace perflab::monitor {

class Output {
 public:
  // Creates the file; throws runtime::Error (kFailed) naming it if that cannot be done.
  explicit Output(const std::string& path);
  ~Output();
  Output(const Output&) = delete;
  Output& operator=(const Output&) = delete;

  // Appends whole lines. False where not all of them fitted, e.g. on a full disk: a part of a line is taken
  // back, whole ones that got there stay, since somebody may have read them, and the reason is kept in
  // error().
  bool write(std::string_view lines);
  // The last failure of a write; empty if there was none.
  [[nodiscard]] const std::string& error() const noexcept { return error_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  void take_back(std::string_view written);

  std::string path_;
  int file_ = -1;
  long long good_bytes_ = 0;
  std::string error_;
};

}  // namespace perflab::monitor
