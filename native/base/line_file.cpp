#include "base/line_file.h"

#include <cerrno>
#include <utility>

#include "base/error.h"

namespace perflab {

LineFile::LineFile(std::string path)
    : path_(std::move(path)),
      file_(open(path_.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644)) {
  if (!file_.open()) throw Failed(path_ + ": cannot be written: " + reason_of(errno));
}

bool LineFile::write(std::string_view text) noexcept {
  while (!text.empty()) {
    const ssize_t wrote = ::write(file_.number(), text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) {
      take_back(reason_of(errno));
      return false;
    }
    size_ += wrote;
    const std::size_t end = text.substr(0, static_cast<std::size_t>(wrote)).rfind('\n');
    if (end != std::string_view::npos) good_size_ = size_ - wrote + static_cast<off_t>(end) + 1;
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return true;
}

void LineFile::take_back(std::string_view reason) noexcept {
  error_ = path_ + ": ";
  error_ += reason;
  if (size_ == good_size_) return;
  // Best effort: readers also accept a truncated last line.
  if (ftruncate(file_.number(), good_size_) == 0) {
    size_ = good_size_;
  } else {
    error_ += " (and the partial line could not be removed)";
  }
}

}  // namespace perflab
