// Another process with the same plug-in, which executes the commands sent by ask().
//
// Example:
//   Peer peer(subject().plugin, domain);
//   peer.ask("reader r rt/topic Type keep_all reliable volatile 1");
//   peer.ask("wait_matched r 1");
//   write(writer, 0);
//   EXPECT_EQ(peer.ask("take r 1 36"), "took 1 intact 1 ordered 1 first 0 last 0");
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace perflab::conformance {

class Peer {
 public:
  Peer(const std::string& plugin, std::uint32_t domain,
       const std::vector<std::pair<std::string, std::string>>& options = {});
  Peer(const Peer&) = delete;
  Peer& operator=(const Peer&) = delete;
  ~Peer();

  // Sends a line and waits for the answer; adds a test failure and returns "" if the peer has ended.
  std::string ask(const std::string& command);
  // Sends a line only.
  void tell(const std::string& command);
  std::string answer();
  // SIGKILL, and waits until the process is gone.
  void kill();
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  int commands_ = -1;
  int answers_ = -1;
  std::string pending_;
};

}  // namespace perflab::conformance
