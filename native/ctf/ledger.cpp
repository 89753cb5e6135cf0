#include "ctf/ledger.h"

#include <array>

namespace perflab::ctf {

const char* name_of(Loss loss) noexcept {
  constexpr std::array kNames{"discarded_events",  "missing_begin",       "missing_end",
                              "missing_stream",    "lost_packets",        "truncated_packet",
                              "corrupt_packet",    "undecodable_event",   "backwards_time",
                              "unreadable_stream", "unreadable_metadata", "foreign_uuid"};
  return kNames[static_cast<std::size_t>(loss)];
}

}  // namespace perflab::ctf
