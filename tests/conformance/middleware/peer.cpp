#include "peer.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <filesystem>

#include "fixture.h"

extern char** environ;

namespace perflab::conformance {
namespace {

constexpr int kPatience_ms = 60'000;

}  // namespace

Peer::Peer(const std::string& plugin, std::uint32_t domain,
           const std::vector<std::pair<std::string, std::string>>& options) {
  const std::string program =
      std::filesystem::read_symlink("/proc/self/exe").parent_path() / "conformance_peer";
  std::vector<std::string> words{program, plugin, std::to_string(domain)};
  // What is given to every participant of the plug-in under test.
  if (plugin == subject().plugin) {
    for (const auto& [key, value] : subject().options) {
      const bool replaced = std::ranges::any_of(options, [&](const auto& option) { return option.first == key; });
      if (!replaced) words.push_back(key + "=" + value);
    }
  }
  for (const auto& [key, value] : options) words.push_back(key + "=" + value);
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);

  int in[2];
  int out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) {
    ADD_FAILURE() << "cannot make pipes";
    return;
  }
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, in[0], 0);
  posix_spawn_file_actions_adddup2(&actions, out[1], 1);
  const int code = posix_spawn(&pid_, program.c_str(), &actions, nullptr, arguments.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  close(in[0]);
  close(out[1]);
  commands_ = in[1];
  answers_ = out[0];
  if (code != 0) {
    pid_ = -1;
    ADD_FAILURE() << "cannot start " << program;
    return;
  }
  EXPECT_EQ(answer(), "ready");
}

Peer::~Peer() {
  if (commands_ >= 0) close(commands_);  // the peer ends at the end of its input
  if (answers_ >= 0) close(answers_);
  if (pid_ > 0) waitpid(pid_, nullptr, 0);
}

void Peer::tell(const std::string& command) {
  const std::string line = command + "\n";
  if (::write(commands_, line.data(), line.size()) != static_cast<ssize_t>(line.size())) {
    ADD_FAILURE() << "the peer has ended before: " << command;
  }
}

std::string Peer::answer() {
  for (;;) {
    const std::size_t end = pending_.find('\n');
    if (end != std::string::npos) {
      const std::string line = pending_.substr(0, end);
      pending_.erase(0, end + 1);
      return line;
    }
    pollfd waiting{.fd = answers_, .events = POLLIN, .revents = 0};
    char text[4096];
    ssize_t size = 0;
    if (poll(&waiting, 1, kPatience_ms) > 0) size = read(answers_, text, sizeof text);
    if (size <= 0) {
      ADD_FAILURE() << "no answer from the peer";
      return "";
    }
    pending_.append(text, static_cast<std::size_t>(size));
  }
}

std::string Peer::ask(const std::string& command) {
  tell(command);
  return answer();
}

void Peer::kill() {
  if (pid_ <= 0) return;
  ::kill(pid_, SIGKILL);
  waitpid(pid_, nullptr, 0);
  pid_ = -1;
}

}  // namespace perflab::conformance
