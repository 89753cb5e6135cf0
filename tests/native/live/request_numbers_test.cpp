// Services whose messages have no field for measurement data, on each middleware: the request number
// identifies the request of a reply, however early the reply comes.
#include <filesystem>
#include <ostream>
#include <string>
#include <vector>

#include "domain_lock.h"
#include "eventually.h"
#include "side.h"

namespace perflab::graph {
namespace {

using conformance::eventually;
using runtime::ExecutorKind, runtime::ServiceFraming;

// Queues long enough for a stall of the machine.
constexpr const char* kApart = R"(
name: calls
processes:
  - name: a
    nodes:
      - {name: one, clients: [{service: ask, type: TYPE, period: 5ms, qos: {depth: 500}}]}
      - {name: two, clients: [{service: ask, type: TYPE, period: 10ms, qos: {depth: 500}}]}
  - {name: b, nodes: [{name: callee, servers: [{service: ask, type: TYPE, qos: {depth: 500}}]}]}
)";
constexpr const char* kTogether = R"(
name: calls
nodes:
  - {name: one, clients: [{service: ask, type: TYPE, period: 5ms, qos: {depth: 500}}]}
  - {name: two, clients: [{service: ask, type: TYPE, period: 10ms, qos: {depth: 500}}]}
  - {name: callee, servers: [{service: ask, type: TYPE, qos: {depth: 500}}]}
)";

struct Case {
  std::string plugin;
  std::string name;
  Manner manner;
};
void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }

class RequestNumbers : public testing::TestWithParam<Case> {
 protected:
  // All requests sent were answered once, and their due times are known.
  static void expect_answered(Side& side) {
    EXPECT_TRUE(eventually([&] {
      const Totals totals = side.live().totals();
      return side.timers_done() && totals.completed == totals.sent;
    }));
    side.stop();
    EXPECT_EQ(side.live().malformed_messages(), 0u);
    EXPECT_EQ(side.live().forgotten_messages(), 0u);
    const std::vector<ServiceView> services = side.live().services();
    ASSERT_EQ(services.size(), 2u);
    for (const ServiceView& service : services) {
      const std::uint64_t sent = service.client_node->name == "one" ? 200 : 100;
      EXPECT_EQ(service.requests->sent(), sent);
      EXPECT_EQ(service.replies->sequence().received(), sent);
      EXPECT_EQ(service.replies->sequence().lowest(), 0u);
      EXPECT_EQ(service.replies->sequence().highest(), sent - 1);
      EXPECT_EQ(service.replies->sequence().duplicate(), 0u);
      EXPECT_GT(service.replies->latency().min(), 0);
      EXPECT_GE(service.replies->response().min(), service.replies->latency().min());
    }
  }
  static constexpr const char* kDefinition = "string question\n---\nint32[] answers\n";
  static constexpr const char* kType = "my_msgs/srv/Plain";

  std::unique_ptr<Side> side(const char* yaml, std::size_t process) {
    return std::make_unique<Side>(plugin_, domain_.id(), yaml, kType, kDefinition, process, GetParam().manner);
  }

  conformance::DomainLock domain_;
  measure::MonotonicClock clock_;
  middleware::Plugin plugin_ = middleware::Plugin::load(GetParam().plugin);
};

TEST_P(RequestNumbers, TellRepliesApartBetweenProcesses) {
  if (!plugin_.capabilities().across_processes) GTEST_SKIP() << "the plug-in stays within one process";
  // Both processes are simulated in this one, in which the middleware then connects no endpoints.
  if (GetParam().manner.intra_process) GTEST_SKIP() << "there is no delivery within a process between two";
  const auto callee = side(kApart, 1);
  const auto caller = side(kApart, 0);
  ASSERT_TRUE(eventually([&] { return caller->live().unmatched().empty() && callee->live().unmatched().empty(); }));
  const Nanoseconds start = clock_.now() + 50'000'000;
  callee->live().start(start);
  caller->live().start(start);
  expect_answered(*caller);
}

// With the inline executor a reply may arrive before the request call returns.
TEST_P(RequestNumbers, TellRepliesApartWithinAProcess) {
  const auto both = side(kTogether, 0);
  ASSERT_TRUE(eventually([&] { return both->live().unmatched().empty(); }));
  both->live().start(clock_.now() + 50'000'000);
  expect_answered(*both);
}

std::vector<Case> cases() {
  std::vector<Case> all;
  for (const std::string plugin : {PERFLAB_PLUGINS, PERFLAB_DIRECT}) {
    const std::string middleware = std::filesystem::path(plugin).stem();
    const bool relates = middleware::Plugin::load(plugin).capabilities().related_samples;
    for (const auto framing : {ServiceFraming::kRmwFastrtps, ServiceFraming::kRmwCyclonedds}) {
      const bool related = framing == ServiceFraming::kRmwFastrtps;
      if (related && !relates) continue;
      const std::string name = middleware + (related ? "_related" : "_framed");
      all.push_back({plugin, name, {.framing = framing}});
      all.push_back({plugin, name + "_inline", {.framing = framing, .executor = ExecutorKind::kInline}});
      all.push_back({plugin, name + "_every", {.structs = true, .framing = framing, .executor = ExecutorKind::kEvents}});
      all.push_back({plugin, name + "_intra_process", {.framing = framing, .intra_process = true}});
    }
  }
  return all;
}
INSTANTIATE_TEST_SUITE_P(, RequestNumbers, testing::ValuesIn(cases()), [](const auto& info) { return info.param.name; });

}  // namespace
}  // namespace perflab::graph
