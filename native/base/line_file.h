// A file of whole lines that others may read while it grows.
#pragma once

#include <string>
#include <string_view>

#include "base/descriptor.h"

namespace perflab {

class LineFile {
 public:
  // Creates or truncates the file; throws Failed, naming the file, if that is impossible.
  explicit LineFile(std::string path);

  // Appends one or several lines, or part of one. False if something did not fit, e.g. on a full disk: the
  // incomplete line is removed, complete lines stay, and error() has the reason.
  bool write(std::string_view text) noexcept;
  // Removes an incomplete line and keeps the reason.
  void take_back(std::string_view reason) noexcept;
  // The last write error; empty if there was none.
  [[nodiscard]] const std::string& error() const noexcept { return error_; }
  [[nodiscard]] const std::string& path() const noexcept { return path_; }

 private:
  std::string path_;
  Descriptor file_;
  off_t size_ = 0;
  off_t good_size_ = 0;  // end of the last whole line
  std::string error_;
};

}  // namespace perflab
