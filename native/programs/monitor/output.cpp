#include "programs/monitor/output.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "runtime/runtime.h"

namespace perflab::monitor {

Output::Output(const std::string& path) : path_(path) {
  file_ = open(path.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0644);
  if (file_ < 0) {
    throw runtime::Error(runtime::Error::Kind::kFailed,
                         path + ": cannot be written: " + std::strerror(errno));
  }
}

Output::~Output() { close(file_); }

bool Output::write(std::string_view lines) {
  std::size_t done = 0;
  while (done < lines.size()) {
    const ssize_t wrote = ::write(file_, lines.data() + done, lines.size() - done);
    if (wrote < 0) {
      if (errno == EINTR) continue;
      error_ = path_ + ": " + std::strerror(errno);
      take_back(lines.substr(0, done));
      return false;
    }
    done += static_cast<std::size_t>(wrote);
  }
  good_bytes_ += static_cast<long long>(lines.size());
  return true;
}

void Output::take_back(std::string_view written) {
  const std::size_t last = written.rfind('\n');
  const std::size_t whole = last == std::string_view::npos ? 0 : last + 1;
  good_bytes_ += static_cast<long long>(whole);
  if (whole < written.size() && ftruncate(file_, good_bytes_) != 0)
    error_ += " (and it could not be cut back)";
}

}  // namespace perflab::monitor
