#include "middleware/support/waitset.h"

#include <string>

#include "base/error.h"

namespace perflab::middleware::support {

Attachment::~Attachment() {
  if (Places* const places = places_.load()) places->remove(place_);
}

Places::~Places() {
  for (const Place& place : places_) {
    if (place.reader == nullptr) continue;
    const std::lock_guard lock(place.reader->mutex_);  // a message may be arriving right now
    place.reader->places_ = nullptr;
  }
}

std::size_t Places::add(Attachment& reader, std::uint64_t cookie) {
  // Unused places at the end are reused; the others keep their order.
  while (!places_.empty() && places_.back().reader == nullptr) places_.pop_back();
  const std::size_t place = places_.size();
  places_.reserve(place + 1);
  if (place / kBits == marks_.size()) marks_.emplace_back(0);
  const std::lock_guard lock(reader.mutex_);
  if (reader.attached()) {
    throw Failed(std::string(reader.plugin_) + ": the reader is attached to a wait-set already");
  }
  places_.push_back({&reader, cookie});
  reader.places_ = this;
  reader.place_ = place;
  reader.word_ = &word(place);
  return place;
}

void Places::remove(std::size_t place) noexcept {
  Attachment& reader = *places_[place].reader;
  {
    const std::lock_guard lock(reader.mutex_);
    reader.places_ = nullptr;
  }
  unmark(place);
  places_[place].reader = nullptr;
}

}  // namespace perflab::middleware::support
