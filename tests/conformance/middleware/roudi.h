// RouDi, the daemon of iceoryx, beside the tests of a process. A machine has one.
#pragma once

#include <signal.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string>
#include <string_view>

namespace perflab::conformance {

class RouDi {
 public:
  // `chunks` of 2 KiB and of 8 KiB, and some of 256 KiB.
  explicit RouDi(const std::string& program, int chunks = 400) {
    const auto folder = std::filesystem::temp_directory_path();
    file_ = folder / ("perflab-roudi." + std::to_string(getpid()) + ".toml");
    std::ofstream file(file_);
    file << "[general]\nversion = 1\n[[segment]]\n";
    for (const int size : {2048, 8192, 262144})
      file << "[[segment.mempool]]\nsize = " << size << "\ncount = " << (size > 8192 ? 20 : chunks) << "\n";
    file.close();
    const pid_t parent = getpid();
    pid_ = fork();
    if (pid_ == 0) {
      prctl(PR_SET_PDEATHSIG, SIGTERM);
      if (getppid() != parent) _exit(1);
      if (freopen("/dev/null", "w", stdout) == nullptr) _exit(1);
      execl(program.c_str(), program.c_str(), "-c", file_.c_str(), "-m", "off", "-l", "off", nullptr);
      _exit(127);
    }
  }
  // Whether it listens; the name of one that was killed does not.
  static bool ready() {
    const int probe = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const sockaddr_un address{.sun_family = AF_UNIX, .sun_path = "/tmp/roudi"};
    const bool listens = connect(probe, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
    close(probe);
    return listens;
  }
  RouDi(const RouDi&) = delete;
  RouDi& operator=(const RouDi&) = delete;
  // RouDi ends processes that still use its memory, so the tests must have closed it before.
  ~RouDi() {
    kill(pid_, SIGTERM);
    waitpid(pid_, nullptr, 0);
    std::filesystem::remove(file_);
    // Of processes that were killed: their sockets.
    std::error_code ignored;
    for (const auto& entry : std::filesystem::directory_iterator("/tmp", ignored)) {
      const std::string name = entry.path().filename();
      if (!name.starts_with(kProcess)) continue;
      if (kill(std::atoi(name.c_str() + kProcess.size()), 0) != 0) std::filesystem::remove(entry, ignored);
    }
  }

 private:
  static constexpr std::string_view kProcess = "iceoryx_rt_";

  std::filesystem::path file_;
  pid_t pid_ = -1;
};

}  // namespace perflab::conformance
