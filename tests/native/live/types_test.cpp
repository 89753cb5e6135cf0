// The measurement does not depend on the type: messages without a due time, or without any measurement data,
// are measured like others, because the sender stores the data.
#include <sys/mman.h>

#include <cstring>
#include <optional>

#include "../message/plain_cdr.h"
#include "../rows.h"
#include "base/descriptor.h"
#include "graph/schedule.h"
#include "message/object.h"
#include "virtual_lab.h"

namespace perflab::graph {
namespace {

// A type's name in graphs, and the size that a publisher sets.
struct OfType {
  std::string text;
  std::string size;
};

std::shared_ptr<message::Formats> messages() {
  return std::make_shared<message::Formats>(std::map<std::string, std::string>{
      {"my_msgs/msg/Part", "string name\nfloat64[] values\n"},
      {"my_msgs/msg/Scan", "bool good\nPart[] parts\nuint8[] data\nint64 time\nuint64 id\nint8 last\n"},
      {"my_msgs/msg/Framed", "uint8 kind\nperflab_msgs/Header header\nwstring text\nPart[] parts\n"},
      {"my_msgs/srv/Ask",
       "string question\nint64 time\nuint64 id\n---\nbool known\nfloat32[] answers\nint64 time\nuint64 id\n"},
      {"my_msgs/srv/AskWithHeader", "int64 time\nuint64 id\n---\nperflab_msgs/Header header\nstring answer\n"},
      {"my_msgs/srv/AskWithoutStamp", "string question\n---\nperflab_msgs/Header header\n"},
      {"my_msgs/srv/AnswerWithoutStamp", "int64 time\nuint64 id\n---\nstring[] answer\n"},
      {"my_msgs/srv/AnswerWithTime", "perflab_msgs/Header header\nstring question\n---\nint64 time\nuint64 id\n"},
  });
}

// Replaces TYPE by the type, and SIZE by ", size: ..." or nothing.
Graph graph_of(std::string yaml, const OfType& of, const std::shared_ptr<message::Formats>& types = messages()) {
  const auto replace = [&yaml](const std::string& what, const std::string& by) {
    for (std::size_t at = yaml.find(what); at != std::string::npos; at = yaml.find(what, at + by.size()))
      yaml.replace(at, what.size(), by);
  };
  replace("TYPE", of.text);
  replace("SIZE", of.size.empty() ? "" : ", size: " + of.size);
  return parse_graph({{"test.yaml", yaml, "test"}}, types);
}

const OfType kWithHeader{"stamped1kb", ""};

// All values of a histogram.
std::vector<std::int64_t> told(const measure::Histogram& histogram) {
  return {static_cast<std::int64_t>(histogram.count()), histogram.min(), histogram.max(), histogram.sum()};
}

// Everything that is measured is equal, edge by edge and publisher by publisher.
void expect_equal(const VirtualLab& lab, const VirtualLab& expected) {
  const std::vector<EdgeView> edges = lab.live().edges(), expected_edges = expected.live().edges();
  ASSERT_EQ(edges.size(), expected_edges.size());
  for (std::size_t i = 0; i < edges.size(); ++i) {
    SCOPED_TRACE(edges[i].publisher_node->name + " to " + edges[i].subscription_node->name);
    const measure::EdgeRecorder& edge = *edges[i].recorder;
    const measure::EdgeRecorder& other = *expected_edges[i].recorder;
    EXPECT_GT(edge.sequence().received(), 0u);
    EXPECT_EQ(edge.sequence().received(), other.sequence().received());
    EXPECT_EQ(edge.sequence().gap(), other.sequence().gap());
    EXPECT_EQ(edge.sequence().duplicate(), other.sequence().duplicate());
    EXPECT_EQ(edge.sequence().reordered(), other.sequence().reordered());
    EXPECT_EQ(edge.sequence().lowest(), other.sequence().lowest());
    EXPECT_EQ(edge.sequence().highest(), other.sequence().highest());
    EXPECT_EQ(edge.warmup_received(), other.warmup_received());
    EXPECT_EQ(told(edge.latency()), told(other.latency()));
    EXPECT_EQ(told(edge.response()), told(other.response()));
    EXPECT_EQ(edge.on_time(), other.on_time());
  }
  const std::vector<PublisherView> publishers = lab.live().publishers();
  const std::vector<PublisherView> expected_publishers = expected.live().publishers();
  ASSERT_EQ(publishers.size(), expected_publishers.size());
  for (std::size_t i = 0; i < publishers.size(); ++i) {
    const measure::PublisherRecorder& publisher = *publishers[i].recorder;
    EXPECT_EQ(publisher.sent(), expected_publishers[i].recorder->sent());
    EXPECT_EQ(publisher.warmup_sent(), expected_publishers[i].recorder->warmup_sent());
    EXPECT_EQ(told(publisher.publish_delay()), told(expected_publishers[i].recorder->publish_delay()));
  }
  EXPECT_EQ(lab.live().malformed_messages(), 0u);
  EXPECT_EQ(lab.live().foreign_messages(), 0u);
  lab.expect_conservation();
}

class TypesOf : public testing::TestWithParam<OfType> {};

// The sender stalls now and then, so that messages leave late.
constexpr const char* kStalled = R"(
name: stalled
processes:
  - name: a
    nodes:
      - name: talker
        publishers: [{topic: chatter, type: TYPE SIZE, period: 10ms}, {topic: noise, type: stamped10b}]
        timers: [{name: stall, period: 1s, publish: noise, work: 205ms}]
  - name: b
    nodes:
      - name: listener
        subscriptions: [{topic: chatter, type: TYPE, qos: {depth: 50}}]
)";

TEST_P(TypesOf, AreMeasuredAlike) {
  const VirtualLab::Options options{
      {"disturb.delay", "1ms"},         {"disturb.jitter", "3ms"},        {"disturb.loss_every", "7"},
      {"disturb.duplicate_every", "5"}, {"disturb.reorder_every", "11"}, {"disturb.seed", "4"},
      {"service", "40us"},              {"publish_call", "7us"}};
  const auto run = [&](const OfType& of) {
    return std::make_unique<VirtualLab>(graph_of(kStalled, of), 5 * kNanosecondsPerSecond, options, 1'200 * kMs);
  };
  const auto expected = run(kWithHeader);
  EXPECT_GE(expected->edge("/chatter").response().max(), 190 * kMs);
  EXPECT_GT(expected->edge("/chatter").warmup_received(), 0u);
  expect_equal(*run(GetParam()), *expected);
}

TEST_P(TypesOf, OfTwoPublishersOfOneTopicAreToldApart) {
  constexpr const char* kTwo = R"(
name: two
nodes:
  - name: slow
    publishers: [{topic: chatter, type: TYPE SIZE, period: 30ms}]
  - name: quick
    publishers: [{topic: chatter, type: TYPE SIZE, period: 10ms}]
    subscriptions: [{topic: chatter, type: TYPE, qos: {depth: 100}}]
  - name: listener
    subscriptions: [{topic: chatter, type: TYPE, qos: {depth: 100}}]
)";
  const auto run = [&](const OfType& of) {
    return std::make_unique<VirtualLab>(graph_of(kTwo, of), 3 * kNanosecondsPerSecond,
                                        VirtualLab::Options{{"disturb.delay", "1ms"}, {"service", "1ms"}}, 500 * kMs);
  };
  const auto expected = run(kWithHeader);
  EXPECT_EQ(expected->live().edges().size(), 4u);
  expect_equal(*run(GetParam()), *expected);
}

TEST_P(TypesOf, PassThroughReactionsOfEveryKind) {
  constexpr const char* kChain = R"(
name: chain
nodes:
  - name: source
    publishers: [{topic: a, type: TYPE SIZE, period: 10ms}]
  - name: relay
    subscriptions: [{topic: a, type: TYPE}]
    publishers: [{topic: b, type: TYPE SIZE}]
    reactions: [{kind: relay, on: a, publish: b, work: 100us}]
  - name: transform
    subscriptions: [{topic: b, type: TYPE}]
    publishers: [{topic: c, type: TYPE SIZE}]
    reactions: [{kind: transform, on: b, publish: c, work: 500us}]
  - name: fusion
    subscriptions: [{topic: a, type: TYPE}, {topic: c, type: TYPE}]
    publishers: [{topic: d, type: TYPE SIZE}]
    reactions: [{kind: fusion, on: [a, c], publish: d}]
  - name: planner
    subscriptions: [{topic: d, type: TYPE}]
    publishers: [{topic: plan, type: TYPE SIZE}]
    reactions: [{kind: cyclic, on: d, publish: plan, period: 100ms, work: 2ms}]
  - name: sink
    subscriptions: [{topic: plan, type: TYPE}, {topic: d, type: TYPE}]
)";
  const auto run = [&](const OfType& of) {
    return std::make_unique<VirtualLab>(graph_of(kChain, of), 2 * kNanosecondsPerSecond,
                                        VirtualLab::Options{{"disturb.delay", "1ms"}}, 500 * kMs);
  };
  expect_equal(*run(GetParam()), *run(kWithHeader));
}

INSTANTIATE_TEST_SUITE_P(, TypesOf,
                         rows::of<OfType>({{"array1k", ""},
                                           {"radar_track", ""},
                                           {"struct4k", ""},
                                           {"nav_sat_fix", ""},
                                           {"bounded_sequence1k", "300"},
                                           {"unbounded_string", "77"},
                                           {"stamped_vector", "77"},
                                           {"my_msgs/msg/Scan", "20"},
                                           {"my_msgs/msg/Framed", "5"},
                                           {"geometry_msgs/msg/Twist", ""},
                                           {"sensor_msgs/msg/Image", "1000"},
                                           {"std_msgs/msg/String", "40"}}),
                         rows::by_text);

// ---- what a relay sends

class Mailbox final : public runtime::MessageHandler {
 public:
  void on_message(const runtime::Delivery& delivery) noexcept override {
    messages.emplace_back(delivery.bytes.begin(), delivery.bytes.end());
    stamps.push_back(static_cast<std::uint64_t>(delivery.source_timestamp_ns));
  }
  std::vector<std::vector<std::uint8_t>> messages;
  std::vector<std::uint64_t> stamps;  // source time stamps
};

// A relay whose input is published by another process: simulated by the test, which has that process's
// schedule.
class Relayed : public testing::TestWithParam<OfType> {
 protected:
  static constexpr Nanoseconds kBase = VirtualLab::kBase;
  static constexpr Nanoseconds kSourcePublished = kBase + 1;

  Relayed()
      : graph_(graph_of(R"(
name: relayed
processes:
  - name: here
    nodes:
      - name: relay
        subscriptions: [{topic: in, type: TYPE, qos: {depth: 100}}]
        publishers: [{topic: out, type: TYPE SIZE}]
        reactions: [{kind: relay, on: in, publish: out}]
        timers: [{period: 1s, work: 1us}]
  - name: there
    nodes:
      - name: source
        publishers: [{topic: in, type: TYPE SIZE, period: 10ms}]
      - name: sink
        subscriptions: [{topic: out, type: TYPE, qos: {depth: 100}}]
)",
                        GetParam())),
        format_(*graph_.messages->find(GetParam().text)),
        memory_(memfd_create("schedule", MFD_CLOEXEC)),
        live_(graph_, 0, runtime_, events_,
              {.duration_ns = kNanosecondsPerSecond, .schedule_descriptor = memory_.number()}) {
    const std::size_t executor = runtime_.add_executor({.process = 1, .name = "there"});
    const runtime::EndpointSettings in{.process = 1,
                                       .group = 7,
                                       .topic = "/in",
                                       .ros_type = format_.type->name,
                                       .qos = default_qos(),
                                       .known_by_stamp = format_.stamp == message::Stamp::kNone};
    runtime::EndpointSettings out = in;
    out.topic = "/out";
    out.qos.depth = 100;
    source_ = &runtime_.create_publisher(in);
    runtime_.create_subscription(executor, out, mailbox_);
    live_.set_writers(std::vector<WriterName>{{"/source", "/in", source_->identity()}});
    // Publishers without a header in graph order: /out, /in.
    if (format_.stamp != message::Stamp::kHeader) schedule_.emplace(2, memory_.number());
  }

  // A message of the source's with that sequence.
  std::vector<std::uint8_t> make(std::uint64_t sequence, bool little_endian, bool known = true) {
    const message::Header header{.intended_ns = due_of(sequence),
                                 .published_ns = kSourcePublished,
                                 .sequence = sequence,
                                 .size_bytes = size_bytes(),
                                 .frequency_hz = 100.0F};
    const bool says_nothing = format_.stamp == message::Stamp::kNone;
    stamp_ = says_nothing ? Schedule::stamp_for(1'700'000'000'000'000'000, sequence) : 0;
    if (schedule_ && known) {
      schedule_->put(1, says_nothing ? static_cast<std::uint64_t>(stamp_) : sequence,
                     {header.intended_ns, header.published_ns, sequence});
    }
    message::Object object(*format_.type);
    message::fill(object, graph_.processes[1].nodes[0].publishers[0].length, sequence + 1);
    std::vector<std::uint8_t> bytes = message::PlainCdr::encode(*format_.type, object.data(), little_endian);
    format_.write_stamp(header, !little_endian, bytes.data() + format_.stamp_at(bytes));
    return bytes;
  }
  // The last message made.
  void send(const std::vector<std::uint8_t>& bytes) { EXPECT_TRUE(source_->publish({{}, {}, bytes, stamp_})); }
  void run() {
    live_.start(kBase);
    while (!runtime_.timers_done()) std::this_thread::yield();
    runtime_.stop();
  }
  static Nanoseconds due_of(std::uint64_t sequence) { return kBase + 10 + static_cast<Nanoseconds>(sequence); }
  std::uint32_t size_bytes() const { return graph_.processes[1].nodes[0].publishers[0].size_bytes; }

  Graph graph_;
  const message::Format& format_;
  const Descriptor memory_;
  measure::MessageEventQueue events_;
  runtime::VirtualRuntime runtime_{{}, 1};
  LiveGraph live_;
  runtime::Publisher* source_ = nullptr;
  Mailbox mailbox_;
  std::optional<Schedule> schedule_;
  std::int64_t stamp_ = 0;
};

TEST_P(Relayed, IsTheMessageAsItCameWithAStampOfItsOwn) {
  std::vector<std::vector<std::uint8_t>> sent;
  for (std::uint64_t i = 0; i < 8; ++i) {
    sent.push_back(make(i, i % 2 == 0));
    std::vector<std::uint8_t> padded = sent.back();
    padded.resize(padded.size() + i % 4);  // as RTPS pads
    send(padded);
  }
  run();
  EXPECT_EQ(live_.malformed_messages(), 0u);
  EXPECT_EQ(live_.foreign_messages(), 0u);
  ASSERT_EQ(mailbox_.messages.size(), sent.size());
  for (std::uint64_t i = 0; i < sent.size(); ++i) {
    SCOPED_TRACE(i);
    std::vector<std::uint8_t>& got = mailbox_.messages[i];
    if (format_.stamp == message::Stamp::kNone) {
      const Schedule::Entry entry = schedule_->find(0, mailbox_.stamps[i]);
      EXPECT_EQ(entry.due_ns, due_of(i));
      EXPECT_EQ(entry.sequence, i);
      EXPECT_NE(entry.published_ns, kSourcePublished);
      EXPECT_EQ(got, sent[i]);
      continue;
    }
    message::Header header;
    ASSERT_TRUE(format_.read_stamp(got, header));
    EXPECT_EQ(message::sequence_of(header), i);
    EXPECT_EQ(message::source_of(header), 0u);
    EXPECT_NE(header.published_ns, kSourcePublished);
    if (format_.stamp == message::Stamp::kHeader) {
      EXPECT_EQ(header.intended_ns, due_of(i));
      EXPECT_EQ(header.size_bytes, size_bytes());
      EXPECT_EQ(header.frequency_hz, 0.0F) << "a relay has no period";
    } else {
      EXPECT_EQ(schedule_->find(0, i).due_ns, due_of(i)) << "left behind by the relay";
    }
    // The rest is unchanged, in its byte order.
    const auto at = static_cast<std::ptrdiff_t>(format_.stamp_at(got));
    ASSERT_EQ(got.size(), sent[i].size());
    std::copy_n(sent[i].begin() + at, format_.stamp_bytes, got.begin() + at);
    EXPECT_EQ(got, sent[i]);
  }
}

TEST_P(Relayed, AreNotWhatIsNoMessageOrHasNoKnownTime) {
  std::vector<std::uint8_t> cut = make(0, true);
  cut.resize(cut.size() / 2);
  send(cut);
  std::vector<std::uint8_t> foreign = make(1, true);
  foreign[1] = 7;
  send(foreign);
  std::uint64_t forgotten = 0;
  if (format_.stamp != message::Stamp::kHeader) {
    send(make(2, true, false));
    ++forgotten;
  }
  send(make(3, true));
  run();
  EXPECT_EQ(live_.malformed_messages(), 2u);
  EXPECT_EQ(live_.forgotten_messages(), forgotten);
  ASSERT_EQ(mailbox_.messages.size(), 1u);
}

INSTANTIATE_TEST_SUITE_P(, Relayed,
                         rows::of<OfType>({{"stamped1kb", ""},
                                           {"stamped_vector", "77"},
                                           {"array1k", ""},
                                           {"radar_track", ""},
                                           {"bounded_sequence1k", "301"},
                                           {"unbounded_string", "78"},
                                           {"my_msgs/msg/Scan", "20"},
                                           {"my_msgs/msg/Framed", "5"},
                                           {"geometry_msgs/msg/Twist", ""},
                                           {"sensor_msgs/msg/Image", "1001"}}),
                         rows::by_text);

// ---- services

class ServicesOf : public testing::TestWithParam<std::string> {};

TEST_P(ServicesOf, TakeAsLongWhereverTheirMessagesSayIt) {
  constexpr const char* kCalls = R"(
name: calls
processes:
  - name: a
    nodes:
      - name: one
        clients: [{service: add, type: TYPE, period: 10ms}]
      - name: two
        clients: [{service: add, type: TYPE, period: 30ms}]
        publishers: [{topic: noise, type: stamped10b}]
        timers: [{name: stall, period: 1s, publish: noise, work: 205ms}]
  - name: b
    nodes:
      - name: callee
        servers: [{service: add, type: TYPE, work: 300us}]
)";
  const auto run = [&](const std::string& type) {
    return std::make_unique<VirtualLab>(
        graph_of(kCalls, {type, ""}), 3 * kNanosecondsPerSecond,
        VirtualLab::Options{{"disturb.delay", "1ms"}, {"disturb.loss_every", "9"}}, 1'200 * kMs);
  };
  const auto lab = run(GetParam());
  const auto expected = run("stamped10b");
  const std::vector<ServiceView> services = lab->live().services(), others = expected->live().services();
  ASSERT_EQ(services.size(), 2u);
  for (std::size_t i = 0; i < services.size(); ++i) {
    EXPECT_GT(services[i].replies->sequence().received(), 0u);
    EXPECT_GT(services[i].requests->warmup_sent(), 0u);
    EXPECT_EQ(services[i].requests->sent(), others[i].requests->sent());
    EXPECT_EQ(services[i].requests->warmup_sent(), others[i].requests->warmup_sent());
    EXPECT_EQ(services[i].replies->warmup_received(), others[i].replies->warmup_received());
    EXPECT_EQ(services[i].replies->sequence().received(), others[i].replies->sequence().received());
    EXPECT_EQ(services[i].replies->sequence().gap(), others[i].replies->sequence().gap());
    EXPECT_EQ(services[i].replies->sequence().lowest(), others[i].replies->sequence().lowest());
    EXPECT_EQ(told(services[i].replies->latency()), told(others[i].replies->latency()));
    EXPECT_EQ(told(services[i].replies->response()), told(others[i].replies->response()));
    EXPECT_EQ(services[i].size_bytes,
              messages()->find_request(GetParam())->payload_bytes(message::kServiceLength));
  }
  EXPECT_EQ(lab->live().malformed_messages(), 0u);
  EXPECT_EQ(lab->live().forgotten_messages(), 0u);
}

INSTANTIATE_TEST_SUITE_P(, ServicesOf,
                         testing::Values("stamped1kb", "my_msgs/srv/Ask", "my_msgs/srv/AskWithHeader",
                                         "my_msgs/srv/AnswerWithTime", "std_srvs/srv/SetBool", "std_srvs/srv/Empty",
                                         "my_msgs/srv/AskWithoutStamp", "my_msgs/srv/AnswerWithoutStamp"),
                         rows::by_itself);

}  // namespace
}  // namespace perflab::graph
