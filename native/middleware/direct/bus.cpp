#include "middleware/direct/bus.h"

#include <sys/random.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <nlohmann/json.hpp>

#include "base/error.h"
#include "middleware/direct/endpoint.h"
#include "middleware/policies.h"
#include "middleware/types.h"

namespace perflab::middleware::direct {
namespace {

// 12 random bytes; the last 4 number the participant's entities, 0 is the participant itself.
perflab_identity random_identity() {
  perflab_identity identity{};
  if (getrandom(identity.bytes, 12, 0) != 12) throw Failed("direct: no random numbers for an identity");
  return identity;
}

}  // namespace

std::shared_ptr<Bus> Bus::of(std::uint32_t domain) {
  static std::mutex mutex;
  static std::map<std::uint32_t, std::weak_ptr<Bus>> buses;
  const std::lock_guard lock(mutex);
  std::weak_ptr<Bus>& known = buses[domain];
  std::shared_ptr<Bus> bus = known.lock();
  if (!bus) known = bus = std::make_shared<Bus>();
  return bus;
}

bool Bus::concern(const Writer& writer, const Reader& reader) {
  // All participants of a domain are in this process.
  const bool apart = writer.participant().settings().ignore_local_endpoints ||
                     reader.participant().settings().ignore_local_endpoints;
  return !apart && writer.topic() == reader.topic() && writer.type() == reader.type() &&
         rule::OneInCommon::fits(writer.qos().partition, reader.qos().partition);
}

Bus::Pair Bus::join(Writer& writer, Reader& reader) {
  const char* const policy = incompatible_policy(writer.qos(), reader.qos());
  if (policy == nullptr) writer.add(reader);
  return {&writer, &reader, policy};
}

// Callbacks run without the mutex.
void Bus::tell(const Pair& pair) {
  const perflab_event_kind kind = pair.policy == nullptr ? PERFLAB_MATCHED : PERFLAB_INCOMPATIBLE_QOS;
  pair.writer->report(kind, pair.reader->identity(), 1, pair.policy);
  pair.reader->report(kind, pair.writer->identity(), 1, pair.policy);
  if (pair.policy != nullptr) return;
  // A writer is alive as long as it exists.
  pair.reader->report(PERFLAB_LIVELINESS_CHANGED, pair.writer->identity(), 1);
  pair.reader->call();  // there may be history
}

void Bus::enter(Writer& writer) {
  std::vector<Pair> pairs;
  {
    const std::lock_guard lock(mutex_);
    writers_.push_back(&writer);
    for (Reader* const reader : readers_) {
      if (concern(writer, *reader)) pairs.push_back(join(writer, *reader));
    }
  }
  for (const Pair& pair : pairs) tell(pair);
}

void Bus::enter(Reader& reader) {
  std::vector<Pair> pairs;
  {
    const std::lock_guard lock(mutex_);
    readers_.push_back(&reader);
    for (Writer* const writer : writers_) {
      if (concern(*writer, reader)) pairs.push_back(join(*writer, reader));
    }
  }
  for (const Pair& pair : pairs) tell(pair);
}

std::int64_t Bus::lifespan_of(const perflab_identity& writer) {
  const std::lock_guard lock(mutex_);
  const auto found = std::ranges::find_if(writers_, [&](const Writer* one) { return same(one->identity(), writer); });
  return found == writers_.end() ? PERFLAB_DURATION_INFINITE : (*found)->qos().lifespan_ns;
}

void Bus::leave(Writer& writer) {
  {
    const std::lock_guard lock(mutex_);
    std::erase(writers_, &writer);
  }
  for (Reader* const reader : writer.targets()) {
    reader->lose_writer();
    reader->report(PERFLAB_LIVELINESS_CHANGED, writer.identity(), -1);
    reader->report(PERFLAB_UNMATCHED, writer.identity(), 1);
  }
}

void Bus::leave(Reader& reader) {
  std::vector<Writer*> left;
  {
    const std::lock_guard lock(mutex_);
    std::erase(readers_, &reader);
    for (Writer* const writer : writers_) {
      if (writer->remove(reader)) left.push_back(writer);
    }
  }
  reader.close();  // releases a writer that waits for room
  for (Writer* const writer : left) {
    writer->wait_until_left();
    writer->report(PERFLAB_UNMATCHED, reader.identity(), 1);
  }
}

Pool& Bus::lend_pool() {
  const std::lock_guard lock(mutex_);
  if (free_pools_.empty()) {
    pools_.push_back(std::make_unique<Pool>());
    free_pools_.reserve(pools_.size());
    return *pools_.back();
  }
  Pool& pool = *free_pools_.back();
  free_pools_.pop_back();
  return pool;
}

void Bus::return_pool(Pool& pool) noexcept {
  const std::lock_guard lock(mutex_);
  free_pools_.push_back(&pool);
}

Participant::Participant(const perflab_host& host, const support::LocalSettings& settings)
    : host_(host), settings_(settings), bus_(Bus::of(settings.domain)), identity_(random_identity()) {}

perflab_identity Participant::next_identity() {
  perflab_identity identity = identity_;
  const std::uint32_t number = ++entities_;
  std::memcpy(identity.bytes + 12, &number, sizeof number);
  return identity;
}

const char* Participant::describe() {
  const nlohmann::json json = {{"library", "perflab direct"},
                               {"domain", settings_.domain},
                               {"transport", "function calls"},
                               {"shared_memory", false},
                               {"max_blocking_time_ns", settings_.max_blocking_time_ns}};
  description_ = json.dump();
  return description_.c_str();
}

}  // namespace perflab::middleware::direct
