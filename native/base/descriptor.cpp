#include "base/descriptor.h"

#include <sys/eventfd.h>
#include <sys/signalfd.h>

#include <array>
#include <cerrno>
#include <csignal>

#include "base/error.h"

namespace perflab {

Descriptor open_file(int at, const char* path) noexcept {
  return Descriptor(openat(at, path, O_RDONLY | O_CLOEXEC));
}

std::optional<std::string> read_file(const std::string& path) {
  const Descriptor file = open_file(AT_FDCWD, path.c_str());
  if (!file.open()) return std::nullopt;
  std::string text;
  std::array<char, 4096> part;
  while (true) {
    const ssize_t got = read(file.number(), part.data(), part.size());
    if (got == 0) return text;
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return std::nullopt;
    text.append(part.data(), static_cast<std::size_t>(got));
  }
}

bool write_all(const Descriptor& file, std::string_view bytes) noexcept {
  while (!bytes.empty()) {
    const ssize_t wrote = write(file.number(), bytes.data(), bytes.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote < 0) return false;
    bytes.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return true;
}

Event::Event() : file_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
  if (!file_.open()) throw Failed("eventfd: " + reason_of(errno));
}

void Event::notify(int number) noexcept {
  const int before = errno;
  const std::uint64_t one = 1;
  static_cast<void>(!write(number, &one, sizeof one));
  errno = before;
}

bool Event::take() const noexcept {
  std::uint64_t count = 0;
  return read(number(), &count, sizeof count) == static_cast<ssize_t>(sizeof count);
}

Descriptor take_signals(std::initializer_list<int> numbers) {
  sigset_t taken;
  sigemptyset(&taken);
  for (const int number : numbers) {
    // A parent may have passed on an ignored SIGCHLD, with which the kernel reaps children before we can wait
    // for them.
    std::signal(number, SIG_DFL);
    sigaddset(&taken, number);
  }
  pthread_sigmask(SIG_BLOCK, &taken, nullptr);
  Descriptor signals(signalfd(-1, &taken, SFD_CLOEXEC | SFD_NONBLOCK));
  if (!signals.open()) throw Failed("signalfd: " + reason_of(errno));
  return signals;
}

int next_signal(const Descriptor& signals) noexcept {
  signalfd_siginfo info{};
  const bool got = read(signals.number(), &info, sizeof info) == static_cast<ssize_t>(sizeof info);
  return got ? static_cast<int>(info.ssi_signo) : 0;
}

}  // namespace perflab
