// Data on peers, by key. Peers that have left are remembered for a while, because their messages may be taken
// later; but only the most recent ones, so that coming and going peers do not consume memory.
//
// Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>
#include <vector>

namespace perflab::middleware::support {

template <typename Key, typename Value>
class Remembered {
 public:
  static constexpr std::size_t kGone = 64;

  [[nodiscard]] const Value* find(const Key& key) const noexcept {
    const auto at = std::ranges::find(peers_, key, &Peer::key);
    return at == peers_.end() ? nullptr : &at->value;
  }
  void add(const Key& key, Value value) { peers_.push_back({key, std::move(value), false}); }
  void left(const Key& key) noexcept {
    const auto at = std::ranges::find(peers_, key, &Peer::key);
    if (at == peers_.end() || std::exchange(at->gone, true)) return;
    // Moves it to the end: peers that have left are ordered by when they left.
    std::rotate(at, at + 1, peers_.end());
    if (std::ranges::count(peers_, true, &Peer::gone) <= static_cast<std::ptrdiff_t>(kGone)) return;
    peers_.erase(std::ranges::find(peers_, true, &Peer::gone));
  }
  [[nodiscard]] std::size_t size() const noexcept { return peers_.size(); }
  [[nodiscard]] bool empty() const noexcept { return peers_.empty(); }

 private:
  struct Peer {
    Key key;
    Value value;
    bool gone;
  };
  std::vector<Peer> peers_;
};

}  // namespace perflab::middleware::support
