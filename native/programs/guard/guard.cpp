#include "programs/guard/guard.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <utility>

namespace perflab::guard {
namespace {

using nlohmann::json;
using proc::Process;
using proc::open_process;
using proc::read_process;
using proc::send_signal;

constexpr Nanoseconds kMillisecond = 1'000'000;
constexpr Nanoseconds kBetweenKills = 20 * kMillisecond;
// A process that has not ended by then is stuck in the kernel, and ends when it leaves the kernel.
constexpr Nanoseconds kKillLimit = 10'000 * kMillisecond;
constexpr Nanoseconds kFlushLimit = 5'000 * kMillisecond;
constexpr Nanoseconds kMaxGrace = 3'600'000 * kMillisecond;
// With more than this unread by perflab, the command's output has to wait.
constexpr std::size_t kMaxUnsent = 1u << 20;

constexpr std::size_t kQuoted = 80;

bool is_of_type(const json& message, const char* type) {
  const auto found = message.is_object() ? message.find("type") : message.end();
  return found != message.end() && *found == type;
}

}  // namespace

Guard::Guard(const Settings& settings)
    : settings_(settings), perflab_(getppid()), control_(settings.control_fd) {}

int Guard::run() {
  try {
    prepare();
    start_command();
    while (reap()) {
      advance();
      wait_for_something();
    }
    return finish();
  } catch (const std::exception& error) {
    if (command_ > 0) kill(-command_, SIGKILL);  // what can still be done
    tell_error(kind_of(error), error.what());
    flush();
    return exit_code(kind_of(error));
  }
}

void Guard::prepare() {
  signals_ = take_signals({SIGCHLD, SIGTERM, SIGINT, SIGHUP});
  if (prctl(PR_SET_CHILD_SUBREAPER, 1) != 0) throw Unsupported("PR_SET_CHILD_SUBREAPER: " + reason_of(errno));
  // Not PR_SET_PDEATHSIG, which fires when the parent thread ends, even if its process is alive.
  perflab_pidfd_ = open_process(perflab_);
  if (!perflab_pidfd_.open() && errno == ENOSYS)
    throw Unsupported("pidfd_open: this needs Linux 5.3 or later");
  proc::living_descendants({getpid()});  // fail now rather than too late if /proc is missing
}

void Guard::start_command() {
  std::array<int, 2> problem{};
  if (pipe2(problem.data(), O_CLOEXEC) != 0) throw Failed("pipe: " + reason_of(errno));
  std::array<int, 2> pair{-1, -1};
  if (settings_.give_control && socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()) != 0)
    throw Failed("socketpair: " + reason_of(errno));
  command_ = fork();
  if (command_ < 0) throw Failed("fork: " + reason_of(errno));
  if (command_ == 0) become_command(pair[1], problem[1]);
  setpgid(command_, command_);  // both processes call it, whichever comes first
  close(problem[1]);
  if (settings_.give_control) {
    close(pair[1]);
    command_channel_.emplace(pair[0]);
  }
  int number = 0;
  ssize_t got = 0;
  while ((got = read(problem[0], &number, sizeof number)) < 0 && errno == EINTR) {
  }
  close(problem[0]);
  if (got == static_cast<ssize_t>(sizeof number)) {
    waitpid(std::exchange(command_, 0), nullptr, 0);
    throw Unsupported("cannot execute " + settings_.command.front() + ": " + reason_of(number));
  }
  const std::optional<Process> process = read_process(command_);  // it exists until it is waited for
  tell({{"type", "started"},
        {"pid", command_},
        {"start_ticks", process ? json(process->identity.start_ticks) : json()},
        {"at_ns", clock_.now()}});
}

// In the child; the pipe closes on exec or carries the error.
void Guard::become_command(int control, int problem) const {
  const pid_t guard = getppid();
  setpgid(0, 0);
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != guard) _exit(1);  // the guard died before prctl
  sigset_t none;
  sigemptyset(&none);
  sigprocmask(SIG_SETMASK, &none, nullptr);
  std::vector<std::string> words = settings_.command;
  if (control >= 0) {
    fcntl(control, F_SETFD, 0);
    words.insert(words.end(), {"--control-fd", std::to_string(control)});
  }
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  execvp(arguments.front(), arguments.data());
  const int number = errno;
  static_cast<void>(!write(problem, &number, sizeof number));
  _exit(127);
}

// Waits for all processes that have ended. False if no descendant is left.
bool Guard::reap() {
  while (true) {
    int status = 0;
    const pid_t pid = waitpid(-1, &status, WNOHANG | __WALL);
    if (pid < 0 && errno == EINTR) continue;
    if (pid < 0) return false;
    if (pid == 0) return true;
    if (pid != command_) continue;
    command_ = 0;
    tell({{"type", "ended"},
          {"status", WIFEXITED(status) ? json(WEXITSTATUS(status)) : json()},
          {"signal", WIFSIGNALED(status) ? json(WTERMSIG(status)) : json()},
          {"stopped", phase_ != Phase::kRunning},
          {"at_ns", clock_.now()}});
  }
}

void Guard::stop(Nanoseconds grace_ns) {
  if (phase_ != Phase::kRunning) return;
  phase_ = Phase::kTerminating;
  due_ns_ = clock_.now() + std::clamp<Nanoseconds>(grace_ns, 0, kMaxGrace);
  // Once only: later processes may be part of an orderly end, and have until the end of the grace period.
  for (const Process& process : proc::living_descendants({getpid()})) {
    send_signal(process.identity, SIGTERM);
    send_signal(process.identity, SIGCONT);  // a stopped process would not receive the signal
  }
}

void Guard::kill_all() {
  for (const Process& process : proc::living_descendants({getpid()})) {
    if (send_signal(process.identity, SIGKILL)) killed_.insert(process.identity);
  }
}

void Guard::advance() {
  const Nanoseconds now = clock_.now();
  if (phase_ == Phase::kRunning || now < due_ns_) return;
  if (phase_ == Phase::kTerminating) {
    phase_ = Phase::kKilling;
    give_up_ns_ = now + kKillLimit;
  }
  if (now >= give_up_ns_) {
    std::string left;
    for (const Process& process : proc::living_descendants({getpid()}))
      left += (left.empty() ? "" : ", ") + process.name + " (" + std::to_string(process.identity.pid) + ")";
    throw Failed("not ended by SIGKILL in " + std::to_string(kKillLimit / kNanosecondsPerSecond) +
                 " s: " + left);
  }
  kill_all();
  due_ns_ = now + kBetweenKills;
}

int Guard::milliseconds_until_due() const {
  if (phase_ == Phase::kRunning) return -1;
  const Nanoseconds left = std::max<Nanoseconds>(0, due_ns_ - clock_.now());
  return static_cast<int>((left + kMillisecond - 1) / kMillisecond);
}

void Guard::wait_for_something() {
  const auto wanted = [](const Channel& channel, bool listen) {
    const int events = (listen && !channel.at_end() ? POLLIN : 0) | (channel.unsent() > 0 ? POLLOUT : 0);
    // poll(2) reports a hang-up even if it was not requested: without requested events the descriptor is
    // omitted.
    return pollfd{events != 0 ? channel.descriptor() : -1, static_cast<short>(events), 0};
  };
  enum { kControl, kSignal, kPerflab, kCommand };
  std::array<pollfd, 4> waiting{wanted(control_, true), pollfd{signals_.number(), POLLIN, 0},
                                pollfd{perflab_pidfd_.number(), POLLIN, 0}, pollfd{-1, 0, 0}};
  if (command_channel_)
    waiting[kCommand] =
        wanted(*command_channel_, control_.unsent() < kMaxUnsent || phase_ != Phase::kRunning);
  if (poll(waiting.data(), waiting.size(), milliseconds_until_due()) <= 0) return;
  if (waiting[kControl].revents != 0) on_control();
  if (waiting[kCommand].revents != 0) on_command_channel();
  if (waiting[kSignal].revents != 0) on_signals();
  if (waiting[kPerflab].revents != 0) {
    perflab_pidfd_.close();
    stop(settings_.grace_ns);
  }
}

void Guard::on_signals() {
  while (const int number = next_signal(signals_)) {
    if (number != SIGCHLD) stop(settings_.grace_ns);
  }
}

void Guard::on_control() {
  control_.flush();
  try {
    control_.read();
  } catch (const Failed& error) {
    fail(std::string("control channel: ") + error.what());
  }
  while (const auto line = control_.next_line()) {
    const json message = json::parse(*line, nullptr, false);
    if (is_of_type(message, "stop")) {
      const auto grace = message.find("grace_ms");
      const bool named = grace != message.end() && grace->is_number_unsigned();
      stop(named ? std::min(grace->get<Nanoseconds>(), kMaxGrace / kMillisecond) * kMillisecond
                 : settings_.grace_ns);
    } else if (is_of_type(message, "send") && message.contains("body") && command_channel_) {
      command_channel_->send(message["body"].dump());
    } else {
      fail("control channel: unexpected line: " + line->substr(0, kQuoted));
    }
  }
  if (control_.at_end()) stop(settings_.grace_ns);
}

// False if nothing came.
bool Guard::on_command_channel() {
  bool came = false;
  command_channel_->flush();
  try {
    came = command_channel_->read();
  } catch (const Failed& error) {
    fail(settings_.command.front() + " said " + error.what());
  }
  while (const auto line = command_channel_->next_line()) {
    if (json::accept(*line)) {
      control_.send(R"({"type":"said","body":)" + *line + "}");
    } else {
      fail(settings_.command.front() + " sent a line that is not JSON: " + line->substr(0, kQuoted));
    }
  }
  return came;
}

void Guard::tell(const json& message) {
  // Names of programs, and their output, may not be valid UTF-8.
  control_.send(message.dump(-1, ' ', false, json::error_handler_t::replace));
}

void Guard::tell_error(Error::Kind kind, const std::string& text) {
  std::fprintf(stderr, "perflab-guard: %s\n", text.c_str());
  tell({{"type", "error"}, {"kind", to_text(kind)}, {"text", text}});
}

// Reports the first failure; then ends the command as after a stop.
void Guard::fail(const std::string& text) {
  if (!std::exchange(failed_, true)) tell_error(Error::Kind::kFailed, text);
  stop(settings_.grace_ns);
}

// Waits a limited time for perflab to read everything.
void Guard::flush() {
  for (const Nanoseconds limit = clock_.now() + kFlushLimit; control_.unsent() > 0 && clock_.now() < limit;) {
    pollfd waiting{control_.descriptor(), POLLOUT, 0};
    poll(&waiting, 1, 100);
    control_.flush();
  }
}

// No descendant is left: passes on the last output.
int Guard::finish() {
  while (command_channel_ && on_command_channel()) {
  }
  tell({{"type", "done"}, {"killed", killed_.size()}});
  flush();
  return failed_ ? 1 : 0;
}

}  // namespace perflab::guard
