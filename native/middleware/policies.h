// The table of QoS policies, one row each. All generic code uses it: graph files and resolved graphs
// (graph/), QoS compatibility of writers and readers, and the check for policies that a middleware refuses.
// perflab/qos.py is the Python counterpart; a test compares the two (`perflab-graph policies`).
//
// A new policy needs a member of perflab_qos, a row here, a row in qos.py, and the library call in each
// plug-in that declares it. All other plug-ins refuse it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <tuple>

#include "base/error.h"
#include "middleware/types.h"

namespace perflab::middleware {

// The name of an enumerator in files and messages.
template <typename Enumerator>
struct Word {
  std::string_view text;
  Enumerator value;
};
template <typename Enumerator>
Word(const char*, Enumerator) -> Word<Enumerator>;

inline constexpr std::array kHistoryWords{Word{"keep_last", PERFLAB_KEEP_LAST}, Word{"keep_all", PERFLAB_KEEP_ALL}};
inline constexpr std::array kReliabilityWords{Word{"reliable", PERFLAB_RELIABLE},
                                              Word{"best_effort", PERFLAB_BEST_EFFORT}};
inline constexpr std::array kDurabilityWords{
    Word{"volatile", PERFLAB_VOLATILE}, Word{"transient_local", PERFLAB_TRANSIENT_LOCAL},
    Word{"transient", PERFLAB_TRANSIENT}, Word{"persistent", PERFLAB_PERSISTENT}};
inline constexpr std::array kLivelinessWords{Word{"automatic", PERFLAB_AUTOMATIC},
                                             Word{"manual_by_topic", PERFLAB_MANUAL_BY_TOPIC}};
inline constexpr std::array kOwnershipWords{Word{"shared", PERFLAB_SHARED}, Word{"exclusive", PERFLAB_EXCLUSIVE}};
inline constexpr std::array kDestinationOrderWords{Word{"by_reception", PERFLAB_BY_RECEPTION},
                                                   Word{"by_source", PERFLAB_BY_SOURCE}};
inline constexpr std::array kAccessScopeWords{Word{"instance", PERFLAB_SCOPE_INSTANCE}, Word{"topic", PERFLAB_SCOPE_TOPIC},
                                              Word{"group", PERFLAB_SCOPE_GROUP}};

// The type of a policy's value.
namespace form {
template <const auto& of>
struct Words {
  static constexpr const auto& words = of;
};
struct Depth {};      // messages; PERFLAB_DEPTH_UNLIMITED with keep_all
struct Limit {};      // ns > 0, or PERFLAB_DURATION_INFINITE
struct Duration {};   // ns >= 0
struct Number {};     // a whole number >= 0
struct Most {};       // a whole number > 0, or PERFLAB_COUNT_UNLIMITED
struct Flag {};
struct Text {};
struct Names {};  // names separated by commas
}  // namespace form

// Which offered values are compatible with a requested one (DDS 1.4, 2.2.3).
namespace rule {
struct Any {
  static bool fits(const auto& /*offered*/, const auto& /*requested*/) { return true; }
};
struct AtLeast {
  static bool fits(const auto& offered, const auto& requested) { return offered >= requested; }
};
struct AtMost {
  static bool fits(const auto& offered, const auto& requested) { return offered <= requested; }
};
struct Same {
  static bool fits(const auto& offered, const auto& requested) { return offered == requested; }
};
// At least one common name. The empty name counts as a name.
struct OneInCommon {
  static bool fits(const perflab_text& offered, const perflab_text& requested) {
    bool found = false;
    each_name(offered, [&](std::string_view offer) {
      each_name(requested, [&](std::string_view request) { found = found || offer == request; });
    });
    return found;
  }
  template <typename Visit>
  static void each_name(const perflab_text& names, Visit visit) {
    std::string_view rest = names.text;
    for (;;) {
      const std::size_t comma = rest.find(',');
      visit(rest.substr(0, comma));
      if (comma == std::string_view::npos) return;
      rest.remove_prefix(comma + 1);
    }
  }
};
}  // namespace rule

enum class Ends { kBoth, kWriters, kReaders };
enum class Origin {
  kRos2,  // part of rmw_qos_profile_t
  kDds    // only in DDS
};

template <typename Member, typename Form, typename Rule>
struct Policy {
  const char* name;      // in graph files
  const char* resolved;  // in resolved graphs
  const char* policy;    // DDS name, as declared by plug-ins and named in events
  Member perflab_qos::* member;
  Form form;
  Rule rule;
  Ends ends;
  Origin origin;
};

inline constexpr auto kPolicies = [] {
  using Qos = perflab_qos;
  using namespace form;
  constexpr auto row = []<typename Member, typename Form, typename Rule>(const char* name, const char* resolved, const char* policy,
                                                                         Member Qos::* member, Form form, Rule rule, Ends ends,
                                                                         Origin origin) {
    return Policy<Member, Form, Rule>{name, resolved, policy, member, form, rule, ends, origin};
  };
  using enum Ends;
  using enum Origin;
  constexpr rule::Any kAny;
  return std::tuple{
      row("history", "history", "history", &Qos::history, Words<kHistoryWords>{}, kAny, kBoth, kRos2),
      row("depth", "depth", "history", &Qos::depth, Depth{}, kAny, kBoth, kRos2),
      row("reliability", "reliability", "reliability", &Qos::reliability, Words<kReliabilityWords>{}, rule::AtLeast{}, kBoth,
          kRos2),
      row("durability", "durability", "durability", &Qos::durability, Words<kDurabilityWords>{}, rule::AtLeast{}, kBoth, kRos2),
      row("deadline", "deadline_ns", "deadline", &Qos::deadline_ns, Limit{}, rule::AtMost{}, kBoth, kRos2),
      row("lifespan", "lifespan_ns", "lifespan", &Qos::lifespan_ns, Limit{}, kAny, kWriters, kRos2),
      row("liveliness", "liveliness", "liveliness", &Qos::liveliness, Words<kLivelinessWords>{}, rule::AtLeast{}, kBoth, kRos2),
      row("lease_duration", "lease_duration_ns", "liveliness", &Qos::lease_duration_ns, Limit{}, rule::AtMost{}, kBoth, kRos2),
      row("service_cleanup_delay", "service_cleanup_delay_ns", "durability_service", &Qos::service_cleanup_delay_ns, Duration{},
          kAny, kWriters, kDds),
      row("partition", "partition", "partition", &Qos::partition, Names{}, rule::OneInCommon{}, kBoth, kDds),
      row("ownership", "ownership", "ownership", &Qos::ownership, Words<kOwnershipWords>{}, rule::Same{}, kBoth, kDds),
      row("ownership_strength", "ownership_strength", "ownership", &Qos::ownership_strength, Number{}, kAny, kWriters, kDds),
      row("time_based_filter", "time_based_filter_ns", "time_based_filter", &Qos::time_based_filter_ns, Duration{}, kAny, kReaders,
          kDds),
      row("destination_order", "destination_order", "destination_order", &Qos::destination_order,
          Words<kDestinationOrderWords>{}, rule::AtLeast{}, kBoth, kDds),
      row("transport_priority", "transport_priority", "transport_priority", &Qos::transport_priority, Number{}, kAny, kWriters,
          kDds),
      row("latency_budget", "latency_budget_ns", "latency_budget", &Qos::latency_budget_ns, Duration{}, rule::AtMost{}, kBoth, kDds),
      row("max_samples", "max_samples", "resource_limits", &Qos::max_samples, Most{}, kAny, kBoth, kDds),
      row("max_instances", "max_instances", "resource_limits", &Qos::max_instances, Most{}, kAny, kBoth, kDds),
      row("max_samples_per_instance", "max_samples_per_instance", "resource_limits", &Qos::max_samples_per_instance, Most{}, kAny,
          kBoth, kDds),
      row("access_scope", "access_scope", "presentation", &Qos::access_scope, Words<kAccessScopeWords>{}, rule::AtLeast{}, kBoth,
          kDds),
      row("coherent", "coherent", "presentation", &Qos::coherent, Flag{}, rule::AtLeast{}, kBoth, kDds),
      row("ordered", "ordered", "presentation", &Qos::ordered, Flag{}, rule::AtLeast{}, kBoth, kDds),
      row("user_data", "user_data", "user_data", &Qos::user_data, Text{}, kAny, kBoth, kDds),
      row("topic_data", "topic_data", "topic_data", &Qos::topic_data, Text{}, kAny, kBoth, kDds),
      row("group_data", "group_data", "group_data", &Qos::group_data, Text{}, kAny, kBoth, kDds)};
}();

// Calls visit(row) for each policy, in table order.
template <typename Visit>
constexpr void each_policy(Visit visit) {
  std::apply([&](const auto&... rows) { (visit(rows), ...); }, kPolicies);
}

template <typename Value>
bool same_value(const Value& a, const Value& b) {
  return a == b;
}
template <>
inline bool same_value(const perflab_text& a, const perflab_text& b) {
  return std::strcmp(a.text, b.text) == 0;
}

// The text of a value, as in files and messages.
template <const auto& words>
std::string value_text(form::Words<words> /*form*/, auto value) {
  for (const auto& word : words) {
    if (word.value == value) return std::string(word.text);
  }
  return "?";
}
inline std::string value_text(form::Flag /*form*/, bool value) { return value ? "true" : "false"; }
inline std::string value_text(form::Text /*form*/, const perflab_text& value) { return std::string("'") + value.text + "'"; }
inline std::string value_text(form::Names /*form*/, const perflab_text& value) {
  return value.text[0] == '\0' ? "none" : std::string("'") + value.text + "'";
}
inline std::string value_text(form::Duration /*form*/, std::int64_t ns) { return std::to_string(ns) + " ns"; }
inline std::string value_text(form::Limit /*form*/, std::int64_t ns) {
  return ns == PERFLAB_DURATION_INFINITE ? "infinite" : std::to_string(ns) + " ns";
}
inline std::string value_text(form::Number /*form*/, std::int32_t value) { return std::to_string(value); }
inline std::string value_text(form::Most /*form*/, std::int32_t value) {
  return value == PERFLAB_COUNT_UNLIMITED ? "infinite" : std::to_string(value);
}
inline std::string value_text(form::Depth /*form*/, std::int32_t value) { return std::to_string(value); }

// The value that requires nothing from a middleware: the weakest of ordered words, otherwise the default.
template <typename Member, typename Form, typename Rule>
constexpr Member neutral(const Policy<Member, Form, Rule>& row) {
  if constexpr (requires { Form::words; }) {
    return static_cast<Member>(0);
  } else {
    return default_qos().*row.member;
  }
}

// A plug-in's declaration for a policy, or for one of its values ("durability=transient"); nullptr if it has
// none.
inline const perflab_policy* declared(const perflab_policy* policies, std::string_view name) noexcept {
  if (policies == nullptr) return nullptr;
  for (; policies->name != nullptr; ++policies) {
    if (policies->name == name) return policies;
  }
  return nullptr;
}

// Throws Unsupported, naming the first requested policy that is declared neither as supported nor as a hint.
// Undeclared policies are refused, never ignored.
inline void require_declared(std::string_view who, std::string_view topic, const perflab_qos& qos,
                             const perflab_policy* policies) {
  each_policy([&](const auto& row) {
    const auto& value = qos.*row.member;
    if (same_value(value, neutral(row)) || std::string_view(row.name) == "depth") return;
    const std::string text = value_text(row.form, value);
    const perflab_policy* found = declared(policies, std::string(row.policy) + "=" + text);
    if (found == nullptr) found = declared(policies, row.policy);
    if (found != nullptr && found->support != PERFLAB_REFUSED) return;
    const std::string why = found != nullptr && found->note != nullptr ? std::string(": ") + found->note : "";
    const std::string of = std::string_view(row.name) == row.policy ? "" : std::string(" (") + row.policy + ")";
    throw Unsupported(std::string(who) + ": topic '" + std::string(topic) + "': " + row.name + " " + text + of +
                      " is refused" + why + "; right would be " + row.name + " " + value_text(row.form, neutral(row)));
  });
}

// Like require_declared(), for runtimes that only have the policies of ROS 2.
inline void require_ros2_policies(std::string_view who, std::string_view topic, const perflab_qos& qos) {
  each_policy([&](const auto& row) {
    if (row.origin == Origin::kRos2 || same_value(qos.*row.member, neutral(row))) return;
    throw Unsupported(std::string(who) + ": topic '" + std::string(topic) + "': " + row.name + " " +
                      value_text(row.form, qos.*row.member) + " is not a policy of ROS 2; right would be " + row.name +
                      " " + value_text(row.form, neutral(row)));
  });
  if (qos.durability > PERFLAB_TRANSIENT_LOCAL) {
    throw Unsupported(std::string(who) + ": topic '" + std::string(topic) + "': durability " +
                      value_text(form::Words<kDurabilityWords>{}, qos.durability) +
                      " does not exist in ROS 2; right would be durability transient_local");
  }
}

// The first policy whose values keep a writer and a reader from matching, or nullptr (DDS 1.4, 2.2.3).
inline const char* incompatible_policy(const perflab_qos& offered, const perflab_qos& requested) noexcept {
  const char* found = nullptr;
  each_policy([&](const auto& row) {
    if (found == nullptr && !row.rule.fits(offered.*row.member, requested.*row.member)) found = row.policy;
  });
  return found;
}

}  // namespace perflab::middleware
