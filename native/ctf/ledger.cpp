#include "ctf/ledger.h"

namespace perflab::ctf {

const char* name_of(Loss loss) noexcept {
  switch (loss) {
    case Loss::discarded_events:
      return "discarded_events";
    case Loss::missing_begin:
      return "missing_begin";
    case Loss::missing_end:
      return "missing_end";
    case Loss::missing_stream:
      return "missing_stream";
    case Loss::lost_packets:
      return "lost_packets";
    case Loss::truncated_packet:
      return "truncated_packet";
    case Loss::corrupt_packet:
      return "corrupt_packet";
    case Loss::undecodable_event:
      return "undecodable_event";
    case Loss::backwards_time:
      return "backwards_time";
    case Loss::unreadable_stream:
      return "unreadable_stream";
    case Loss::unreadable_metadata:
      return "unreadable_metadata";
    case Loss::foreign_uuid:
      return "foreign_uuid";
  }
  return "unknown";
}

}  // namespace perflab::ctf
