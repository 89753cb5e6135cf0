// A file of whole lines that somebody may read while it grows.
#pragma once

#include <string>
#include <string_view>

#include "base/descriptor.h"

namespace perflab {

class LineFile {
 public:
  // Creates the file, or empties it; throws Failed naming it if that cannot be done.
  explicit LineFile(std::string path);

  // Appends one or several lines, or a piece of one. False where not all of it fitted, e.g. on a full disk:
  // the line that was not whole is taken back, whole ones that got there stay, and the reason is kept in
  // error().
  bool write(std::string_view text) noexcept;
  // Takes back a line that is not whole, and keeps why.
  void take_back(std::string_view reason) noexcept;
  // The last failure of a write; empty if there was none.
  [[nodiscard]] const std::string& error() const noexcept { return error_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  Descriptor file_;
  off_t size_ = 0;
  off_t good_size_ = 0;  // of whole lines
  std::string error_;
};

}  // namespace perflab
