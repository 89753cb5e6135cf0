#include "middleware/cyclonedds/message.h"

#include <dds/ddsi/q_radmin.h>
#ifdef DDS_HAS_SHM
#include <dds/ddsi/ddsi_shm_transport.h>
#endif

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <new>
#include <utility>

#include "middleware/types.h"

namespace perflab::middleware::cyclonedds {
namespace {

struct Type : ddsi_sertype {
  const perflab_host* host;
  const perflab_key* key;  // null: the topic has no key
  std::atomic<bool> copies_out;  // copy messages out of shared memory
};

Message* allocate(const ddsi_sertype* type, ddsi_serdata_kind kind, std::size_t size) noexcept;

const Message* message(const ddsi_serdata* data) { return static_cast<const Message*>(data); }

void set_key_hash(Message& made, const std::array<std::uint8_t, 16>& hash) noexcept {
  made.key_hash = hash;
  // Keys are often small numbers, whose hashes differ in few bits, and Cyclone only uses the lowest bits.
  std::uint64_t halves[2];
  static_assert(sizeof halves == sizeof hash);
  std::memcpy(halves, hash.data(), sizeof halves);
  std::uint64_t mixed = (halves[0] ^ halves[1] * 0x9e3779b97f4a7c15u) * 0xbf58476d1ce4e5b9u;  // SplitMix64
  mixed = (mixed ^ mixed >> 31) * 0x94d049bb133111ebu;
  made.hash ^= static_cast<std::uint32_t>(mixed >> 32);
}

// Computes the key hash of a message or key from its bytes. Frees it and returns null if they are not of the
// type.
Message* with_key(Message* made) noexcept {
  const perflab_key* const key = static_cast<const Type*>(made->type)->key;
  if (key == nullptr) return made;
  const perflab_bytes whole{made->bytes(), made->size};
  const perflab_form form = made->kind == SDK_KEY ? PERFLAB_KEY : PERFLAB_MESSAGE;
  std::array<std::uint8_t, 16> hash{};
  if (!key->hash(key->context, form, &whole, 1, hash.data())) {
    ddsi_serdata_unref(made);
    return nullptr;
  }
  set_key_hash(*made, hash);
  return made;
}

// ---- one message (ddsi_serdata_ops) ----

bool keys_equal(const ddsi_serdata* one, const ddsi_serdata* other) {
  return message(one)->key_hash == message(other)->key_hash;
}

std::uint32_t size_of(const ddsi_serdata* data) { return message(data)->size; }

// Copies the fragments of a received message. They arrive in order, but may overlap.
ddsi_serdata* from_network(const ddsi_sertype* type, ddsi_serdata_kind kind, const nn_rdata* fragment,
                           std::size_t size) {
  const perflab_host* const host = static_cast<const Type*>(type)->host;
  const std::int64_t reception_ns = host->now_ns(host->context);
  Message* const received = allocate(type, kind, size);
  if (received == nullptr) return nullptr;
  std::uint32_t have = 0;
  for (; fragment != nullptr; fragment = fragment->nextfrag) {
    if (fragment->min > have) break;  // a gap
    if (fragment->maxp1 <= have) continue;
    const unsigned char* const payload =
        reinterpret_cast<const unsigned char*>(fragment->rmsg + 1) + NN_RDATA_PAYLOAD_OFF(fragment);
    std::memcpy(received->bytes() + have, payload + (have - fragment->min), fragment->maxp1 - have);
    have = fragment->maxp1;
  }
  if (have != size) {
    ddsi_serdata_unref(received);
    return nullptr;
  }
  received->reception_ns = reception_ns;
  return with_key(received);
}

ddsi_serdata* from_parts(const ddsi_sertype* type, ddsi_serdata_kind kind, ddsrt_msg_iovlen_t count,
                         const ddsrt_iovec_t* parts, std::size_t size) {
  Message* const made = allocate(type, kind, size);
  if (made == nullptr) return nullptr;
  std::uint8_t* to = made->bytes();
  for (ddsrt_msg_iovlen_t i = 0; i < count; ++i) {
    std::memcpy(to, parts[i].iov_base, parts[i].iov_len);
    to += parts[i].iov_len;
  }
  return with_key(made);
}

ddsi_serdata* from_key_hash(const ddsi_sertype* type, const ddsi_keyhash* given) {
  Message* const made = allocate(type, SDK_KEY, 0);
  if (made == nullptr || static_cast<const Type*>(type)->key == nullptr) return made;
  std::array<std::uint8_t, 16> hash{};
  static_assert(sizeof given->value == sizeof hash);
  std::memcpy(hash.data(), given->value, sizeof hash);
  set_key_hash(*made, hash);
  return made;
}

thread_local ddsi_serdata* last_written = nullptr;

// perflab only writes serialized messages, not application samples. But for a type in shared memory a sample
// is the message in its chunk, which is copied here for readers outside of the shared memory.
ddsi_serdata* from_sample(const ddsi_sertype* type, ddsi_serdata_kind kind, const void* sample) {
  if (kind != SDK_DATA) return allocate(type, kind, 0);
#ifdef DDS_HAS_SHM
  if (type->fixed_size == 0) return nullptr;
  Message* const made = allocate(type, kind, type->iox_size);
  if (made == nullptr) return nullptr;
  std::memcpy(made->bytes(), sample, type->iox_size);
  Message* const whole = with_key(made);
  // If it is not sent in time the library frees it and then looks up its chunk in it.
  if (whole != nullptr) last_written = ddsi_serdata_ref(whole);
  return whole;
#else
  static_cast<void>(sample);
  return nullptr;
#endif
}

#ifdef DDS_HAS_SHM
// A message that stays in its chunk: of a reader (`subscriber`), which returns the chunk when the message is
// freed, or of a writer, which gives it away.
ddsi_serdata* from_chunk(const ddsi_sertype* type, ddsi_serdata_kind kind, void* subscriber, void* chunk) {
  const Type* const own = static_cast<const Type*>(type);
  const std::size_t size = iceoryx_header_from_chunk(chunk)->data_size;
  const bool copies = subscriber != nullptr && own->copies_out.load(std::memory_order_relaxed);
  Message* const made = allocate(type, kind, copies ? size : 0);
  if (made == nullptr) return nullptr;
  made->was_shared = true;
  if (subscriber != nullptr) made->reception_ns = own->host->now_ns(own->host->context);
  if (copies) {
    std::memcpy(made->bytes(), chunk, size);
    free_iox_chunk(static_cast<iox_sub_t*>(subscriber), &chunk);
  } else {
    made->place = static_cast<std::uint8_t*>(chunk);
    made->size = static_cast<std::uint32_t>(size);
    made->iox_chunk = chunk;
    made->iox_subscriber = subscriber;
  }
  return with_key(made);
}
#endif

void copy_out(const ddsi_serdata* data, std::size_t offset, std::size_t size, void* to) {
  std::memcpy(to, message(data)->bytes() + offset, size);
}

ddsi_serdata* lend_out(const ddsi_serdata* data, std::size_t offset, std::size_t size, ddsrt_iovec_t* lent) {
  lent->iov_base = const_cast<std::uint8_t*>(message(data)->bytes()) + offset;
  lent->iov_len = size;
  return ddsi_serdata_ref(data);
}

void take_back(ddsi_serdata* data, const ddsrt_iovec_t*) { ddsi_serdata_unref(data); }

// The only sample is the one that the library creates for a filter, in the same thread before and after: it
// identifies the message.
thread_local const ddsi_serdata* filtered = nullptr;

bool to_sample(const ddsi_serdata* data, void* sample, void**, void*) {
  if (sample != &filtered) return false;
  filtered = data;
  return true;
}
bool key_to_sample(const ddsi_sertype*, const ddsi_serdata*, void*, void**, void*) { return true; }

// Represents an instance. Only compared, never sent: no instance is disposed or unregistered.
ddsi_serdata* to_key(const ddsi_serdata* data) {
  Message* const key = allocate(data->type, SDK_KEY, 0);
  if (key == nullptr) return nullptr;
  key->key_hash = message(data)->key_hash;
  key->hash = data->hash;
  key->type = nullptr;
  return key;
}

void free_message(ddsi_serdata* data) {
  // The last reference was released inside libddsc. This load makes other threads' releases visible to
  // ThreadSanitizer, which does not instrument libddsc.
  static_cast<void>(__atomic_load_n(&data->refc.v, __ATOMIC_ACQUIRE));
#ifdef DDS_HAS_SHM
  if (data->iox_chunk != nullptr && data->iox_subscriber != nullptr)
    free_iox_chunk(static_cast<iox_sub_t*>(data->iox_subscriber), &data->iox_chunk);
#endif
  std::free(static_cast<Message*>(data));
}

std::size_t print(const ddsi_sertype* type, const ddsi_serdata* data, char* text, std::size_t size) {
  const int length = std::snprintf(text, size, "%s, %u bytes", type != nullptr ? type->type_name : "key",
                                   message(data)->size);
  return length < 0 ? 0 : static_cast<std::size_t>(length);
}

// A digest is only required by DDS Security, with which topics cannot be keyed here.
void key_hash(const ddsi_serdata* data, ddsi_keyhash* hash, bool) {
  std::memcpy(hash->value, message(data)->key_hash.data(), sizeof hash->value);
}

const ddsi_serdata_ops kMessageOps = {
    .eqkey = keys_equal,
    .get_size = size_of,
    .from_ser = from_network,
    .from_ser_iov = from_parts,
    .from_keyhash = from_key_hash,
    .from_sample = from_sample,
    .to_ser = copy_out,
    .to_ser_ref = lend_out,
    .to_ser_unref = take_back,
    .to_sample = to_sample,
    .to_untyped = to_key,
    .untyped_to_sample = key_to_sample,
    .free = free_message,
    .print = print,
    .get_keyhash = key_hash,
#ifdef DDS_HAS_SHM
    .get_sample_size = size_of,
    .from_iox_buffer = from_chunk,
#endif
};

Message* allocate(const ddsi_sertype* type, ddsi_serdata_kind kind, std::size_t size) noexcept {
  // Cyclone reads up to the next multiple of 4 and sends these bytes, so they must be initialized.
  const std::size_t rounded = (size + 3) & ~std::size_t{3};
  if (rounded > std::numeric_limits<std::uint32_t>::max()) return nullptr;
  void* const memory = std::malloc(sizeof(Message) + rounded);
  if (memory == nullptr) return nullptr;
  Message* const made = new (memory) Message;
  ddsi_serdata_init(made, type, kind);
  made->hash = type != nullptr ? type->serdata_basehash : 0;
  made->reception_ns = PERFLAB_TIME_UNKNOWN;
  made->size = static_cast<std::uint32_t>(size);
  made->key_hash = {};
  made->place = reinterpret_cast<std::uint8_t*>(made + 1);
  made->was_shared = false;
  std::memset(made->bytes() + size, 0, rounded - size);
  return made;
}

// ---- the type (ddsi_sertype_ops) ----

void free_type(ddsi_sertype* type) {
  ddsi_sertype_fini(type);
  delete static_cast<Type*>(type);
}

void zero_samples(const ddsi_sertype*, void*, std::size_t) {}
void reallocate_samples(void** samples, const ddsi_sertype*, void*, std::size_t, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) samples[i] = &filtered;
}
void free_samples(const ddsi_sertype*, void**, std::size_t, dds_free_op_t) {}
std::size_t shared_size(const ddsi_sertype* type) {
#ifdef DDS_HAS_SHM
  return type->fixed_size != 0 ? type->iox_size : 0;
#else
  static_cast<void>(type);
  return 0;
#endif
}
// Same name and same operations.
bool types_equal(const ddsi_sertype* one, const ddsi_sertype* other) {
  return static_cast<const Type*>(one)->key == static_cast<const Type*>(other)->key &&
         shared_size(one) == shared_size(other);
}
std::uint32_t hash_type(const ddsi_sertype*) { return 0; }

const ddsi_sertype_ops kTypeOps = {
    .version = ddsi_sertype_v0,
    .arg = nullptr,
    .free = free_type,
    .zero_samples = zero_samples,
    .realloc_samples = reallocate_samples,
    .free_samples = free_samples,
    .equal = types_equal,
    .hash = hash_type,
    .type_id = nullptr,
    .type_map = nullptr,
    .type_info = nullptr,
    .derive_sertype = nullptr,
    // Types of variable size do not use shared memory.
    .get_serialized_size = nullptr,
    .serialize_into = nullptr,
};

}  // namespace

ddsi_sertype* new_type(const char* name, const perflab_host* host, const perflab_key* key, std::size_t shared_size) {
  Type* const type = new Type{};
  ddsi_sertype_init_flags(type, name, &kTypeOps, &kMessageOps,
                          key == nullptr ? DDSI_SERTYPE_FLAG_TOPICKIND_NO_KEY : 0);
  type->host = host;
  type->key = key;
#ifdef DDS_HAS_SHM
  if (shared_size != 0) {
    type->fixed_size = 1;
    type->iox_size = static_cast<std::uint32_t>(shared_size);
  }
#else
  static_cast<void>(shared_size);
#endif
  return type;
}

const Message* message_of(const void* sample) noexcept {
  return message(*static_cast<const ddsi_serdata* const*>(sample));
}

void copy_out_of_shared_memory(ddsi_sertype* type) noexcept { static_cast<Type*>(type)->copies_out = true; }

void forget_written() noexcept {
  if (ddsi_serdata* const last = std::exchange(last_written, nullptr)) ddsi_serdata_unref(last);
}

Message* new_message(const ddsi_sertype* type, const perflab_bytes* parts, std::size_t part_count) noexcept {
  const std::size_t size = middleware::size_of(parts, part_count);
  Message* const made = allocate(type, SDK_DATA, size);
  if (made == nullptr) return nullptr;
  put_together(parts, part_count, made->bytes());
  return with_key(made);
}

}  // namespace perflab::middleware::cyclonedds
