// A type for Cyclone DDS that consists only of its name: messages are opaque CDR bytes.
//
// Cyclone supports custom serialization (ddsi_sertype, the type; ddsi_serdata, one message). This
// implementation keeps the serialized bytes in the same allocation as the message, so that a message is
// copied once when written and once when received, and is passed to the reader without another copy.
//
// In shared memory the bytes are in an iceoryx chunk: a reader reads them in place, and a writer's message is
// only copied for readers that do not share the memory.
//
// For keyed types the key hash identifies the instance of a message.
#pragma once

#include <dds/dds.h>
#include <dds/ddsi/ddsi_serdata.h>
#include <dds/ddsi/ddsi_sertype.h>

#include <array>
#include <cstddef>
#include <cstdint>

#include "middleware/middleware.h"

namespace perflab::middleware::cyclonedds {

struct Message : ddsi_serdata {
  std::int64_t reception_ns;  // host clock when the receive thread had all fragments
  std::uint32_t size;         // with the encapsulation header
  std::array<std::uint8_t, 16> key_hash;  // zero if the type has no key: then all messages belong to one
                                          // instance

  std::uint8_t* place;                    // start of the bytes: after this struct, or in shared memory
  bool was_shared;                        // received through shared memory

  std::uint8_t* bytes() noexcept { return place; }
  const std::uint8_t* bytes() const noexcept { return place; }
};

// A new type with one reference, for dds_create_topic_sertype. `host` provides the clock; it and the key,
// which may be null, must outlive the domain. `shared_size`: size of each message including its encapsulation
// header, if shared memory may be used, otherwise 0.
ddsi_sertype* new_type(const char* name, const perflab_host* host, const perflab_key* key, std::size_t shared_size);

// The message behind the sample that a filter of such a topic gets.
[[nodiscard]] const Message* message_of(const void* sample) noexcept;

// From now on messages of the type are copied out of shared memory on arrival: a reader that holds too many
// chunks would receive no more.
void copy_out_of_shared_memory(ddsi_sertype* type) noexcept;

// Forgets the message that the library made in this thread for a written chunk, and which it accesses after
// freeing it.
void forget_written() noexcept;

// A message consisting of the parts in order, with one reference; nullptr if there is no memory, or the type
// is keyed and the parts are not a message of it.
Message* new_message(const ddsi_sertype* type, const perflab_bytes* parts, std::size_t part_count) noexcept;

}  // namespace perflab::middleware::cyclonedds
