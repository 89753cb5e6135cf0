// The words of graph files and resolved graphs for the enumerators of the model.
//
// Example:
//   word_of(kHistoryWords, PERFLAB_KEEP_ALL);                     // "keep_all"
//   value_of(kHistoryWords, "keep_lst");                          // nullopt
#pragma once

#include <array>
#include <optional>
#include <string_view>
#include <vector>

#include "graph/model.h"
#include "middleware/policies.h"

namespace perflab::graph {

using middleware::kDurabilityWords;
using middleware::kHistoryWords;
using middleware::kLivelinessWords;
using middleware::kReliabilityWords;
using middleware::Word;

inline constexpr std::array kExecutorWords{
    Word{"inline", ExecutorKind::kInline}, Word{"single_threaded", ExecutorKind::kSingleThreaded},
    Word{"static_single_threaded", ExecutorKind::kStaticSingleThreaded},
    Word{"events", ExecutorKind::kEvents}, Word{"polling", ExecutorKind::kPolling},
    Word{"multi_threaded", ExecutorKind::kMultiThreaded},
    Word{"priority", ExecutorKind::kPriority}, Word{"let", ExecutorKind::kLet}};
inline constexpr std::array kPolicyWords{Word{"OTHER", realtime::Policy::kOther},
                                         Word{"FIFO", realtime::Policy::kFifo},
                                         Word{"RR", realtime::Policy::kRoundRobin},
                                         Word{"DEADLINE", realtime::Policy::kDeadline}};
inline constexpr std::array kPassByWords{Word{"shared", PassBy::kShared}, Word{"unique", PassBy::kUnique},
                                         Word{"loaned", PassBy::kLoaned}};
inline constexpr std::array kSerializationWords{Word{"once", Serialization::kOnce},
                                                Word{"every", Serialization::kEvery}};
inline constexpr std::array kFramingWords{Word{"rmw_fastrtps", runtime::ServiceFraming::kRmwFastrtps},
                                          Word{"rmw_cyclonedds", runtime::ServiceFraming::kRmwCyclonedds}};
inline constexpr std::array kOverrunWords{Word{"catch_up", Overrun::kCatchUp}, Word{"skip", Overrun::kSkip}};
inline constexpr std::array kArrivalsWords{Word{"periodic", Arrivals::kPeriodic},
                                           Word{"poisson", Arrivals::kPoisson},
                                           Word{"unthrottled", Arrivals::kUnthrottled}};
inline constexpr std::array kPhaseWords{Word{"as_created", Phase::kAsCreated},
                                        Word{"aligned", Phase::kAligned},
                                        Word{"staggered", Phase::kStaggered}, Word{"random", Phase::kRandom}};
inline constexpr std::array kReactionWords{
    Word{"relay", ReactionKind::kRelay}, Word{"transform", ReactionKind::kTransform},
    Word{"fusion", ReactionKind::kFusion}, Word{"cyclic", ReactionKind::kCyclic},
    Word{"sink", ReactionKind::kSink}};
inline constexpr std::array kKeyFigureWords{Word{"path", KeyFigureKind::kPath},
                                            Word{"lost", KeyFigureKind::kLost},
                                            Word{"jitter", KeyFigureKind::kJitter}};

// "" for a value without a word.
template <typename Words, typename Enumerator>
constexpr std::string_view word_of(const Words& words, Enumerator value) {
  for (const auto& word : words) {
    if (word.value == value) return word.text;
  }
  return {};
}

template <typename Words>
constexpr auto value_of(const Words& words, std::string_view text)
    -> std::optional<decltype(words.front().value)> {
  for (const auto& word : words) {
    if (word.text == text) return word.value;
  }
  return std::nullopt;
}

template <typename Words>
std::vector<std::string_view> texts_of(const Words& words) {
  std::vector<std::string_view> texts;
  for (const auto& word : words) texts.push_back(word.text);
  return texts;
}

}  // namespace perflab::graph
