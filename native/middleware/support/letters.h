// Control messages ("letters") between participants of one machine, over AF_UNIX sockets: discovery and
// matching.
//
// Each participant of a domain listens on the first free of kSeats abstract names
// ("perflab-<plug-in>.<user>.<domain>.<n>") and connects to all that exist already; both ends send. A joining
// participant holds one additional name meanwhile, so that of two one is always later. The kernel removes
// names and connections when the process ends in any way: nothing is left behind, and peers notice the end at
// once.
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
// Changes whenever the meaning of a letter or of its attachments changes.
inline constexpr std::uint32_t kMagic = 0x504c4d34;  // "PLM4"
// Maximum total length of topic, type and text.
inline constexpr std::size_t kLongestNames = 32 << 10;

enum class Kind : std::uint32_t {
  hello,   // the first letter in either direction; `from` is the participant
  writer,  // the writer `from` exists, with this QoS, topic, type and user data
  reader,  // the same for a reader
  gone,    // `from` no longer exists
  match,   // the reader `from` wants the messages of the writer `to`
  start,   // the answer to `match`: the writer `from` now sends to the reader `to`
};

// With `hello`, `match` and `start` a plug-in attaches what it needs: a number, a file, text (any bytes).

struct Letter {
  // The wire format, followed by the names.
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
// Neither function blocks. `later`: the peer has not read enough yet.
Sent send(const Descriptor& socket, const Letter& letter);
// The next letter received. `gone`: the connection has ended, or the data are invalid.
std::optional<Letter> receive(const Descriptor& socket, bool& gone);

struct Seat {
  Descriptor listener;
  int number = 0;
  std::vector<Descriptor> others;  // connections to participants that were there before
};
// `plugin` separates domains: different plug-ins do not meet. Throws Failed if all seats are taken.
Seat take_seat(const std::string& plugin, std::uint32_t domain);
// The next waiting connection by this user, if any.
Descriptor accept_connection(const Descriptor& listener);

}  // namespace perflab::middleware::support
