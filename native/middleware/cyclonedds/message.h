// A type for Cyclone DDS that knows nothing but its name: messages are CDR bytes, carried as they are.
//
// Cyclone lets an application bring its own serialization (ddsi_sertype, the type; ddsi_serdata, one
// message). This one keeps the serialized bytes in the same allocation as the message, so that a message is
// copied once when written and once when received, and is handed to the reader without another copy.
//
// In shared memory the bytes lie in a chunk of iceoryx: what a reader has there is read where it is, and what a writer has
// there is copied only if somebody needs it who does not share the memory.
//
// Of a type with keys, the hash of its key is what tells the instance of a message.
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
  std::array<std::uint8_t, 16> key_hash;  // zero where the type has no keys: then all messages are of one instance

  std::uint8_t* place;                    // of the bytes: behind this, or in shared memory
  bool was_shared;                        // it came through shared memory

  std::uint8_t* bytes() noexcept { return place; }
  const std::uint8_t* bytes() const noexcept { return place; }
};

// A new type with one reference, to be given to dds_create_topic_sertype. `host` supplies the clock; it and the key,
// which may be null, must outlive the domain.
// `shared_size`: of each message, with its encapsulation header, where shared memory may be used, or 0.
ddsi_sertype* new_type(const char* name, const perflab_host* host, const perflab_key* key, std::size_t shared_size);

// What a filter of a topic of such a type is given as a sample: the message.
[[nodiscard]] const Message* message_of(const void* sample) noexcept;

// From now on messages of the type are copied out of shared memory as they come: who holds too many would get no more.
void copy_out_of_shared_memory(ddsi_sertype* type) noexcept;

// What the library made in this thread of a chunk that was written, which it looks at after it has freed it.
void forget_written() noexcept;

// A message made of the parts one after the other, one reference; nullptr when memory is short, or where the type has
// keys and the parts are no message of it.
Message* new_message(const ddsi_sertype* type, const perflab_bytes* parts, std::size_t part_count) noexcept;

}  // namespace perflab::middleware::cyclonedds
