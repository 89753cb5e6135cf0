// A domain of one's own: parallel test processes (and perflab runs) never meet.
//
// Example:
//   const DomainLock domain;   // held until the end of scope, or of the process, however it ends
//   settings.domain = domain.id();
#pragma once

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdint>
#include <stdexcept>
#include <string>
#include <utility>

namespace perflab::conformance {

class DomainLock {
 public:
  // The first free one from `first`, in a circle; the process id spreads processes that start together.
  DomainLock() {
    const std::string folder = "/tmp/perflab-domains-" + std::to_string(getuid());
    mkdir(folder.c_str(), 0700);
    for (std::uint32_t i = 0; i < kCount; ++i) {
      const std::uint32_t id = kFirst + (static_cast<std::uint32_t>(getpid()) + i) % kCount;
      const std::string file = folder + "/" + std::to_string(id) + ".lock";
      const int fd = open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
      if (fd < 0) continue;
      if (flock(fd, LOCK_EX | LOCK_NB) == 0) {
        fd_ = fd;
        id_ = id;
        return;
      }
      close(fd);
    }
    throw std::runtime_error("no free domain in " + folder);
  }
  DomainLock(const DomainLock&) = delete;
  DomainLock& operator=(const DomainLock&) = delete;
  ~DomainLock() {
    if (fd_ >= 0) close(fd_);
  }

  std::uint32_t id() const noexcept { return id_; }

 private:
  // The ports of these domains lie below the range from which Linux takes ports for others.
  static constexpr std::uint32_t kFirst = 2;
  static constexpr std::uint32_t kCount = 99;

  int fd_ = -1;
  std::uint32_t id_ = 0;
};

}  // namespace perflab::conformance
