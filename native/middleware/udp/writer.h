// A writer: sends one or more datagrams to each of its readers.
#pragma once

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <mutex>
#include <vector>

#include "middleware/middleware.h"
#include "middleware/udp/datagram.h"
#include "middleware/udp/entity.h"

namespace perflab::middleware::udp {

// A reader as seen by its writer.
struct Target {
  perflab_identity reader;
  sockaddr_in address;
  std::uint64_t largest;  // largest message that fits into its socket
  Head head{};            // header of datagrams sent to it
};

class Writer : public Entity {
 public:
  Writer(Participant& participant, const perflab_endpoint_settings& settings,
         const perflab_listener* listener);
  ~Writer();

  std::size_t matched() const noexcept;
  perflab_status write(const perflab_bytes* parts, std::size_t part_count,
                       const perflab_sample_identity* related, std::int64_t* sequence, perflab_error* error);
  void stamp_next(std::int64_t source_timestamp_ns) noexcept { next_stamp_ns_ = source_timestamp_ns; }

  // On the control thread, under the domain's mutex. Returns the number of the first message for it.
  std::uint64_t add(const Target& target);
  void peer_gone(const perflab_identity& reader);

 private:
  // Everything below requires mutex_.
  void make_room(std::size_t part_count);
  void lay_out(const perflab_bytes* parts, std::size_t part_count, std::size_t offset, std::size_t size);
  perflab_status send_piece(perflab_error* error);

  std::int64_t next_stamp_ns_ = 0;  // 0: use the wall clock; used by the writing thread
  const Descriptor socket_;

  mutable std::mutex mutex_;
  std::vector<Target> targets_;
  // One message per target: its header and the parts that fall into the piece.
  std::vector<mmsghdr> messages_;
  std::vector<iovec> pieces_;
  std::int64_t next_ = 1;  // number of the next message
};

}  // namespace perflab::middleware::udp
