#include "middleware/fastdds/message.h"

#include "middleware/types.h"

namespace perflab::middleware::fastdds {
namespace {

// What the library reserves for a message of unknown size before it sees one. It grows with the first
// message.
constexpr std::uint32_t kInitialSize = 16;

}  // namespace

MessageType::MessageType(const std::string& name, std::size_t fixed_size) : fixed_size_(fixed_size) {
  const std::uint32_t room = fixed_size == 0 ? kInitialSize : static_cast<std::uint32_t>(padded(fixed_size));
#if PERFLAB_FASTDDS_3
  set_name(name);
  max_serialized_type_size = room;
  is_compute_key_provided = false;
#else
  setName(name.c_str());
  m_typeSize = room;
  m_isGetKeyDefined = false;
  auto_fill_type_object(false);
  auto_fill_type_information(false);
#endif
}

bool MessageType::write_to(const Outgoing& message, rtps::SerializedPayload_t& payload) noexcept {
  if (message.size > payload.max_size) return false;
  put_together(message.parts, message.count, payload.data);
  payload.length = message.size;
  payload.encapsulation = message.size > 1 && (payload.data[1] & 1) == 0 ? CDR_BE : CDR_LE;
  return true;
}

}  // namespace perflab::middleware::fastdds
