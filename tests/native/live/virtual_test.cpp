// The measurement must equal what the virtual runtime injects.
#include <nlohmann/json.hpp>

#include "../rows.h"
#include "graph/vocabulary.h"
#include "measure/histogram.h"
#include "virtual_lab.h"

namespace perflab::graph {
namespace {

using measure::highest_equivalent;

constexpr const char* kPair = R"(
name: pair
nodes:
  - name: talker
    publishers: [{topic: chatter, type: stamped1kb, period: 10ms}]
  - name: listener
    subscriptions: [{topic: chatter, type: stamped1kb}]
)";

// Two nodes in separate processes, so that work in one does not delay the other.
constexpr const char* kSplitPair = R"(
name: pair
processes:
  - name: a
    nodes:
      - name: talker
        publishers: [{topic: chatter, type: stamped1kb, period: 10ms}]
  - name: b
    nodes:
      - name: listener
        subscriptions: [{topic: chatter, type: stamped1kb}]
)";

struct Delay {
  std::string text;
  Nanoseconds ns;
};
class InjectedDelay : public testing::TestWithParam<Delay> {};

TEST_P(InjectedDelay, IsTheLatencyExactly) {
  const Nanoseconds delay = GetParam().ns;
  const VirtualLab lab(kPair, kNanosecondsPerSecond * 10, {{"disturb.delay", GetParam().text}});
  const auto& edge = lab.edge("/chatter");
  EXPECT_EQ(edge.sequence().received(), 1'000u);
  EXPECT_EQ(edge.latency().min(), delay);
  EXPECT_EQ(edge.latency().max(), delay);
  EXPECT_EQ(edge.latency().value_at_quantile(0.5), highest_equivalent(delay));
  EXPECT_EQ(edge.response().max(), delay);
  EXPECT_EQ(lab.publisher("/chatter").publish_delay().max(), 0);
  lab.expect_conservation();
}

INSTANTIATE_TEST_SUITE_P(
    , InjectedDelay,
    rows::of<Delay>({{"0us", 0}, {"137us", 137'000}, {"3ms", 3'000'000}, {"1.5s", 1'500'000'000}}),
    rows::by_text);

TEST(Virtual, JitterStaysWithinItsBounds) {
  const VirtualLab lab(kPair, 20 * kNanosecondsPerSecond,
                       {{"disturb.delay", "1ms"}, {"disturb.jitter", "2ms"}, {"disturb.seed", "5"}});
  const auto& latency = lab.edge("/chatter").latency();
  EXPECT_GE(latency.min(), 1 * kMs);
  EXPECT_LE(latency.max(), 3 * kMs);
  EXPECT_NEAR(static_cast<double>(*latency.value_at_quantile(0.5)), 2e6, 1e5);
}

TEST(Virtual, TheSameSeedGivesTheSameRun) {
  const VirtualLab::Options options{{"disturb.delay", "1ms"}, {"disturb.jitter", "2ms"}, {"disturb.loss", "0.1"}, {"disturb.seed", "5"}};
  const VirtualLab first(kPair, 10 * kNanosecondsPerSecond, options);
  const VirtualLab second(kPair, 10 * kNanosecondsPerSecond, options);
  EXPECT_EQ(first.edge("/chatter").latency().sum(), second.edge("/chatter").latency().sum());
  EXPECT_EQ(first.edge("/chatter").sequence().gap(), second.edge("/chatter").sequence().gap());
}

TEST(Virtual, DispatchIsTheServiceTimeOfTheExecutor) {
  const VirtualLab lab(kPair, kNanosecondsPerSecond, {{"disturb.delay", "1ms"}, {"service", "40us"}});
  EXPECT_EQ(lab.edge("/chatter").dispatch()->min(), 40'000);
  EXPECT_EQ(lab.edge("/chatter").dispatch()->max(), 40'000);
  EXPECT_EQ(lab.edge("/chatter").latency().max(), 1'040'000);
  EXPECT_EQ(lab.edge("/chatter").response().max(), 1'080'000);  // the timer's callback was served first
  EXPECT_EQ(lab.publisher("/chatter").publish_delay().max(), 40'000);
}

// Four timers of one executor that takes 1 ms per callback.
std::string four_timers(const std::string& phase) {
  return "phase: " + phase + R"(
nodes:
  - name: talker
    publishers:
      - {topic: a, type: stamped10b, period: 20ms}
      - {topic: b, type: stamped10b, period: 20ms}
      - {topic: c, type: stamped10b, period: 20ms}
      - {topic: d, type: stamped10b, period: 20ms}
)";
}

struct PhaseDelay {
  const char* name;
  Nanoseconds publish_delay;
};
class FourTimers : public testing::TestWithParam<PhaseDelay> {};

TEST_P(FourTimers, WaitForEachOtherWhereTheyTickTogether) {
  const VirtualLab lab(four_timers(GetParam().name), kNanosecondsPerSecond, {{"service", "1ms"}});
  Nanoseconds most = 0;
  for (const PublisherView& view : lab.live().publishers()) {
    EXPECT_EQ(view.recorder->sent(), 50u);
    most = std::max(most, view.recorder->publish_delay().max());
  }
  EXPECT_EQ(most, GetParam().publish_delay);
}

INSTANTIATE_TEST_SUITE_P(, FourTimers, rows::of<PhaseDelay>({{"aligned", 4 * kMs}, {"staggered", 1 * kMs}}),
                         rows::by_name);

class TimersOfPhase : public testing::TestWithParam<const char*> {};

TEST_P(TimersOfPhase, TickOnceInEachPeriod) {
  const VirtualLab lab(four_timers(GetParam()), kNanosecondsPerSecond, {}, 100 * kMs);
  ASSERT_EQ(lab.live().timers().size(), 4u);
  for (const TimerView& timer : lab.live().timers()) {
    EXPECT_EQ(graph::word_of(kPhaseWords, timer.phase), GetParam());
    EXPECT_GE(timer.offset_ns, 0);
    EXPECT_LT(timer.offset_ns, timer.period_ns);
  }
  for (const PublisherView& view : lab.live().publishers()) {
    EXPECT_EQ(view.recorder->sent(), 50u);
    EXPECT_EQ(view.recorder->warmup_sent(), 5u);
    EXPECT_EQ(view.recorder->publish_delay().max(), 0);  // due where it ticks
    EXPECT_EQ(view.recorder->period()->min(), 20 * kMs);
    EXPECT_EQ(view.recorder->period()->max(), 20 * kMs);
  }
}

INSTANTIATE_TEST_SUITE_P(, TimersOfPhase, testing::Values("aligned", "as_created", "staggered", "random"),
                         rows::by_itself);

TEST(Virtual, TimersAsCreatedAreAsFarApartAsTheyWereCreated) {
  const VirtualLab lab(four_timers("as_created"), kNanosecondsPerSecond);
  const std::vector<TimerView>& timers = lab.live().timers();
  for (std::size_t i = 1; i < timers.size(); ++i) {
    EXPECT_EQ(timers[i].offset_ns - timers[i - 1].offset_ns, 250'000);  // one endpoint in between
  }
}

TEST(Virtual, PublishCallIsTheDurationOfPublish) {
  const VirtualLab lab(kPair, kNanosecondsPerSecond, {{"publish_call", "7us"}});
  EXPECT_EQ(lab.publisher("/chatter").publish_call().min(), 7'000);
  EXPECT_EQ(lab.publisher("/chatter").publish_call().max(), 7'000);
}

// What is done to 100 messages, and the expected counts.
struct Disturbed {
  const char* name;
  const char* option;
  const char* value;
  std::uint64_t received, gap, reordered, duplicate, highest;
};
class Disturbance : public testing::TestWithParam<Disturbed> {};

TEST_P(Disturbance, IsCountedAsWhatItIs) {
  const Disturbed& row = GetParam();
  const VirtualLab lab(kPair, kNanosecondsPerSecond, {{"disturb.delay", "1ms"}, {row.option, row.value}});
  const auto& sequence = lab.edge("/chatter").sequence();
  EXPECT_EQ(lab.publisher("/chatter").sent(), 100u);
  EXPECT_EQ(sequence.received(), row.received);
  EXPECT_EQ(sequence.gap(), row.gap);
  EXPECT_EQ(sequence.reordered(), row.reordered);
  EXPECT_EQ(sequence.duplicate(), row.duplicate);
  EXPECT_EQ(sequence.highest(), row.highest);
  EXPECT_EQ(lab.live().totals().completed, row.received);
  EXPECT_EQ(lab.live().totals().deliveries_expected, 100u);
  lab.expect_conservation();
}

INSTANTIATE_TEST_SUITE_P(
    , Disturbance,
    rows::of<Disturbed>({// The 10th, 20th ... 100th: nine leave a gap, nothing comes after the last.
                         {"EveryTenthLostIsAGapAndTheLastOneATail", "disturb.loss_every", "10", 90, 9, 0, 0,
                          98},
                         {"DuplicatesAreCountedApart", "disturb.duplicate_every", "4", 100, 0, 0, 25, 99},
                         // The 7th, 14th ... 98th.
                         {"ReorderedOnesAreNotLost", "disturb.reorder_every", "7", 100, 0, 14, 0, 99}}),
    rows::by_name);

TEST(Virtual, AllDisturbancesTogetherAgreeWithWhatWasInjected) {
  VirtualLab lab(kPair, 100 * kNanosecondsPerSecond,
                 {{"disturb.delay", "1ms"}, {"disturb.loss", "0.05"}, {"disturb.duplicate_every", "9"}, {"disturb.reorder_every", "11"}});
  const auto& sequence = lab.edge("/chatter").sequence();
  const auto injected = nlohmann::json::parse(lab.description())["effective"]["injected"]["per_edge"][0];
  EXPECT_EQ(injected["offered"], 10'000u);
  EXPECT_GT(injected["lost"].get<std::uint64_t>(), 400u);
  EXPECT_EQ(sequence.received(), 10'000u - injected["lost"].get<std::uint64_t>());
  EXPECT_EQ(sequence.received(), injected["delivered"].get<std::uint64_t>());  // without the copies
  EXPECT_EQ(sequence.duplicate(), injected["duplicated"].get<std::uint64_t>());
  EXPECT_EQ(sequence.reordered(), injected["reordered"].get<std::uint64_t>());
  lab.expect_conservation();
}

TEST(Virtual, AFullHistoryDropsTheOldestAndTheGapShowsIt) {
  // The listener is blocked for 95 ms at a time and keeps 3 of the 9 or 10 messages that come meanwhile.
  const VirtualLab lab(R"(
name: overflow
processes:
  - name: a
    nodes:
      - name: talker
        publishers: [{topic: chatter, type: stamped1kb, period: 10ms}]
  - name: b
    nodes:
      - name: listener
        subscriptions: [{topic: chatter, type: stamped1kb, qos: {depth: 3}}]
        timers: [{name: stall, period: 100ms, publish: noise, work: 95ms}]
        publishers: [{topic: noise, type: stamped10b}]
)",
                       kNanosecondsPerSecond);
  const auto& sequence = lab.edge("/chatter").sequence();
  EXPECT_GT(sequence.gap(), 40u);
  EXPECT_EQ(sequence.reordered(), 0u);
  lab.expect_conservation();
}

// Coordinated omission: the sender stalls, the transport does not. Latency as defined by older tools does not
// show it.
TEST(Virtual, AStalledPublisherLeavesLatencyUnchangedWhileResponseShowsTheStall) {
  constexpr const char* kStalled = R"(
name: stalled
processes:
  - name: a
    nodes:
      - name: talker
        publishers: [{topic: chatter, type: stamped1kb, period: 10ms}, {topic: noise, type: stamped10b}]
        timers: [{name: stall, period: 1s, publish: noise, work: 205ms}]
  - name: b
    nodes:
      - name: listener
        subscriptions: [{topic: chatter, type: stamped1kb, qos: {depth: 50}}]  # room for the burst after the stall
)";
  const VirtualLab quiet(kSplitPair, 10 * kNanosecondsPerSecond, {{"disturb.delay", "1ms"}});
  const VirtualLab stalled(kStalled, 10 * kNanosecondsPerSecond, {{"disturb.delay", "1ms"}});
  EXPECT_EQ(stalled.edge("/chatter").sequence().received(),
            1'000u);  // every due tick is sent, late if need be
  EXPECT_EQ(quiet.edge("/chatter").latency().max(), 1 * kMs);
  EXPECT_EQ(stalled.edge("/chatter").latency().max(), 1 * kMs);
  EXPECT_EQ(quiet.edge("/chatter").response().max(), 1 * kMs);
  // A tick due together with the stall may be served before it; the next one waits longest.
  EXPECT_GE(stalled.edge("/chatter").response().max(), 196 * kMs);
  EXPECT_GE(stalled.publisher("/chatter").publish_delay().max(), 195 * kMs);
  // Twenty of each hundred ticks fall into the stall, each late by a different amount.
  EXPECT_GE(*stalled.edge("/chatter").response().value_at_quantile(0.85), 20 * kMs);
}

TEST(Virtual, ATimerThatSkipsCountsWhatItDidNotSend) {
  const VirtualLab lab(R"(
name: skipping
nodes:
  - name: talker
    publishers: [{topic: chatter, type: stamped1kb}, {topic: noise, type: stamped10b}]
    timers:
      - {name: tick, period: 10ms, publish: chatter, overrun: skip}
      - {name: stall, period: 1s, publish: noise, work: 205ms}
  - name: listener
    subscriptions: [{topic: chatter, type: stamped1kb}]
)",
                       10 * kNanosecondsPerSecond);
  const auto& sender = lab.publisher("/chatter");
  EXPECT_GT(sender.not_sent(), 150u);
  EXPECT_EQ(sender.sent() + sender.not_sent(), 1'000u);
  EXPECT_EQ(lab.edge("/chatter").sequence().received(), sender.sent());
  EXPECT_EQ(lab.edge("/chatter").sequence().gap(), 0u);
  lab.expect_conservation();
}

TEST(Virtual, WarmUpTicksAreExcludedAndTheCountsStayExact) {
  // 95 ms of warm-up hold nine ticks of 10 ms.
  const VirtualLab lab(kPair, kNanosecondsPerSecond, {{"disturb.delay", "1ms"}}, 95 * kMs);
  EXPECT_EQ(lab.publisher("/chatter").warmup_sent(), 9u);
  EXPECT_EQ(lab.publisher("/chatter").sent(), 100u);
  EXPECT_EQ(lab.publisher("/chatter").first_sequence(), 0u);  // numbered apart from warm-up
  EXPECT_EQ(lab.edge("/chatter").warmup_received(), 9u);
  EXPECT_EQ(lab.edge("/chatter").sequence().received(), 100u);
  EXPECT_EQ(lab.edge("/chatter").sequence().lowest(), 0u);
  lab.expect_conservation();
}

struct MoreOptions {
  const char* name;
  VirtualLab::Options more;
};
class WarmUpBetweenMeasured : public testing::TestWithParam<MoreOptions> {};

// Messages of one publisher need not be sent in order of their intended times, so some warm-up messages may
// be sent between measured ones. That must not look like a loss.
TEST_P(WarmUpBetweenMeasured, IsNoGap) {
  constexpr const char* kMixed = R"(
name: mixed
nodes:
  - name: near
    publishers: [{topic: near, type: stamped_int64, period: 10ms}]
  - name: far
    publishers: [{topic: far, type: stamped_int64, period: 100ms}]
  - name: slow
    subscriptions: [{topic: far, type: stamped_int64}]
    publishers: [{topic: late, type: stamped_int64}]
    reactions: [{kind: transform, on: far, publish: late, work: 25ms}]
  - name: mid
    subscriptions: [{topic: near, type: stamped_int64}, {topic: late, type: stamped_int64}]
    publishers: [{topic: out, type: stamped_int64}]
    reactions: [{kind: transform, on: near, publish: out}, {kind: transform, on: late, publish: out}]
  - name: sink
    subscriptions: [{topic: out, type: stamped_int64, qos: {depth: 100}}]
)";
  VirtualLab::Options options{{"disturb.delay", "1ms"}};
  options.insert(options.end(), GetParam().more.begin(), GetParam().more.end());
  const VirtualLab lab(kMixed, kNanosecondsPerSecond, options, 500 * kMs);
  EXPECT_GT(lab.publisher("/out").warmup_sent(), 0u);
  for (const char* topic : {"/near", "/far", "/late", "/out"}) {
    EXPECT_EQ(lab.edge(topic).sequence().gap(), 0u) << topic;
    EXPECT_EQ(lab.edge(topic).sequence().received(), lab.publisher(topic).sent()) << topic;
  }
  const Totals totals = lab.live().totals();
  EXPECT_EQ(totals.completed, totals.deliveries_expected);
  lab.expect_conservation();
}

INSTANTIATE_TEST_SUITE_P(, WarmUpBetweenMeasured,
                         rows::of<MoreOptions>({{"InOrder", {}},
                                                {"Reordered", {{"disturb.reorder_every", "3"}}},
                                                {"Duplicated", {{"disturb.duplicate_every", "2"}}}}),
                         rows::by_name);

// A long callback must not delay, on the link, what others send meanwhile.
TEST(Virtual, TwoLanesOfAnInlineExecutorShareAPublisherWithoutDelayingEachOther) {
  Graph graph = parse_graph({{"t.yaml", R"(
name: shared
nodes:
  - name: source
    publishers: [{topic: in, type: stamped_int64, period: 10ms}]
  - name: worker
    subscriptions: [{topic: in, type: stamped_int64}]
    publishers: [{topic: out, type: stamped_int64}]
    reactions: [{kind: transform, on: in, publish: out}]
  - name: planner
    subscriptions: [{topic: out, type: stamped_int64}]
    publishers: [{topic: plan, type: stamped_int64}]
    reactions: [{kind: cyclic, on: out, publish: plan, period: 50ms, work: 5ms}]
  - name: sink
    subscriptions: [{topic: plan, type: stamped_int64}, {topic: out, type: stamped_int64}]
)",
                              "shared"}});
  graph.processes[0].executors[0].kind = ExecutorKind::kInline;
  const VirtualLab lab(graph, kNanosecondsPerSecond, {{"disturb.delay", "1ms"}});
  EXPECT_EQ(lab.edge("/out", "sink").latency().max(), 1 * kMs);
  EXPECT_EQ(lab.edge("/plan").latency().max(), 1 * kMs);
  EXPECT_EQ(lab.edge("/plan").response().max(), 6 * kMs);
}

TEST(Live, AnInlineExecutorRefusesALoopWithinTheProcess) {
  constexpr const char* kLoop = R"(
name: loop
nodes:
  - name: start
    publishers: [{topic: tick, type: stamped_int64, period: 100ms}]
  - name: a
    subscriptions: [{topic: tick, type: stamped_int64}, {topic: y, type: stamped_int64}]
    publishers: [{topic: x, type: stamped_int64}]
    reactions: [{kind: fusion, on: [tick, y], publish: x}]
  - name: b
    subscriptions: [{topic: x, type: stamped_int64}]
    publishers: [{topic: y, type: stamped_int64}]
    reactions: [{kind: transform, on: x, publish: y}]
)";
  Graph graph = parse_graph({{"t.yaml", kLoop, "loop"}});
  measure::MessageEventQueue events;
  const LiveSettings settings{.duration_ns = kNanosecondsPerSecond};
  {
    runtime::VirtualRuntime runtime({}, 1);
    const LiveGraph fine(graph, std::nullopt, runtime, events, settings);
  }
  graph.processes[0].executors[0].kind = ExecutorKind::kInline;
  runtime::VirtualRuntime runtime({}, 1);
  try {
    const LiveGraph refused(graph, std::nullopt, runtime, events, settings);
    FAIL() << "the loop was not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kBadInput);
    EXPECT_NE(std::string(error.what()).find("loop"), std::string::npos) << error.what();
  }
}

TEST(Virtual, AReactionsMessageInheritsTheIntendedTimeOfItsTrigger) {
  const VirtualLab lab(R"(
name: chain
nodes:
  - name: source
    publishers: [{topic: a, type: stamped_int64, period: 10ms}]
  - name: relay
    subscriptions: [{topic: a, type: stamped_int64}]
    publishers: [{topic: b, type: stamped_int64}]
    reactions: [{kind: relay, on: a, publish: b}]
  - name: transform
    subscriptions: [{topic: b, type: stamped_int64}]
    publishers: [{topic: c, type: stamped1kb}]
    reactions: [{kind: transform, on: b, publish: c, work: 500us}]
  - name: sink
    subscriptions: [{topic: c, type: stamped1kb}]
    reactions: [{kind: sink, on: c, work: 200us}]
)",
                       kNanosecondsPerSecond, {{"disturb.delay", "1ms"}});
  EXPECT_EQ(lab.edge("/c").sequence().received(), 100u);
  EXPECT_EQ(lab.edge("/a").response().max(), 1 * kMs);
  EXPECT_EQ(lab.edge("/b").response().max(), 2 * kMs);
  EXPECT_EQ(lab.edge("/c").latency().max(), 1 * kMs);
  EXPECT_EQ(lab.edge("/c").response().max(), 3 * kMs + 500'000);
  EXPECT_EQ(lab.edge("/c").work()->max(), 200'000);
  EXPECT_EQ(lab.edge("/b").work()->max(), 500'000);
  lab.expect_conservation();
}

TEST(Virtual, AFusionWaitsForAllInputsAndInheritsTheOldest) {
  const VirtualLab lab(R"(
name: fused
nodes:
  - name: fast
    publishers: [{topic: fast, type: stamped_int64, period: 10ms}]
  - name: slow
    publishers: [{topic: slow, type: stamped_int64, period: 45ms}]
  - name: fusion
    subscriptions: [{topic: fast, type: stamped_int64}, {topic: slow, type: stamped_int64}]
    publishers: [{topic: out, type: stamped_int64}]
    reactions: [{kind: fusion, on: [fast, slow], publish: out}]
  - name: sink
    subscriptions: [{topic: out, type: stamped_int64}]
)",
                       900 * kMs, {{"disturb.delay", "1ms"}});
  // One output for each message of the slower input; its partner is at most one fast period older.
  EXPECT_EQ(lab.edge("/out").sequence().received(), 20u);
  EXPECT_GE(lab.edge("/out").response().min(), 2 * kMs);
  EXPECT_LE(lab.edge("/out").response().max(), 12 * kMs);
  EXPECT_EQ(lab.edge("/out").latency().max(), 1 * kMs);
}

TEST(Virtual, ACyclicReactionPublishesEveryPeriodWhateverArrived) {
  const VirtualLab lab(R"(
name: cyclic
nodes:
  - name: source
    publishers: [{topic: in, type: stamped_int64, period: 10ms}]
  - name: planner
    subscriptions: [{topic: in, type: stamped_int64}]
    publishers: [{topic: plan, type: stamped_int64}]
    reactions: [{kind: cyclic, on: in, publish: plan, period: 100ms, work: 2ms}]
  - name: sink
    subscriptions: [{topic: plan, type: stamped_int64}]
)",
                       kNanosecondsPerSecond, {{"disturb.delay", "1ms"}});
  EXPECT_EQ(lab.edge("/in").sequence().received(), 100u);
  EXPECT_EQ(lab.edge("/plan").sequence().received(), 10u);
  EXPECT_EQ(lab.edge("/plan").response().max(), 3 * kMs);
}

TEST(Virtual, AnInlineExecutorServesMessagesInTheirOrderOfArrival) {
  Graph graph = parse_graph({{"t.yaml", kPair, "pair"}});
  graph.processes[0].executors[0].kind = ExecutorKind::kInline;
  const VirtualLab lab(graph, kNanosecondsPerSecond, {{"disturb.delay", "1ms"}, {"service", "40us"}});
  EXPECT_EQ(lab.edge("/chatter").sequence().received(), 100u);
  EXPECT_EQ(lab.edge("/chatter").latency().max(), 1'040'000);
}

struct BadOption {
  const char* name;
  const char* option;
  const char* value;
};
class VirtualOption : public testing::TestWithParam<BadOption> {};

TEST_P(VirtualOption, IsNamedWhereItIsBad) {
  try {
    const runtime::VirtualRuntime runtime({{GetParam().option, GetParam().value}}, 1);
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kBadInput);
    EXPECT_NE(std::string(error.what()).find(GetParam().option), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(, VirtualOption,
                         rows::of<BadOption>({{"AnUnknownOne", "dealy", "1ms"},
                                              {"ADelayWithoutUnit", "disturb.delay", "1"},
                                              {"ALossAboveOne", "disturb.loss", "1.5"},
                                              {"ALossOfEveryNegative", "disturb.loss_every", "-1"}}),
                         rows::by_name);

TEST(Loops, AreRefusedWhereNoMessageOfATimerComesBackToItsNode) {
  const auto with = [](const char* reaction) {
    return parse_graph({{"test.yaml", std::string(R"(
name: loops
nodes:
  - name: ping
    publishers: [{topic: ping, type: stamped10b, period: 10ms}]
    subscriptions: [{topic: pong, type: stamped10b}]
  - name: pong
    subscriptions: [{topic: ping, type: stamped10b}]
    publishers: [{topic: pong, type: stamped10b}]
    reactions: [)") + reaction + "]\n", "test"}});
  };
  const auto measured = [](const Graph& graph) {
    runtime::VirtualRuntime runtime({}, 1);
    measure::MessageEventQueue events;
    const LiveGraph live(graph, std::nullopt, runtime, events, {.duration_ns = kNanosecondsPerSecond, .measure_loops = true});
    return live.loops().size();
  };
  EXPECT_EQ(measured(with("{kind: relay, on: ping, publish: pong}")), 1U);
  EXPECT_THROW(measured(with("{kind: cyclic, on: ping, publish: pong, period: 10ms}")), BadInput);
}

}  // namespace
}  // namespace perflab::graph
