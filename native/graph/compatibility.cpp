// Request against offer, as DDS defines it (DDS 1.4, 2.2.3).
#include <fmt/format.h>

#include <optional>
#include <string_view>

#include "graph/check.h"
#include "graph/units.h"
#include "graph/vocabulary.h"

namespace perflab::graph {
namespace {

// The first policy by which more is asked for than is offered.
struct Mismatch {
  std::string_view policy;
  std::string offered;
  std::string requested;
  bool limit;  // a duration, which must not be longer on the offering side
};

std::string limit_text(std::int64_t ns) {
  return ns == PERFLAB_DURATION_INFINITE ? std::string("infinite") : duration_text(ns);
}

std::optional<Mismatch> find_mismatch(const perflab_qos& offered, const perflab_qos& requested) {
  const auto words = [](std::string_view policy, const auto& texts, auto offer, auto request) {
    return Mismatch{policy, std::string(word_of(texts, offer)), std::string(word_of(texts, request)), false};
  };
  const auto limits = [](std::string_view policy, std::int64_t offer, std::int64_t request) {
    return Mismatch{policy, limit_text(offer), limit_text(request), true};
  };
  if (offered.reliability < requested.reliability) {
    return words("reliability", kReliabilityWords, offered.reliability, requested.reliability);
  }
  if (offered.durability < requested.durability) {
    return words("durability", kDurabilityWords, offered.durability, requested.durability);
  }
  if (offered.deadline_ns > requested.deadline_ns) {
    return limits("deadline", offered.deadline_ns, requested.deadline_ns);
  }
  if (offered.liveliness < requested.liveliness) {
    return words("liveliness", kLivelinessWords, offered.liveliness, requested.liveliness);
  }
  if (offered.lease_duration_ns > requested.lease_duration_ns) {
    return limits("lease_duration", offered.lease_duration_ns, requested.lease_duration_ns);
  }
  return std::nullopt;
}

}  // namespace

std::string compatibility_problem(const perflab_qos& publisher, const perflab_qos& subscription) {
  const auto mismatch = find_mismatch(publisher, subscription);
  if (!mismatch) return {};
  if (mismatch->limit) {
    return fmt::format("{} is {} there and {} here; the publisher's must not be longer", mismatch->policy,
                       mismatch->offered, mismatch->requested);
  }
  return fmt::format("{0} is {1} there and {2} here; make both the same, or the publisher {2}",
                     mismatch->policy, mismatch->offered, mismatch->requested);
}

std::string service_compatibility_problem(const perflab_qos& server, const perflab_qos& client) {
  constexpr std::string_view kForm =
      "{} is {} there and {} here; make both the same, for requests and replies";
  if (const auto request = find_mismatch(client, server)) {
    return fmt::format(kForm, request->policy, request->requested, request->offered);
  }
  if (const auto reply = find_mismatch(server, client)) {
    return fmt::format(kForm, reply->policy, reply->offered, reply->requested);
  }
  return {};
}

}  // namespace perflab::graph
