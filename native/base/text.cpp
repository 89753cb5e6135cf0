#include "base/text.h"

#include <algorithm>
#include <cstdint>
#include <numeric>
#include <span>

#include "base/hex.h"

namespace perflab {
namespace {

constexpr std::size_t kMaxQuoted = 64;

// The length of the well-formed UTF-8 sequence at `offset`, or 0 (Unicode 15, table 3-7).
std::size_t sequence_length(std::string_view text, std::size_t offset) noexcept {
  const auto byte = [&](std::size_t index) {
    return offset + index < text.size() ? static_cast<unsigned char>(text[offset + index]) : 0u;
  };
  const auto within = [&](std::size_t index, unsigned low, unsigned high) {
    return byte(index) >= low && byte(index) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return 1;
  if (first >= 0xc2 && first <= 0xdf) return within(1, 0x80, 0xbf) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const unsigned low = first == 0xe0 ? 0xa0 : 0x80;
    const unsigned high = first == 0xed ? 0x9f : 0xbf;
    return within(1, low, high) && within(2, 0x80, 0xbf) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const unsigned low = first == 0xf0 ? 0x90 : 0x80;
    const unsigned high = first == 0xf4 ? 0x8f : 0xbf;
    return within(1, low, high) && within(2, 0x80, 0xbf) && within(3, 0x80, 0xbf) ? 4 : 0;
  }
  return 0;
}

// Characters that would break or disguise the line: C0, DEL, C1, Unicode line separators, bidirectional
// controls and invisible characters (like perflab/output.py).
bool breaks_line(std::string_view sequence) {
  if (sequence.size() == 1) return static_cast<unsigned char>(sequence[0]) < 0x20 || sequence[0] == 0x7f;
  if (sequence.size() == 2) {
    const auto last = static_cast<unsigned char>(sequence[1]);
    return (sequence[0] == '\xc2' && (last < 0xa0 || last == 0xad)) || sequence == "\xd8\x9c";
  }
  if (sequence.size() != 3) return false;
  const auto last = static_cast<unsigned char>(sequence[2]);
  if (sequence.starts_with("\xe2\x80")) {
    return last == 0x8b || last == 0x8e || last == 0x8f || (last >= 0xa8 && last <= 0xae);
  }
  if (sequence.starts_with("\xe2\x81")) return last >= 0xa0 && last <= 0xaf;
  return sequence == "\xef\xbb\xbf";
}

// Optimal string alignment distance: insertions, deletions, substitutions, swaps of neighbours.
std::size_t distance(std::string_view a, std::string_view b) {
  std::vector<std::size_t> before(b.size() + 1);
  std::vector<std::size_t> above(b.size() + 1);
  std::vector<std::size_t> row(b.size() + 1);
  std::iota(above.begin(), above.end(), std::size_t{0});
  for (std::size_t i = 1; i <= a.size(); ++i) {
    row[0] = i;
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t substitution = above[j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      row[j] = std::min({above[j] + 1, row[j - 1] + 1, substitution});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        row[j] = std::min(row[j], before[j - 2] + 1);
      }
    }
    std::swap(before, above);
    std::swap(above, row);
  }
  return above[b.size()];
}

std::string lower(std::string_view text) {
  std::string result(text);
  std::ranges::transform(result, result.begin(),
                         [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; });
  return result;
}

}  // namespace

std::string one_line(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = sequence_length(text, i);
    const std::string_view sequence = text.substr(i, std::max<std::size_t>(length, 1));
    if (length > 0 && !breaks_line(sequence)) {
      result.append(sequence);
    } else {
      for (const char c : sequence) {
        const auto byte = static_cast<std::uint8_t>(c);
        result.append("\\x").append(to_hex({&byte, 1}));
      }
    }
    i += sequence.size();
  }
  return result;
}

std::string quote(std::string_view text) {
  if (text.size() <= kMaxQuoted) return "'" + one_line(text) + "'";
  std::size_t cut = kMaxQuoted - 3;
  while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xc0) == 0x80) --cut;
  return "'" + one_line(text.substr(0, cut)) + "...'";
}

std::string list_of(const std::vector<std::string_view>& words) {
  std::string result;
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (i > 0) result += i + 1 == words.size() ? " or " : ", ";
    result += words[i];
  }
  return result;
}

std::size_t find_invalid_utf8(std::string_view text) noexcept {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t length = sequence_length(text, i);
    if (length == 0) return i;
    i += length;
  }
  return std::string_view::npos;
}

std::string_view closest(std::string_view word, const std::vector<std::string_view>& candidates) {
  constexpr std::size_t kLongestWord = 64;  // longer words are not misspellings
  if (word.empty() || word.size() > kLongestWord) return {};
  const std::string typed = lower(word);
  std::string_view best;
  std::size_t best_distance = std::max<std::size_t>(2, typed.size() * 2 / 5) + 1;
  for (const std::string_view candidate : candidates) {
    const std::size_t d = distance(typed, lower(candidate));
    if (d < best_distance && d < std::max(typed.size(), candidate.size())) {
      best = candidate;
      best_distance = d;
    }
  }
  if (!best.empty()) return best;
  for (const std::string_view candidate : candidates) {  // "topic_name" matches "topic"
    if (candidate.size() > best.size() && candidate.size() > 2 &&
        typed.find(lower(candidate)) != std::string::npos) {
      best = candidate;
    }
  }
  if (!best.empty()) return best;
  std::size_t best_prefix = 0;
  for (const std::string_view candidate :
       candidates) {  // "freq" matches "frequency", "subscribers" "subscriptions"
    const auto end = std::ranges::mismatch(typed, lower(candidate)).in1;
    const auto prefix = static_cast<std::size_t>(end - typed.begin());
    const bool abbreviated = prefix == typed.size() && prefix >= 3;
    if (prefix > best_prefix && (abbreviated || (prefix >= 5 && prefix * 2 >= candidate.size()))) {
      best = candidate;
      best_prefix = prefix;
    }
  }
  return best;
}

}  // namespace perflab
