// A program's use of its graph: messages are recorded by due time, nothing is sent before the start or after
// the end, and requests can be answered at any time.
#include <thread>
#include <vector>

#include "domain_lock.h"
#include "side.h"

namespace perflab::graph {
namespace {

constexpr Nanoseconds kNow = INT64_MAX;
constexpr const char* kGraph = R"(
name: program
program: my-program
executors: [{id: 0, kind: inline}]
nodes:
  - name: a
    publishers: [{topic: said, type: TYPE}, {topic: timed, type: TYPE, period: 500ms}]
    subscriptions: [{topic: said, type: TYPE}]
    clients: [{service: ask, type: std_srvs/srv/SetBool}]
  - name: b
    servers: [{service: ask, type: std_srvs/srv/SetBool}]
)";

class Program : public testing::Test {
 protected:
  Program()
      : plugin_(middleware::Plugin::load(PERFLAB_DIRECT)),
        side_(plugin_, lock_.id(), kGraph, "my_msgs/msg/Number", "int64 data", 0, {.structs = true}) {}

  // The instant from which due messages count.
  Nanoseconds start() {
    side_.live().set_writers(side_.live().writers());
    const Nanoseconds from = clock_.now();
    side_.live().start(from);
    return from;
  }
  std::string refused(const std::function<void()>& what) {
    try {
      what();
    } catch (const BadInput& error) {
      return error.what();
    }
    return "";
  }

  conformance::DomainLock lock_;
  middleware::Plugin plugin_;
  measure::MonotonicClock clock_;
  Side side_;
};

TEST_F(Program, WhatItPublishesIsRecordedByWhenItWasDue) {
  LiveGraph& live = side_.live();
  PublisherEnd& said = live.publisher_end("/a", "/said");
  std::vector<std::pair<std::int64_t, Received>> heard;
  live.subscription_end("/a", "/said").set_handler([&](const void* message, const Received& how) {
    heard.emplace_back(*static_cast<const std::int64_t*>(message), how);
  });
  EXPECT_FALSE(said.publish_due(kNow)) << "before the start";
  const Nanoseconds from = start();
  *static_cast<std::int64_t*>(said.message()) = 7;
  EXPECT_TRUE(said.publish_due(kNow));
  const std::int64_t other = 9;
  EXPECT_TRUE(said.publish_copy(&other, from - 1));  // of the warm-up
  EXPECT_TRUE(said.publish_due(from + 1));           // content left by a copy
  live.end_at(clock_.now());
  EXPECT_FALSE(said.publish_due(kNow)) << "after the end";
  EXPECT_TRUE(said.publish_due(from + 2)) << "late, and due before it";

  ASSERT_EQ(heard.size(), 4u);
  EXPECT_EQ(heard[0].first, 7);
  EXPECT_EQ(heard[1].first, 9);
  EXPECT_EQ(heard[0].second.from, "/a");
  EXPECT_GT(heard[0].second.due_ns, from);
  EXPECT_LE(heard[0].second.due_ns, heard[0].second.published_ns);
  EXPECT_LE(heard[0].second.published_ns, heard[0].second.callback_ns);
  EXPECT_EQ(heard[1].second.due_ns, from - 1);
  EXPECT_EQ(heard[3].second.due_ns, from + 2);
  const PublisherView view = live.publishers().front();
  EXPECT_EQ(view.recorder->sent(), 3u);
  EXPECT_EQ(view.recorder->warmup_sent(), 1u);
  EXPECT_EQ(live.edges().front().recorder->sequence().received(), 3u);
}

TEST_F(Program, ItAnswersWhenItLikesAndOnce) {
  LiveGraph& live = side_.live();
  ClientEnd& client = live.client_end("/a", "/ask");
  ServerEnd& server = live.server_end("/b", "/ask");
  std::shared_ptr<OpenRequest> open;
  bool asked = false, answered = false;
  server.set_handler([&](const void* request, std::shared_ptr<OpenRequest> of) {
    asked = *static_cast<const bool*>(request);
    open = std::move(of);
  });
  start();
  message::Object request(*client.request_format().type), response(*client.response_format().type);
  *static_cast<bool*>(request.data()) = true;
  int replies = 0;
  EXPECT_TRUE(client.call(request.data(), kNow, [&](const void* of, Nanoseconds requested_ns, Nanoseconds callback_ns) {
    ++replies;
    answered = *static_cast<const bool*>(of);
    EXPECT_LE(requested_ns, callback_ns);
  }));
  EXPECT_TRUE(asked);
  EXPECT_EQ(replies, 0);
  *static_cast<bool*>(response.data()) = true;
  std::thread([&] { EXPECT_TRUE(open->reply(response.data())); }).join();
  EXPECT_EQ(replies, 1);
  EXPECT_TRUE(answered);
  EXPECT_FALSE(open->reply(response.data()));
  open.reset();
  const Totals totals = live.totals();
  EXPECT_EQ(totals.deliveries_expected, totals.completed);
}

TEST_F(Program, WhatItDoesNotHaveIsRefusedInOneLine) {
  LiveGraph& live = side_.live();
  EXPECT_EQ(refused([&] { live.publisher_end("/controller", "/said"); }), "the process has no node /controller in the graph; it has /a or /b");
  EXPECT_EQ(refused([&] { live.publisher_end("/a", "/sad"); }),
            "node /a has no publisher /sad in the graph; did you mean /said?");
  EXPECT_EQ(refused([&] { live.subscription_end("/b", "/said"); }),
            "node /b has no subscription /said in the graph; it has none");
  EXPECT_EQ(refused([&] { live.publisher_end("/a", "/timed"); }),
            "node /a, publisher /timed: a timer or reaction publishes it, but the program uses it too; right "
            "would be only one of them");
}

}  // namespace
}  // namespace perflab::graph
