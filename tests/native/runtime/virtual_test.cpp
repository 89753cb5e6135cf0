// Executors and services in virtual time: the model's answers are exact.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <map>
#include <string>
#include <thread>
#include <vector>

#include "../rows.h"
#include "middleware/host/plugin.h"
#include "runtime/virtual/virtual_runtime.h"

namespace perflab::runtime {
namespace {

constexpr Nanoseconds kMs = 1'000'000;
constexpr Nanoseconds kBase = 1'000 * kMs;

// Who ran when, in ms after the start.
using Log = std::vector<std::pair<char, Nanoseconds>>;

class Worker final : public MessageHandler {
 public:
  Worker(VirtualRuntime& runtime, Log& log, char name, Nanoseconds work)
      : runtime_(runtime), log_(log), name_(name), work_(work) {}
  void on_message(const Delivery& delivery) noexcept override {
    log_.emplace_back(name_, (runtime_.clock().now() - kBase) / kMs);
    last_bytes.assign(delivery.bytes.begin(), delivery.bytes.end());
    last_related = delivery.related;
    runtime_.work(work_);
  }
  std::vector<std::uint8_t> last_bytes;
  perflab_sample_identity last_related{};

 private:
  VirtualRuntime& runtime_;
  Log& log_;
  char name_;
  Nanoseconds work_;
};

class Burst final : public TimerHandler {
 public:
  explicit Burst(std::vector<Publisher*> order) : order_(std::move(order)) {}
  void on_tick(Nanoseconds) noexcept override {
    const std::array<std::uint8_t, 8> frame{0, 1, 0, 0, 1, 2, 3, 4};
    for (Publisher* const publisher : order_) EXPECT_TRUE(publisher->publish({{}, frame, {}}));
  }
  void on_skipped(Nanoseconds, std::uint64_t) noexcept override {}

 private:
  std::vector<Publisher*> order_;
};

class Virtual : public testing::Test {
 protected:
  std::size_t executor(ExecutorKind kind, int threads = 0) {
    return runtime_.add_executor({.kind = kind, .name = "executor_0", .threads = threads});
  }
  static EndpointSettings endpoint(const std::string& topic, std::size_t group = 0) {
    EndpointSettings settings;
    settings.group = group;
    settings.topic = topic;
    settings.ros_type = "perflab_msgs/msg/StampedInt64";
    settings.qos = middleware::default_qos();
    return settings;
  }
  void subscribe(std::size_t executor, const std::string& topic, char name, Nanoseconds work,
                 std::size_t group = 0) {
    workers_.emplace_back(runtime_, log_, name, work);
    runtime_.create_subscription(executor, endpoint(topic, group), workers_.back());
  }
  Publisher& publisher(const std::string& topic) { return runtime_.create_publisher(endpoint(topic)); }
  // One burst 1 ms after the start.
  void burst(const std::vector<Publisher*>& order) {
    bursts_.emplace_back(order);
    const std::size_t source = executor(ExecutorKind::kSingleThreaded);
    runtime_.create_timer(source, {.name = "burst", .period_ns = kMs, .until_ns = kMs}, bursts_.back());
  }
  void run() {
    runtime_.start(kBase);
    while (!runtime_.timers_done()) std::this_thread::yield();
    runtime_.stop();
  }

  VirtualRuntime runtime_{{}, 1};
  Log log_;
  std::deque<Worker> workers_;
  std::deque<Burst> bursts_;
};

// Which messages of a burst each reader takes, and when.
struct Reader {
  char name;  // also of its topic
  Nanoseconds work_ms;
  std::size_t group = 0;
};
struct Model {
  const char* name;
  ExecutorKind kind;
  int threads;
  std::vector<Reader> readers;  // in the order of their creation
  std::string burst;
  Log expected;
};
class VirtualExecutor : public Virtual, public testing::WithParamInterface<Model> {};

TEST_P(VirtualExecutor, RunsCallbacksAsItsModelSays) {
  const Model& model = GetParam();
  const std::size_t on = executor(model.kind, model.threads);
  std::map<char, Publisher*> publishers;
  for (const Reader& reader : model.readers) {
    const std::string topic = std::string("/") + reader.name;
    subscribe(on, topic, reader.name, reader.work_ms * kMs, reader.group);
    publishers[reader.name] = &publisher(topic);
  }
  std::vector<Publisher*> order;
  for (const char name : model.burst) order.push_back(publishers.at(name));
  burst(order);
  run();
  EXPECT_EQ(log_, model.expected);
}

INSTANTIATE_TEST_SUITE_P(, VirtualExecutor,
                         rows::of<Model>({{"EventsTakeReadersInTheOrderOfArrivalAndABacklogTakesTurns",
                                           ExecutorKind::kEvents,
                                           0,
                                           {{'b', 1}, {'a', 1}},
                                           "aaab",
                                           {{'a', 1}, {'b', 2}, {'a', 3}, {'a', 4}}},
                                          // Only z is there when the first cycle collects.
                                          {"SingleThreadedTakesReadersInTheOrderOfTheirCreation",
                                           ExecutorKind::kSingleThreaded,
                                           0,
                                           {{'z', 1}, {'b', 1}, {'a', 1}},
                                           "zaab",
                                           {{'z', 1}, {'b', 2}, {'a', 3}, {'a', 4}}},
                                          {"MultiThreadedRunsGroupsAtTheSameTimeOnAsManyServersAsThereAre",
                                           ExecutorKind::kMultiThreaded,
                                           2,
                                           {{'a', 10, 1}, {'b', 4, 2}, {'c', 10, 3}},
                                           "abc",
                                           {{'a', 1}, {'b', 1}, {'c', 5}}},
                                          {"MultiThreadedExcludesCallbacksOfOneGroup",
                                           ExecutorKind::kMultiThreaded,
                                           8,
                                           {{'a', 3, 1}, {'b', 2, 1}},
                                           "aab",
                                           {{'a', 1}, {'b', 4}, {'a', 6}}}}),
                         rows::by_name);

class LoggedTicks final : public TimerHandler {
 public:
  LoggedTicks(VirtualRuntime& runtime, Nanoseconds work) : runtime_(runtime), work_(work) {}
  void on_tick(Nanoseconds due_ns) noexcept override {
    ran.emplace_back((due_ns - kBase) / kMs, (runtime_.clock().now() - kBase) / kMs);
    runtime_.work(work_);
  }
  void on_skipped(Nanoseconds, std::uint64_t) noexcept override {}
  std::vector<std::pair<Nanoseconds, Nanoseconds>> ran;  // due and run

 private:
  VirtualRuntime& runtime_;
  Nanoseconds work_;
};

TEST_F(Virtual, TimersOfAMultiThreadedExecutorTickOneAtATimeAndAllOfThem) {
  const std::size_t on = executor(ExecutorKind::kMultiThreaded, 2);
  LoggedTicks slow(runtime_, 15 * kMs);
  LoggedTicks quick(runtime_, 0);
  runtime_.create_timer(on, {.name = "slow", .group = 1, .period_ns = 10 * kMs, .until_ns = 30 * kMs}, slow);
  runtime_.create_timer(on, {.name = "quick", .group = 2, .period_ns = 10 * kMs, .until_ns = 30 * kMs},
                        quick);
  run();
  using Ran = std::vector<std::pair<Nanoseconds, Nanoseconds>>;
  EXPECT_EQ(slow.ran, (Ran{{10, 10}, {20, 25}, {30, 40}}));
  EXPECT_EQ(quick.ran, (Ran{{10, 10}, {20, 20}, {30, 30}}));
}

TEST_F(Virtual, SaysHowMessagesPass) {
  const std::size_t on = executor(ExecutorKind::kEvents);
  subscribe(on, "/a", 'a', 0);
  subscribe(on, "/a", 'b', 0);
  const Passing passing = publisher("/a").passing();
  EXPECT_EQ(passing.middleware, 2u);
  EXPECT_EQ(passing.intra_process + passing.copies, 0u);
  EXPECT_FALSE(passing.loaned);
}

// Requests that need an operating system.
struct Asked {
  const char* name;
  void (*ask)(VirtualRuntime&);
};
class VirtualRefusal : public testing::TestWithParam<Asked> {};

TEST_P(VirtualRefusal, IsOneLine) {
  VirtualRuntime runtime({}, 1);
  try {
    GetParam().ask(runtime);
    FAIL() << "not refused";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), Error::Kind::kUnsupported) << error.what();
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos) << error.what();
  }
}

INSTANTIATE_TEST_SUITE_P(, VirtualRefusal,
                         rows::of<Asked>({{"CpusOfAnExecutor",
                                           [](VirtualRuntime& runtime) {
                                             runtime.add_executor({.kind = ExecutorKind::kEvents,
                                                                   .name = "e",
                                                                   .thread = {.cpus = {0}}});
                                           }},
                                          {"AsManyThreadsAsThereAreCpus",
                                           [](VirtualRuntime& runtime) {
                                             runtime.add_executor(
                                                 {.kind = ExecutorKind::kMultiThreaded, .name = "e"});
                                           }},
                                          {"Loans",
                                           [](VirtualRuntime& runtime) {
                                             EndpointSettings loaned;
                                             loaned.topic = "/a";
                                             loaned.ros_type = "perflab_msgs/msg/StampedInt64";
                                             loaned.qos = middleware::default_qos();
                                             loaned.pass_by = PassBy::kLoaned;
                                             runtime.create_publisher(loaned);
                                           }}}),
                         rows::by_name);

// ---- services ----

class Echo final : public RequestHandler {
 public:
  explicit Echo(VirtualRuntime& runtime) : runtime_(runtime) {}
  void on_request(const Delivery& request, Reply& reply) noexcept override {
    runtime_.work(2 * kMs);
    numbers.push_back(request.sequence);
    EXPECT_TRUE(reply.send({{}, request.bytes, {}}));
  }
  std::vector<std::int64_t> numbers;

 private:
  VirtualRuntime& runtime_;
};

class Asking final : public TimerHandler {
 public:
  explicit Asking(Client& client, std::uint8_t name) : client_(client), name_(name) {}
  void on_tick(Nanoseconds) noexcept override {
    const std::array<std::uint8_t, 9> message{0, 1, 0, 0, name_, 2, 3, 4, 9};
    const std::span<const std::uint8_t> bytes(message);
    EXPECT_TRUE(client_.request({bytes.first(5), bytes.subspan(5, 2), bytes.subspan(7)}));
  }
  void on_skipped(Nanoseconds, std::uint64_t) noexcept override {}

 private:
  Client& client_;
  std::uint8_t name_;
};

TEST_F(Virtual, ServicesAnswerTheOneWhoAsked) {
  ServiceSettings service;
  service.service = "/add";
  service.ros_type = "perflab_msgs/srv/Stamped10b";
  service.qos = middleware::default_qos();
  EXPECT_EQ(runtime_.service_framing(), ServiceFraming::kRmwCyclonedds);
  Echo echo(runtime_);
  Server& server = runtime_.create_server(executor(ExecutorKind::kEvents), service, echo);
  std::vector<Client*> clients;
  std::deque<Asking> asking;
  const std::size_t on = executor(ExecutorKind::kEvents);
  for (const char name : {'p', 'q'}) {
    workers_.emplace_back(runtime_, log_, name, 0);
    clients.push_back(&runtime_.create_client(on, service, workers_.back()));
    asking.emplace_back(*clients.back(), static_cast<std::uint8_t>(name));
    runtime_.create_timer(on, {.name = "ask", .period_ns = 10 * kMs, .until_ns = 20 * kMs}, asking.back());
  }
  EXPECT_EQ(server.matched(), 2u);
  for (Client* const client : clients) EXPECT_EQ(client->matched(), 1u);
  run();
  EXPECT_EQ(log_, (Log{{'p', 12}, {'q', 14}, {'p', 22}, {'q', 24}}));
  EXPECT_EQ(echo.numbers, (std::vector<std::int64_t>{1, 1, 2, 2}));
  EXPECT_EQ(workers_[1].last_bytes, (std::vector<std::uint8_t>{0, 1, 0, 0, 'q', 2, 3, 4, 9}));
  EXPECT_EQ(workers_[1].last_related.sequence, 2);
  const std::string description = runtime_.describe();
  EXPECT_NE(description.find("rq/addRequest"), std::string::npos);
}

}  // namespace
}  // namespace perflab::runtime
