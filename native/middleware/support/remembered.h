// What is known of peers, by a key. Peers that have left are remembered for a while, for what they wrote may
// be taken after they are gone; but only the last ones, so that peers that come and go cost no memory.
//
// Not for several threads at a time.
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
    // To the end: among those who left, the first did so first.
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
