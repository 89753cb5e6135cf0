// Trace events of the `dds` runtime, and their order: as in rclcpp 28.
#include <gtest/gtest.h>

#include <set>

#include "dds.h"
#include "lab.h"
#include "peer.h"
#include "recorded.h"

namespace perflab::runtime::conformance {
namespace {

using tracing::testing::Event;
using tracing::testing::named;
using tracing::testing::names;
using tracing::testing::Recorded;
using Names = std::vector<std::string>;

// Publishers belong to the node whose callbacks run, so that no other executor emits events.
class Traced : public Lab {
 protected:
  Traced() { Recorded::clear(); }

  void open(bool intra_process = false) {
    dds().trace = &Recorded::tracepoints();
    Lab::open({.intra_process = intra_process});
  }
  bool stamps() { return dds().capabilities().source_timestamps; }

  // Sends one message from a publisher of this thread to a subscription on an executor of that kind, and
  // waits for that many takes.
  void send_one(ExecutorKind kind, bool intra_process, std::size_t takes = 0) {
    open(intra_process);
    const Node on = node(kind, 1);
    Publisher& sender = publisher_of(on, "/t", kSmall, keep_last(4));
    Inbox& inbox = subscribe(on, "/t", kSmall, keep_last(4));
    ASSERT_TRUE(matched());
    ASSERT_TRUE(eventually([&] { return sender.matched() == 1; }));
    start();
    initialisation_ = Recorded::all();
    Recorded::clear();
    ASSERT_TRUE(send(sender, kSmall, 1));
    ASSERT_TRUE(
        eventually([&] { return inbox.count() == 1 && named(Recorded::all(), "rmw_take").size() >= takes; }));
    runtime().stop();
  }

  std::vector<Event> initialisation_;
};

// The events of the thread that ran the callback, from the first with this name to the end of the callback.
std::vector<Event> of_callback(const std::string& first) {
  for (const std::vector<Event>& thread : Recorded::elsewhere()) {
    const auto end = std::ranges::find(thread, "callback_end", &Event::name);
    if (end == thread.end()) continue;
    const auto begin =
        std::find_if(thread.begin(), end, [&](const Event& event) { return event.name == first; });
    return {begin, end + 1};
  }
  return {};
}

// Events of callbacks, without the executor's phases.
std::vector<Event> without_phases(std::vector<Event> events) {
  std::erase_if(events, [](const Event& event) { return event.name.starts_with("rclcpp_executor_"); });
  return events;
}

const std::string& field(const std::vector<Event>& events, const std::string& name, std::size_t index) {
  const auto at = std::ranges::find(events, name, &Event::name);
  static const std::string none = "none";
  return at == events.end() ? none : at->fields.at(index);
}

// ---- initialisation ----

TEST_F(Traced, ObjectsAreToldWithTheirNamesInTheOrderOfRclcpp) {
  open();
  const Node on = node(ExecutorKind::kSingleThreaded);
  Publisher& sender = publisher_of(on, "/joints", kSmall, keep_last(7));
  subscribe(on, "/goal", kSmall, keep_last(3));
  timer(on, 5ms, 1, 0);
  const std::vector<Event> events = Recorded::all();
  EXPECT_EQ(names(events),
            (Names{"rcl_init", "rcl_node_init", "rmw_publisher_init", "rcl_publisher_init",
                   "rmw_subscription_init", "rcl_subscription_init", "rclcpp_subscription_init",
                   "rclcpp_subscription_callback_added", "rclcpp_callback_register", "rcl_timer_init",
                   "rclcpp_timer_callback_added", "rclcpp_callback_register", "rclcpp_timer_link_node"}));
  const std::string& handle = field(events, "rcl_node_init", 0);
  EXPECT_EQ(field(events, "rcl_init", 1), "8.5.0+perflab");
  EXPECT_EQ(field(events, "rcl_node_init", 2), "node_0");
  EXPECT_EQ(field(events, "rcl_node_init", 3), "/conformance");
  EXPECT_EQ(field(events, "rcl_publisher_init", 1), handle);
  EXPECT_EQ(field(events, "rcl_publisher_init", 3), "/joints");
  EXPECT_EQ(field(events, "rcl_publisher_init", 4), "7");
  EXPECT_EQ(field(events, "rmw_publisher_init", 1),
            middleware::to_hex(sender.identity()) + "0000000000000000");
  EXPECT_EQ(field(events, "rcl_subscription_init", 1), handle);
  EXPECT_EQ(field(events, "rcl_subscription_init", 3), "/goal");
  EXPECT_EQ(field(events, "rcl_subscription_init", 4), "3");
  EXPECT_EQ(field(events, "rcl_timer_init", 1), "5000000");
  EXPECT_EQ(field(events, "rclcpp_timer_link_node", 1), handle);
  const auto registered = named(events, "rclcpp_callback_register");
  EXPECT_EQ(registered[0].fields[1], "perflab::subscription(/conformance/node_0, /goal)");
  EXPECT_EQ(registered[1].fields[1], "perflab::timer(/conformance/node_0, timer_1)");
  // What belongs together.
  EXPECT_EQ(field(events, "rmw_publisher_init", 0), field(events, "rcl_publisher_init", 2));
  EXPECT_EQ(field(events, "rmw_subscription_init", 0), field(events, "rcl_subscription_init", 2));
  EXPECT_EQ(field(events, "rcl_subscription_init", 0), field(events, "rclcpp_subscription_init", 0));
  EXPECT_EQ(field(events, "rclcpp_subscription_init", 1),
            field(events, "rclcpp_subscription_callback_added", 0));
  EXPECT_EQ(field(events, "rclcpp_subscription_callback_added", 1), registered[0].fields[0]);
  EXPECT_EQ(field(events, "rcl_timer_init", 0), field(events, "rclcpp_timer_callback_added", 0));
  EXPECT_EQ(field(events, "rclcpp_timer_callback_added", 1), registered[1].fields[0]);
}

TEST_F(Traced, WithIntraProcessDeliveryASubscriptionIsTwoOfRclcppAndARingBuffer) {
  open(true);
  const Node on = node(ExecutorKind::kSingleThreaded);
  Recorded::clear();
  subscribe(on, "/goal", kSmall, keep_last(3));
  const std::vector<Event> events = Recorded::all();
  EXPECT_EQ(names(events),
            (Names{"rmw_subscription_init", "rcl_subscription_init", "rclcpp_construct_ring_buffer",
                   "rclcpp_buffer_to_ipb", "rclcpp_ipb_to_subscription", "rclcpp_subscription_callback_added",
                   "rclcpp_callback_register", "rclcpp_subscription_init", "rclcpp_subscription_init",
                   "rclcpp_subscription_callback_added", "rclcpp_callback_register"}));
  const auto subscriptions = named(events, "rclcpp_subscription_init");
  const auto callbacks = named(events, "rclcpp_subscription_callback_added");
  EXPECT_EQ(subscriptions[0].fields[0], subscriptions[1].fields[0]);
  EXPECT_NE(subscriptions[0].fields[1], subscriptions[1].fields[1]);
  EXPECT_EQ(callbacks[0].fields[0], subscriptions[0].fields[1]);
  EXPECT_EQ(callbacks[1].fields[0], subscriptions[1].fields[1]);
  EXPECT_NE(callbacks[0].fields[1], callbacks[1].fields[1]);
  EXPECT_EQ(field(events, "rclcpp_construct_ring_buffer", 1), "3");
  EXPECT_EQ(field(events, "rclcpp_construct_ring_buffer", 0), field(events, "rclcpp_buffer_to_ipb", 0));
  EXPECT_EQ(field(events, "rclcpp_buffer_to_ipb", 1), field(events, "rclcpp_ipb_to_subscription", 0));
  EXPECT_EQ(field(events, "rclcpp_ipb_to_subscription", 1), subscriptions[0].fields[1]);
}

TEST_F(Traced, NoTwoObjectsOfALayerHaveOneHandle) {
  open(true);
  const Node first = node(ExecutorKind::kMultiThreaded);
  for (const Node& on : {first, node_on(first.executor)}) {
    for (const std::string topic : {"/a", "/b"}) {
      publisher_of(on, topic, kSmall, keep_last(1));
      subscribe(on, topic, kSmall, keep_last(1));
      timer(on, 1ms, 1, 0);
    }
  }
  const std::vector<Event> events = Recorded::all();
  const auto unique = [&](std::initializer_list<const char*> layer, std::size_t index, std::size_t count) {
    std::set<std::string> handles;
    std::size_t all = 0;
    for (const char* const name : layer) {
      for (const Event& event : named(events, name)) {
        handles.insert(event.fields.at(index));
        ++all;
      }
    }
    EXPECT_EQ(all, count) << *layer.begin();
    EXPECT_EQ(handles.size(), count) << *layer.begin();
  };
  unique({"rcl_node_init"}, 0, 2);
  unique({"rcl_publisher_init"}, 0, 4);
  unique({"rcl_subscription_init"}, 0, 4);
  unique({"rmw_publisher_init", "rmw_subscription_init"}, 0, 8);
  unique({"rclcpp_subscription_init"}, 1, 8);
  unique({"rcl_timer_init"}, 0, 4);
  unique({"rclcpp_callback_register"}, 0, 12);
  unique({"rclcpp_construct_ring_buffer"}, 0, 4);
}

class TracedService : public Traced, public testing::WithParamInterface<bool> {};

TEST_P(TracedService, AndItsClientsAreToldAndTheirCallsAndTheirTopicsAreNot) {
  const ServiceKind kind = service_kind("stamped10b");
  open(GetParam());
  const Node on = node(ExecutorKind::kSingleThreaded);
  Recorded::clear();
  Inbox& replies = inbox(kind.reply);
  Server* server = nullptr;
  serve(on, "/add", kind, &server);
  Client& asking = client(on, "/add", kind, replies);
  const std::vector<Event> made = Recorded::all();
  EXPECT_EQ(names(made), (Names{"rcl_service_init", "rclcpp_service_callback_added",
                                "rclcpp_callback_register", "rcl_client_init", "rmw_client_init"}));
  const std::string gid = field(made, "rmw_client_init", 1);
  EXPECT_EQ(field(made, "rmw_client_init", 0), field(made, "rcl_client_init", 2));
  EXPECT_EQ(field(made, "rcl_service_init", 3), "/add");
  EXPECT_EQ(field(made, "rcl_client_init", 3), "/add");
  EXPECT_EQ(field(made, "rclcpp_callback_register", 1), "perflab::service(/conformance/node_0, /add)");
  ASSERT_TRUE(eventually([&] { return server->matched() == 1 && asking.matched() == 1; }));
  start();
  Recorded::clear();
  for (std::size_t n = 1; n <= 2; ++n) {
    ASSERT_TRUE(request(asking, kind, static_cast<std::uint64_t>(n)));
    ASSERT_TRUE(eventually([&] { return replies.count() == n; }));
  }
  runtime().stop();
  const std::vector<Event> told = without_phases(Recorded::all());
  const Names one{"rmw_send_request",  "rmw_take_request", "callback_start",
                  "rmw_send_response", "callback_end",     "rmw_take_response"};
  Names both = one;
  both.insert(both.end(), one.begin(), one.end());
  ASSERT_EQ(names(told), both);
  for (std::size_t n = 1; n <= 2; ++n) {
    const auto& call = [&](std::size_t place) -> const Event& { return told[(n - 1) * one.size() + place]; };
    const std::string number = std::to_string(n);
    EXPECT_EQ(call(0).fields[0], field(made, "rmw_client_init", 0));
    EXPECT_EQ(call(0).fields[2], number);
    EXPECT_EQ(call(1).fields[0], field(made, "rcl_service_init", 2));
    EXPECT_EQ((Names{call(1).fields[2], call(1).fields[3]}), (Names{gid, number}));
    EXPECT_EQ((Names{call(3).fields[2], call(3).fields[3]}), (Names{gid, number}));
    EXPECT_EQ((Names{call(5).fields[0], call(5).fields[2]}), (Names{call(0).fields[0], number}));
  }
  EXPECT_EQ(field(told, "callback_start", 0), field(made, "rclcpp_callback_register", 0));
  EXPECT_EQ(field(told, "callback_start", 1), "0");
  EXPECT_TRUE(named(Recorded::all(), "rclcpp_executor_execute").empty());
}

INSTANTIATE_TEST_SUITE_P(, TracedService, testing::Bool(), [](const auto& info) {
  return info.param ? "intra_process" : "through_the_middleware";
});

TEST_F(Traced, ASpanIsACallbackOfItsNodeAndWithAPeriodATimer) {
  open();
  const Node on = node(ExecutorKind::kSingleThreaded);
  Recorded::clear();
  Span* const cycle = runtime().create_span(on.group, "cycle", 2'000'000);
  Span* const plan = runtime().create_span(on.group, "plan", 0);
  ASSERT_TRUE(cycle != nullptr && plan != nullptr);
  const std::vector<Event> made = Recorded::all();
  ASSERT_EQ(names(made), (Names{"rcl_timer_init", "rclcpp_timer_callback_added", "rclcpp_callback_register",
                                "rclcpp_timer_link_node", "rclcpp_callback_register"}));
  EXPECT_EQ(made[0].fields[1], "2000000");
  EXPECT_EQ(made[2].fields[1], "perflab::timer(/conformance/node_0, cycle)");
  EXPECT_EQ(made[4].fields[1], "perflab::span(/conformance/node_0, plan)");
  start();
  Recorded::clear();
  cycle->begin(5'000);
  plan->begin(kUnknownTime);
  plan->end();
  cycle->end();
  const std::vector<Event> told = without_phases(Recorded::all());
  ASSERT_EQ(names(told), (Names{"timer_due", "callback_start", "callback_start", "callback_end", "callback_end"}));
  EXPECT_EQ(told[0].fields, (Names{made[0].fields[0], "5000"}));
  EXPECT_EQ(told[1].fields[0], made[2].fields[0]);
  EXPECT_EQ(told[2].fields[0], made[4].fields[0]);
  EXPECT_EQ(told[3].fields[0], made[4].fields[0]);
}

TEST_F(Traced, WhereNothingIsTracedThereIsNoSpan) {
  Lab::open({});
  EXPECT_EQ(runtime().create_span(node(ExecutorKind::kSingleThreaded).group, "cycle", 2'000'000), nullptr);
}

// The same on every executor, for any kind of delivery. One that never sleeps emits nothing else.
bool tells_phases(ExecutorKind kind) { return kind != ExecutorKind::kPolling; }

std::vector<Case> executors_with_phases() {
  std::vector<Case> all = queueing_executors();
  // `let` takes before it executes, and checks again afterwards: LetTellsAllThatItTakesBeforeWhatItRuns.
  std::erase_if(all, [](const Case& one) { return !tells_phases(one.kind) || one.kind == ExecutorKind::kLet; });
  return all;
}

class TracedKind : public Traced, public testing::WithParamInterface<ExecutorKind> {};

TEST_P(TracedKind, AWaitableTellsItsCallbackAndIsNotToldToBeExecuted) {
  open();
  const Node on = node(GetParam());
  Recorded::clear();
  const Guarded one = waitable(on);
  waitable(on);  // idle
  const std::vector<Event> made = Recorded::all();
  ASSERT_EQ(names(made), (Names{"rclcpp_callback_register", "rclcpp_callback_register"}));
  EXPECT_EQ(made[0].fields[1], "perflab::waitable(/conformance/node_0, waitable_1)");
  start();
  Recorded::clear();
  one.endpoint->trigger(1);
  ASSERT_TRUE(eventually([&] { return one.answers->executed() == 1; }));
  runtime().stop();
  EXPECT_TRUE(named(Recorded::all(), "rclcpp_executor_execute").empty());
  for (const std::vector<Event>& thread : Recorded::elsewhere()) {
    const auto begin = std::ranges::find(thread, "callback_start", &Event::name);
    if (begin == thread.end() || !tells_phases(GetParam())) continue;
    EXPECT_EQ((begin - 1)->name, "rclcpp_executor_get_next_ready");
    EXPECT_EQ((begin + 2)->name, "rclcpp_executor_get_next_ready");
  }
  const std::vector<Event> told = without_phases(Recorded::all());
  ASSERT_EQ(names(told), (Names{"callback_start", "callback_end"}));
  EXPECT_EQ(told[0].fields, (Names{made[0].fields[0], "0"}));
  EXPECT_EQ(told[1].fields[0], made[0].fields[0]);
}

TEST_P(TracedKind, ATickIsToldWithTheInstantAtWhichItWasDue) {
  open();
  Ticks& ticks = timer(node(GetParam()), 2ms, 1, 3);
  const std::string handle = field(Recorded::all(), "rcl_timer_init", 0);
  Recorded::clear();
  start();
  ASSERT_TRUE(eventually([&] { return ticks.count() == 3; }));
  runtime().stop();
  const std::vector<Event> told = without_phases(Recorded::all());
  Names wanted;
  for (int tick = 1; tick <= 3; ++tick)
    wanted.insert(wanted.end(), {"timer_due", "callback_start", "callback_end"});
  EXPECT_EQ(names(told), wanted);
  const auto due = named(told, "timer_due");
  for (std::size_t i = 0; i < due.size(); ++i)
    EXPECT_EQ(due[i].fields,
              (Names{handle, std::to_string(base() + static_cast<Nanoseconds>(i + 1) * 2'000'000)}));
}

INSTANTIATE_TEST_SUITE_P(, TracedKind, testing::ValuesIn(subject().executors()),
                         [](const auto& info) { return to_text(info.param); });

// ---- messages ----

TEST_F(Traced, AMessageThroughTheMiddlewareIsToldByEveryLayer) {
  send_one(ExecutorKind::kSingleThreaded, false);
  const std::vector<Event> sent = Recorded::here();
  ASSERT_EQ(names(sent), (Names{"rclcpp_publish", "rcl_publish", "rmw_publish"}));
  const std::string& message = sent[0].fields[0];
  EXPECT_EQ(sent[1].fields, (Names{field(initialisation_, "rcl_publisher_init", 0), message}));
  EXPECT_EQ(sent[2].fields[0], field(initialisation_, "rmw_publisher_init", 0));
  EXPECT_EQ(sent[2].fields[1], message);
  const std::vector<Event> taken = of_callback("rclcpp_executor_execute");
  ASSERT_EQ(names(taken), (Names{"rclcpp_executor_execute", "rmw_take", "rcl_take", "rclcpp_take",
                                 "callback_start", "callback_end"}));
  EXPECT_EQ(taken[0].fields[0], field(initialisation_, "rcl_subscription_init", 0));
  EXPECT_EQ(taken[1].fields[0], field(initialisation_, "rmw_subscription_init", 0));
  EXPECT_EQ(taken[1].fields[2], stamps() ? sent[2].fields[2] : "0");
  EXPECT_EQ(taken[1].fields[3], "1");
  EXPECT_EQ(taken[2].fields[0], taken[1].fields[1]);
  EXPECT_EQ(taken[3].fields[0], taken[1].fields[1]);
  EXPECT_EQ(taken[4].fields, (Names{field(initialisation_, "rclcpp_subscription_callback_added", 1), "0"}));
  EXPECT_EQ(taken[5].fields[0], taken[4].fields[0]);
}

// All takes come before the first callback, without a phase in between: what one take returned belongs to its
// callbacks.
TEST_F(Traced, LetTellsAllThatItTakesBeforeWhatItRuns) {
  open(true);
  const Node on = node(ExecutorKind::kLet);
  Inbox& first = subscribe(on, "/first", kSmall);
  Inbox& second = subscribe(on, "/second", kSmall);
  Publisher& to_first = publisher_of(on, "/first", kSmall);
  Publisher& to_second = publisher_of(on, "/second", kSmall);
  timer(on, 1h, 1, 1, false, {}, 5ms - 1h).on_each = [&](Nanoseconds) {
    EXPECT_TRUE(send(to_second, kSmall, 0));
    EXPECT_TRUE(send(to_first, kSmall, 0));
  };
  start();
  ASSERT_TRUE(eventually([&] { return first.count() + second.count() == 2; }));
  runtime().stop();
  Names told;
  for (const std::vector<Event>& thread : Recorded::elsewhere()) {
    const auto begin = std::ranges::find(thread, "rclcpp_ring_buffer_dequeue", &Event::name);
    for (auto event = begin; event != thread.end() && event - begin < 6; ++event) told.push_back(event->name);
  }
  EXPECT_EQ(told, (Names{"rclcpp_ring_buffer_dequeue", "rclcpp_ring_buffer_dequeue", "callback_start",
                         "callback_end", "callback_start", "callback_end"}));
}

TEST_F(Traced, AMessageWithinTheProcessIsToldByItsRingBuffer) {
  send_one(ExecutorKind::kSingleThreaded, true);
  const std::vector<Event> sent = Recorded::here();
  const std::string& buffer = field(initialisation_, "rclcpp_construct_ring_buffer", 0);
  ASSERT_EQ(names(sent), (Names{"rclcpp_intra_publish", "rclcpp_ring_buffer_enqueue"}));
  EXPECT_EQ(sent[0].fields[0], field(initialisation_, "rcl_publisher_init", 0));
  EXPECT_EQ(sent[1].fields, (Names{buffer, "0", "1", "0"}));
  const std::vector<Event> taken = of_callback("rclcpp_ring_buffer_dequeue");
  ASSERT_EQ(names(taken), (Names{"rclcpp_ring_buffer_dequeue", "callback_start", "callback_end"}));
  EXPECT_EQ(taken[0].fields, (Names{buffer, "0", "0"}));
  EXPECT_EQ(taken[1].fields, (Names{field(initialisation_, "rclcpp_subscription_callback_added", 1), "1"}));
  EXPECT_TRUE(
      named(Recorded::all(), "rclcpp_executor_execute").empty());  // as rclcpp: dispatched, not executed
}

TEST_F(Traced, ARingBufferTellsWhatItOverwrites) {
  open(true);
  const Node on = node(ExecutorKind::kSingleThreaded);
  Publisher& sender = publisher_of(on, "/t", kSmall, keep_last(2));
  Inbox& inbox = subscribe(on, "/t", kSmall, keep_last(2));
  Recorded::clear();
  // Before the start.
  for (std::uint64_t number = 0; number < 3; ++number) ASSERT_TRUE(send(sender, kSmall, number));
  std::vector<Names> told;
  for (const Event& event : named(Recorded::all(), "rclcpp_ring_buffer_enqueue"))
    told.push_back({event.fields.begin() + 1, event.fields.end()});
  EXPECT_EQ(told, (std::vector<Names>{{"0", "1", "0"}, {"1", "2", "0"}, {"0", "2", "1"}}));
  start();
  ASSERT_TRUE(eventually([&] { return inbox.count() == 2; }));
  runtime().stop();
  told.clear();
  for (const Event& event : named(Recorded::all(), "rclcpp_ring_buffer_dequeue"))
    told.push_back({event.fields.begin() + 1, event.fields.end()});
  EXPECT_EQ(told, (std::vector<Names>{{"1", "1"}, {"0", "0"}}));
}

TEST_F(Traced, AMessageForThisAndOtherProcessesIsOneInAllLayers) {
  if (!dds().capabilities().across_processes) GTEST_SKIP() << "the plug-in stays within one process";
  open(true);
  const Node on = node(ExecutorKind::kSingleThreaded);
  // Given away to an owner, so that the middleware writes a copy.
  Publisher& sender = publisher_of(on, "/t", kOfPeers, keep_last(4), PassBy::kUnique);
  subscribe(on, "/t", kOfPeers, keep_last(4), PassBy::kUnique);
  perflab::conformance::Peer peer(dds().file(), domain());
  ASSERT_EQ(peer.ask("reader x rt/t perflab_msgs::msg::dds_::Conformance_ keep_last reliable volatile 4"),
            "ok");
  ASSERT_TRUE(eventually([&] { return sender.matched() == 2; }));
  Recorded::clear();
  ASSERT_TRUE(send_prepared(sender, kOfPeers, 1));
  const std::vector<Event> sent = Recorded::here();
  ASSERT_EQ(names(sent), (Names{"rclcpp_intra_publish", "rclcpp_ring_buffer_enqueue", "rclcpp_publish",
                                "rcl_publish", "rmw_publish"}));
  EXPECT_EQ(sent[2].fields[0], sent[0].fields[1]);
  EXPECT_EQ(sent[4].fields[1], sent[0].fields[1]);
}

TEST_F(Traced, ALoanedMessageIsToldByTheAddressOfItsLoan) {
  if (!dds().capabilities().loans) GTEST_SKIP() << "the plug-in has no loans";
  open();
  Publisher& sender = publisher("/t", kSmall, keep_last(4), PassBy::kLoaned);
  Recorded::clear();
  ASSERT_TRUE(send_prepared(sender, kSmall, 1));
  const std::vector<Event> sent = Recorded::here();
  ASSERT_EQ(names(sent), (Names{"rclcpp_publish", "rcl_publish", "rmw_publish"}));
  EXPECT_EQ(sent[1].fields[1], sent[0].fields[0]);
  EXPECT_EQ(sent[2].fields[1], sent[0].fields[0]);
}

// ---- executors ----

TEST_F(Traced, PollingTellsItsCallbacksAndWhatItTookAlone) {
  open();
  const Node on = node(ExecutorKind::kPolling);
  Publisher& sender = publisher_of(on, "/t", kSmall, keep_last(20));
  Inbox& inbox = subscribe(on, "/t", kSmall, keep_last(20));
  ASSERT_TRUE(matched());
  start();
  Recorded::clear();
  send(sender, kSmall, 1);
  ASSERT_TRUE(eventually([&] { return inbox.count() == 1; }));
  std::this_thread::sleep_for(5ms);  // time for many polls that find nothing
  runtime().stop();
  EXPECT_TRUE(named(Recorded::all(), "rclcpp_executor_get_next_ready").empty());
  EXPECT_TRUE(named(Recorded::all(), "rclcpp_executor_wait_for_work").empty());
  EXPECT_EQ(named(Recorded::all(), "rmw_take").size(), 1u);
  EXPECT_EQ(named(Recorded::all(), "callback_start").size(), 1u);
}

class TracedExecutor : public Traced, public testing::WithParamInterface<Case> {};

TEST_P(TracedExecutor, EveryPhaseEndsInTheSearchForTheNext) {
  open(GetParam().intra_process);
  const Node on = node(GetParam().kind);
  Publisher& sender = publisher_of(on, "/t", kSmall, keep_last(20));
  Inbox& inbox = subscribe(on, "/t", kSmall, keep_last(20));
  Ticks& ticks = timer(on, 2ms, 1, 10);
  ASSERT_TRUE(matched());
  const std::string timer_handle = field(Recorded::all(), "rcl_timer_init", 0);
  const std::string subscription_handle = field(Recorded::all(), "rcl_subscription_init", 0);
  Recorded::clear();
  ticks.on_each = [&](Nanoseconds) { send(sender, kSmall, 1); };
  start();
  ASSERT_TRUE(eventually([&] { return ticks.count() == 10 && inbox.count() == 10; }));
  runtime().stop();

  std::size_t callbacks = 0;
  for (const std::vector<Event>& thread : Recorded::elsewhere()) {
    // A thread looks for something first; after waiting or running something it looks again.
    ASSERT_EQ(thread.front().name, "rclcpp_executor_get_next_ready");
    std::string phase, handle;
    for (const Event& event : thread) {
      if (event.name == "rclcpp_executor_wait_for_work" || event.name == "rclcpp_executor_execute") {
        EXPECT_EQ(phase, "rclcpp_executor_get_next_ready") << event.text();
        EXPECT_TRUE(event.name != "rclcpp_executor_wait_for_work" || std::stoll(event.fields[0]) >= -1);
      }
      if (event.name == "callback_start") {
        ++callbacks;
        // Delivery within the process is dispatched while looking, like rclcpp's waitables.
        const bool dispatched = event.fields[1] == "1";
        EXPECT_EQ(phase, dispatched ? "rclcpp_executor_get_next_ready" : "rclcpp_executor_execute")
            << event.text();
      }
      if (event.name.starts_with("rclcpp_executor_")) {
        phase = event.name;
        handle = event.fields.empty() ? "" : event.fields[0];
      }
      if (event.name == "rclcpp_executor_execute") {
        EXPECT_TRUE(handle == timer_handle || handle == subscription_handle);
      } else if (event.name == "rmw_take") {
        EXPECT_EQ(handle, subscription_handle);
      } else if (event.name == "timer_due") {
        EXPECT_EQ(handle, timer_handle);
      }
    }
    EXPECT_EQ(phase, "rclcpp_executor_get_next_ready");
  }
  EXPECT_EQ(callbacks, 20u);
  EXPECT_EQ(named(Recorded::all(), "callback_end").size(), 20u);
  EXPECT_FALSE(named(Recorded::all(), "rclcpp_executor_wait_for_work").empty());
}

INSTANTIATE_TEST_SUITE_P(Kinds, TracedExecutor, testing::ValuesIn(executors_with_phases()), case_name);

TEST_F(Traced, AnInlineExecutorHasNoPhases) {
  send_one(ExecutorKind::kInline, false);
  for (const Event& event : Recorded::all())
    EXPECT_FALSE(event.name.starts_with("rclcpp_executor_")) << event.text();
  EXPECT_EQ(named(Recorded::all(), "callback_start").size(), 1u);
  EXPECT_EQ(named(Recorded::all(), "callback_end").size(), 1u);
}

TEST_F(Traced, ALookThatFindsNothingIsATakeThatTookNothing) {
  // The executor checks once more after a message, and again if it is notified of one that it has already
  // taken.
  send_one(ExecutorKind::kEvents, false, 2);
  const std::vector<Event> takes = named(Recorded::all(), "rmw_take");
  ASSERT_GE(takes.size(), 2u);
  EXPECT_EQ(takes[0].fields[3], "1");
  for (std::size_t i = 1; i < takes.size(); ++i) {
    EXPECT_EQ((Names{takes[i].fields[2], takes[i].fields[3]}), (Names{"0", "0"}));
  }
  EXPECT_EQ(named(Recorded::all(), "rcl_take").size(), takes.size());
  EXPECT_EQ(named(Recorded::all(), "rclcpp_take").size(), 1u);
}

TEST_F(Traced, NothingIsToldWhereNobodyListens) {
  dds().trace = nullptr;
  Lab::open({.intra_process = true});
  const Node on = node(ExecutorKind::kMultiThreaded);
  Publisher& sender = publisher_of(on, "/t", kSmall, keep_last(4));
  Inbox& inbox = subscribe(on, "/t", kSmall, keep_last(4));
  timer(on, 1ms, 1, 2);
  start();
  ASSERT_TRUE(send(sender, kSmall, 1));
  ASSERT_TRUE(eventually([&] { return inbox.count() == 1 && runtime().timers_done(); }));
  runtime().stop();
  EXPECT_TRUE(Recorded::all().empty());
}

}  // namespace
}  // namespace perflab::runtime::conformance
