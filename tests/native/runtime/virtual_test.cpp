// Executors and services in virtual time: the model's answers are exact.
#include <gtest/gtest.h>

#include <array>
#include <cstring>
#include <deque>
#include <string>
#include <thread>
#include <vector>

#include "middleware/host/plugin.h"
#include "runtime/virtual/virtual_runtime.h"

namespace perflab::runtime {
namespace {

constexpr Nanoseconds kMs = 1'000'000;
constexpr Nanoseconds kBase = 1'000 * kMs;

// Who ran and when, in ms after the start.
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
    for (Publisher* const publisher : order_) EXPECT_TRUE(publisher->publish(frame, {}));
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
    runtime_.create_timer(source, {"burst", 0, kMs, 1, 1, false}, bursts_.back());
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

TEST_F(Virtual, EventsTakeReadersInTheOrderOfArrivalAndABacklogTakesTurns) {
  const std::size_t on = executor(ExecutorKind::kEvents);
  subscribe(on, "/b", 'b', kMs);
  subscribe(on, "/a", 'a', kMs);
  Publisher& a = publisher("/a");
  Publisher& b = publisher("/b");
  burst({&a, &a, &a, &b});
  run();
  EXPECT_EQ(log_, (Log{{'a', 1}, {'b', 2}, {'a', 3}, {'a', 4}}));
}

TEST_F(Virtual, SingleThreadedTakesReadersInTheOrderOfTheirCreation) {
  const std::size_t on = executor(ExecutorKind::kSingleThreaded);
  subscribe(on, "/z", 'z', kMs);
  subscribe(on, "/b", 'b', kMs);
  subscribe(on, "/a", 'a', kMs);
  Publisher& a = publisher("/a");
  Publisher& b = publisher("/b");
  Publisher& z = publisher("/z");
  burst({&z, &a, &a, &b});
  run();
  // z alone is there when the first cycle collects.
  EXPECT_EQ(log_, (Log{{'z', 1}, {'b', 2}, {'a', 3}, {'a', 4}}));
}

TEST_F(Virtual, MultiThreadedRunsGroupsAtTheSameTimeOnAsManyServersAsThereAre) {
  const std::size_t on = executor(ExecutorKind::kMultiThreaded, 2);
  subscribe(on, "/a", 'a', 10 * kMs, 1);
  subscribe(on, "/b", 'b', 4 * kMs, 2);
  subscribe(on, "/c", 'c', 10 * kMs, 3);
  Publisher& a = publisher("/a");
  Publisher& b = publisher("/b");
  Publisher& c = publisher("/c");
  burst({&a, &b, &c});
  run();
  EXPECT_EQ(log_, (Log{{'a', 1}, {'b', 1}, {'c', 5}}));
}

TEST_F(Virtual, MultiThreadedExcludesCallbacksOfOneGroup) {
  const std::size_t on = executor(ExecutorKind::kMultiThreaded, 8);
  subscribe(on, "/a", 'a', 3 * kMs, 1);
  subscribe(on, "/b", 'b', 2 * kMs, 1);
  Publisher& a = publisher("/a");
  Publisher& b = publisher("/b");
  burst({&a, &a, &b});
  run();
  EXPECT_EQ(log_, (Log{{'a', 1}, {'b', 4}, {'a', 6}}));
}

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
  runtime_.create_timer(on, {"slow", 1, 10 * kMs, 1, 3, false}, slow);
  runtime_.create_timer(on, {"quick", 2, 10 * kMs, 1, 3, false}, quick);
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

TEST_F(Virtual, RefusesWhatOnlyAnOperatingSystemHas) {
  const auto kind_of = [](auto&& function) {
    try {
      function();
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
      return error.kind();
    }
    return Error::Kind::kFailed;
  };
  EXPECT_EQ(kind_of([&] {
              runtime_.add_executor({.kind = ExecutorKind::kEvents, .name = "e", .thread = {.cpus = {0}}});
            }),
            Error::Kind::kUnsupported);
  EXPECT_EQ(kind_of([&] { executor(ExecutorKind::kMultiThreaded); }), Error::Kind::kUnsupported);
  EndpointSettings loaned = endpoint("/a");
  loaned.pass_by = PassBy::kLoaned;
  EXPECT_EQ(kind_of([&] { runtime_.create_publisher(loaned); }), Error::Kind::kUnsupported);
}

// ---- services ----

class Echo final : public RequestHandler {
 public:
  explicit Echo(VirtualRuntime& runtime) : runtime_(runtime) {}
  void on_request(const Delivery& request, Reply& reply) noexcept override {
    runtime_.work(2 * kMs);
    numbers.push_back(request.sequence);
    EXPECT_TRUE(reply.send(request.bytes, {}));
  }
  std::vector<std::int64_t> numbers;

 private:
  VirtualRuntime& runtime_;
};

class Asking final : public TimerHandler {
 public:
  explicit Asking(Client& client, std::uint8_t name) : client_(client), name_(name) {}
  void on_tick(Nanoseconds) noexcept override {
    const std::array<std::uint8_t, 8> frame{0, 1, 0, 0, name_, 2, 3, 4};
    EXPECT_TRUE(client_.request(frame, std::array<std::uint8_t, 1>{9}));
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
    runtime_.create_timer(on, {"ask", 0, 10 * kMs, 1, 2, false}, asking.back());
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
