#include "middleware/fastdds/message.h"

#include "middleware/types.h"

namespace perflab::middleware::fastdds {
namespace {

// The library's initial reservation for a message of unknown size. It grows with the first message.
constexpr std::uint32_t kInitialSize = 16;

}  // namespace

MessageType::MessageType(const std::string& name, std::size_t fixed_size, const perflab_key* key)
    : fixed_size_(fixed_size), key_(key) {
  const std::uint32_t room = fixed_size == 0 ? kInitialSize : static_cast<std::uint32_t>(padded(fixed_size));
#if PERFLAB_FASTDDS_3
  set_name(name);
  max_serialized_type_size = room;
  is_compute_key_provided = key != nullptr;
#else
  setName(name.c_str());
  m_typeSize = room;
  m_isGetKeyDefined = key != nullptr;
  auto_fill_type_object(false);
  auto_fill_type_information(false);
#endif
}

void MessageType::add_filters(const perflab_endpoint_settings& settings) {
  const std::lock_guard lock(filters_mutex_);
  for (const perflab_filter& filter : std::span(settings.filters, settings.filter_count)) filters_[filter.expression] = filter;
}

std::optional<perflab_filter> MessageType::filter(std::string_view expression) const {
  const std::lock_guard lock(filters_mutex_);
  const auto found = filters_.find(expression);
  return found == filters_.end() ? std::nullopt : std::optional(found->second);
}

bool MessageType::write_to(const Outgoing& message, rtps::SerializedPayload_t& payload) noexcept {
  if (message.size > payload.max_size) return false;
  put_together(message.parts, message.count, payload.data);
  payload.length = message.size;
  payload.encapsulation = message.size > 1 && (payload.data[1] & 1) == 0 ? CDR_BE : CDR_LE;
  return true;
}

bool MessageType::hash(perflab_form form, std::span<const perflab_bytes> parts,
                       rtps::InstanceHandle_t& instance) const noexcept {
  std::uint8_t hash[16];
  if (key_ == nullptr || !key_->hash(key_->context, form, parts.data(), parts.size(), hash)) return false;
  for (rtps::octet i = 0; i < sizeof hash; ++i) instance.value[i] = hash[i];
  return true;
}

bool MessageType::hash_of(const Carried& message, rtps::InstanceHandle_t& instance) const noexcept {
  if (message.outgoing) {
    const auto& outgoing = static_cast<const Outgoing&>(message);
    return hash(PERFLAB_MESSAGE, {outgoing.parts, outgoing.count}, instance);
  }
  const auto& view = static_cast<const View&>(message);
  const perflab_bytes whole{view.data, view.size};
  return hash(PERFLAB_MESSAGE, {&whole, 1}, instance);
}

}  // namespace perflab::middleware::fastdds
