// A type for Cyclone DDS that knows nothing but its name: messages are CDR bytes, carried as they are.
//
// Cyclone lets an application bring its own serialization (ddsi_sertype, the type; ddsi_serdata, one
// message). This one keeps the serialized bytes in the same allocation as the message, so that a message is
// copied once when written and once when received, and is handed to the reader without another copy.
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

  std::uint8_t* bytes() noexcept { return reinterpret_cast<std::uint8_t*>(this + 1); }
  const std::uint8_t* bytes() const noexcept { return reinterpret_cast<const std::uint8_t*>(this + 1); }
};

// A new type with one reference, to be given to dds_create_topic_sertype. `host` supplies the clock; it and the key,
// which may be null, must outlive the domain.
ddsi_sertype* new_type(const char* name, const perflab_host* host, const perflab_key* key);

// A message made of the parts one after the other, one reference; nullptr when memory is short, or where the type has
// keys and the parts are no message of it.
Message* new_message(const ddsi_sertype* type, const perflab_bytes* parts, std::size_t part_count) noexcept;

}  // namespace perflab::middleware::cyclonedds
