// Requested against offered QoS, as DDS defines it (DDS 1.4, 2.2.3).
#include <fmt/format.h>

#include <optional>
#include <string>
#include <string_view>
#include <type_traits>

#include "graph/check.h"
#include "graph/units.h"
#include "graph/vocabulary.h"

namespace perflab::graph {
namespace {

enum class Kind {
  kOrder,  // the publisher must offer as much or more
  kLimit,  // a duration, which must not be longer on the offering side
  kNames,  // one in common
  kSame
};

// The first policy by which more is requested than offered.
struct Mismatch {
  std::string_view policy;
  std::string offered;
  std::string requested;
  Kind kind;
};

std::string text_of(middleware::form::Limit /*form*/, std::int64_t ns) {
  return ns == PERFLAB_DURATION_INFINITE ? std::string("infinite") : duration_text(ns);
}
std::string text_of(middleware::form::Duration /*form*/, std::int64_t ns) { return duration_text(ns); }
std::string text_of(auto form, const auto& value) { return middleware::value_text(form, value); }

std::optional<Mismatch> find_mismatch(const perflab_qos& offered, const perflab_qos& requested) {
  std::optional<Mismatch> found;
  middleware::each_policy([&](const auto& row) {
    const auto& offer = offered.*row.member;
    const auto& request = requested.*row.member;
    if (found || row.rule.fits(offer, request)) return;
    using Rule = std::remove_cvref_t<decltype(row.rule)>;
    const Kind kind = std::is_same_v<Rule, middleware::rule::AtMost>        ? Kind::kLimit
                      : std::is_same_v<Rule, middleware::rule::OneInCommon> ? Kind::kNames
                      : std::is_same_v<Rule, middleware::rule::Same>        ? Kind::kSame
                                                                            : Kind::kOrder;
    found = Mismatch{row.name, text_of(row.form, offer), text_of(row.form, request), kind};
  });
  return found;
}

}  // namespace

std::string compatibility_problem(const perflab_qos& publisher, const perflab_qos& subscription) {
  const auto mismatch = find_mismatch(publisher, subscription);
  if (!mismatch) return {};
  if (mismatch->kind == Kind::kNames || mismatch->kind == Kind::kSame) {
    return fmt::format("{} is {} there and {} here; {}", mismatch->policy, mismatch->offered, mismatch->requested,
                       mismatch->kind == Kind::kNames ? "give both a common one" : "make both the same");
  }
  if (mismatch->kind == Kind::kLimit) {
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
