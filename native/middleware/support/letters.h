// How participants of one machine find each other and talk, apart from messages: letters over AF_UNIX
// sockets.
//
// Each participant of a domain listens on the first free of kSeats abstract names
// ("perflab-<plug-in>.<user>.<domain>.<n>") and connects to all who were there before it; both ends send. Who
// joins holds one more name meanwhile, so that of two one is always the later one. The kernel removes names
// and connections with the process, however it ends: nothing is left behind, and peers see the end at once.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/descriptor.h"
#include "middleware/middleware.h"

namespace perflab::middleware::support {

inline constexpr int kSeats = 256;
// Changes whenever the meaning of a letter does, or of what a plug-in sends along.
inline constexpr std::uint32_t kMagic = 0x504c4d34;  // "PLM4"
// Of topic, type and text together.
inline constexpr std::size_t kLongestNames = 32 << 10;

enum class Kind : std::uint32_t {
  hello,   // the first from either end: `from` is the participant
  writer,  // `from` exists, with this QoS, topic, type and user data
  reader,  // likewise
  gone,    // `from` does not exist any more
  match,   // the reader `from` wants the messages of the writer `to`
  start,   // the answer to `match`: the writer `from` has the reader `to` among those that it writes for
};

// With `hello`, `match` and `start` a plug-in sends along what it needs: a number, a file, text (any bytes).

struct Letter {
  // As it travels, with the names behind it.
  struct Head {
    std::uint32_t magic = kMagic;
    Kind kind{};
    perflab_identity from{};
    perflab_identity to{};
    std::uint64_t number = 0;
    perflab_qos qos{};
  };
  Head head;
  std::string topic;
  std::string type;
  std::string text;  // of an endpoint: its user data
  Descriptor file;
};

enum class Sent { yes, later, gone };
// Neither blocks. `later`: the other end has not read enough yet.
Sent send(const Descriptor& socket, const Letter& letter);
// The next letter that has come. `gone`: there will be none, or what came is none.
std::optional<Letter> receive(const Descriptor& socket, bool& gone);

struct Seat {
  Descriptor listener;
  int number = 0;
  std::vector<Descriptor> others;  // connected to those who were there
};
// `plugin` is whose domain it is: those of different plug-ins do not meet. Throws Failed when all are taken.
Seat take_seat(const std::string& plugin, std::uint32_t domain);
// The next waiting connection of this user, if any.
Descriptor accept_connection(const Descriptor& listener);

}  // namespace perflab::middleware::support
