// Messages between perflab's own runtime and rclcpp, in two processes, both ways: equal field by field. And goals of actions.
//
//   runtime_conformance_between --plugin FILE --library FILE --rmw NAME [GoogleTest's options]
//
// The other process is this program with `--side ros --domain N --structs on|off`.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cstdio>
#include <deque>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "../middleware/domain_lock.h"
#include "../middleware/eventually.h"
#include "measure/clock.h"
#include "message/format.h"
#include "message/object.h"
#include "middleware/host/plugin.h"
#include "middleware/types.h"
#include "runtime/dds/dds_runtime.h"
#include "runtime/plugin.h"

namespace perflab::runtime::conformance {
namespace {

using perflab::conformance::DomainLock;
using perflab::conformance::eventually;

struct Sample {
  const char* type;
  std::uint32_t length;  // of its bulk, where it has one
};
// perflab's own, as large as they come; then those of ROS 2: sequences and texts within sequences, and what says nothing
// of itself.
constexpr std::array kSamples{Sample{"struct32k", 0},
                              Sample{"point_cloud1m", 0},
                              Sample{"radar_track", 0},
                              Sample{"stamped1mb", 0},
                              Sample{"unbounded_string", 3'000},
                              Sample{"bounded_sequence64k", 65'536},
                              Sample{"sensor_msgs/msg/PointCloud2", 1'000'003},
                              Sample{"sensor_msgs/msg/MultiEchoLaserScan", 17},
                              Sample{"sensor_msgs/msg/JointState", 5},
                              Sample{"rcl_interfaces/msg/ParameterEvent", 9},
                              Sample{"geometry_msgs/msg/Twist", 0},
                              Sample{"std_msgs/msg/String", 40},
                              Sample{"std_msgs/msg/String", 0}};
constexpr std::uint64_t kMessages = 5;  // of each, each way

message::Formats& formats() {
  static message::Formats all;
  return all;
}

// The message of that number, which the other side knows as well.
message::Object made(const message::Type& type, const Sample& sample, std::uint64_t number) {
  message::Object object(type);
  message::fill(object, sample.length, number + 1);
  return object;
}

class Sink final : public EventSink {
 public:
  explicit Sink(std::atomic<std::size_t>& failures) : failures_(failures) {}
  void on_event(const perflab_event&) noexcept override {}
  void on_write_failed(Nanoseconds, const char* text) noexcept override { failed(text); }
  void on_failure(Nanoseconds, const char* text) noexcept override { failed(text); }

 private:
  void failed(const char* text) noexcept {
    std::fprintf(stderr, "%s\n", text);
    failures_.fetch_add(1);
  }
  std::atomic<std::size_t>& failures_;
};

// Compares what comes with what should, one after the other.
class Comparing final : public MessageHandler {
 public:
  Comparing(const Sample& sample, const message::Format& format, std::atomic<std::size_t>& failures)
      : sample_(sample), format_(format), failures_(failures) {}

  void on_message(const Delivery& delivery) noexcept override {
    message::Object got(*format_.type);
    const bool is_one = delivery.object != nullptr
                            ? message::assign(*format_.type, delivery.object, got.data())
                            : format_.codec.decode(delivery.bytes, got.data());
    const std::uint64_t number = count_.load();
    if (!is_one || !(got == made(*format_.type, sample_, number))) {
      std::fprintf(stderr, "message %u of %s is another one than was sent\n", static_cast<unsigned>(number),
                   format_.name.c_str());
      failures_.fetch_add(1);
    }
    count_.fetch_add(1);
  }
  std::uint64_t count() const { return count_; }

 private:
  const Sample& sample_;
  const message::Format& format_;
  std::atomic<std::size_t>& failures_;
  std::atomic<std::uint64_t> count_{0};
};

// A client of the other side's action and a server for it: one goal succeeds, the client cancels the other one.
class Acting final : public ActionClientHandler, public ActionServerHandler {
 public:
  explicit Acting(std::atomic<std::size_t>& failures) : failures_(failures) {}

  void create(Runtime& runtime, std::size_t executor, const std::string& own, const std::string& other) {
    ActionSettings settings{.action = "/of_" + own + "/act", .types = &types_};
    server_ = &runtime.create_action_server(executor, settings, *this);
    settings.action = "/of_" + other + "/act";
    client_ = &runtime.create_action_client(executor, settings, *this);
  }
  [[nodiscard]] bool matched() { return server_->matched() == 1 && client_->matched() == 1; }
  void begin() {
    for (std::uint8_t goal = 1; goal <= 2; ++goal)
      expect(client_->send_goal(id_of(goal), content(*types_.goal, goal).data()), "a goal was not sent");
  }
  // Ends what the other side has called off.
  [[nodiscard]] bool done() {
    if (called_off_ != nullptr && called_off_->is_canceling())
      expect(called_off_->canceled(content(*types_.result, 2).data()), "a goal was not ended");
    return results_ == 2 && feedback_ == 2 && cancels_ == 1 && served_ == 2 && called_off_ != nullptr &&
           is_terminal(called_off_->status());
  }

  void on_goal_answer(const GoalAnswer& answer) noexcept override {
    expect(answer.accepted, "a goal was rejected");
    if (answer.id == id_of(2)) expect(client_->cancel_goal(answer.id), "a goal was not cancelled");
  }
  void on_feedback(const GoalFeedback& feedback) noexcept override {
    expect(feedback.id == id_of(1) && is(*types_.feedback, feedback.feedback, 10 + feedback_), "other feedback");
    ++feedback_;
  }
  void on_result(const GoalResult& result) noexcept override {
    const bool first = result.id == id_of(1);
    expect(result.status == (first ? GoalStatus::kSucceeded : GoalStatus::kCanceled), "another status");
    expect(is(*types_.result, result.result, first ? 1 : 2), "another result");
    ++results_;
  }
  void on_cancel_answer(const CancelAnswer& answer) noexcept override {
    expect(answer.returned == CancelReturn::kNone && answer.canceling.size() == 1, "another answer to a cancel");
    ++cancels_;
  }
  GoalResponse on_goal(const GoalRequest& request) noexcept override {
    expect(is(*types_.goal, request.goal, request.id[0]), "another goal");
    return GoalResponse::kAcceptAndExecute;
  }
  void on_accepted(std::shared_ptr<ServerGoal> goal) noexcept override {
    if (goal->id() == id_of(2)) {
      called_off_ = std::move(goal);
    } else {
      for (std::uint64_t i = 0; i < 2; ++i)
        expect(goal->publish_feedback(content(*types_.feedback, 10 + i).data()), "feedback was not sent");
      expect(goal->succeed(content(*types_.result, 1).data()), "a goal did not succeed");
    }
    ++served_;
  }
  CancelResponse on_cancel(ServerGoal&) noexcept override { return CancelResponse::kAccept; }
  void on_forgotten(const GoalId&) noexcept override { expect(false, "a goal was forgotten"); }

 private:
  static GoalId id_of(std::uint8_t goal) { return GoalId{goal, 1, 2, 3}; }
  static message::Object content(const message::Type& type, std::uint64_t number) {
    message::Object object(type);
    message::fill(object, 100, number);
    return object;
  }
  static bool is(const message::Type& type, const void* object, std::uint64_t number) {
    return message::Object(type, object) == content(type, number);
  }
  void expect(bool so, const char* otherwise) noexcept {
    if (so) return;
    std::fprintf(stderr, "actions: %s\n", otherwise);
    failures_.fetch_add(1);
  }

  const message::ActionTypes& types_ = *formats().find_action("stamped");
  std::atomic<std::size_t>& failures_;
  ActionServer* server_ = nullptr;
  ActionClient* client_ = nullptr;
  std::shared_ptr<ServerGoal> called_off_;
  std::atomic<std::uint64_t> results_{0}, feedback_{0}, cancels_{0}, served_{0};
};

// One side: sends all messages, compares those of the other, and returns how much was wrong. `both_done` is called when
// everything has come; until it returns the other side may need this one.
template <typename Open, typename Done>
std::size_t exchange(const std::string& own, const std::string& other, bool structs, const Open& open,
                     const Done& both_done) {
  std::atomic<std::size_t> failures{0};
  Sink sink(failures);
  const measure::MonotonicClock clock;
  std::deque<Comparing> handlers;
  Acting acting(failures);
  const std::unique_ptr<Runtime> runtime = open(clock, sink);
  const std::size_t executor = runtime->add_executor({.kind = ExecutorKind::kSingleThreaded, .name = "between"});
  runtime->name_group(0, {.node_namespace = "/", .name = own, .participant = 0, .executor = executor});
  std::vector<Publisher*> publishers;
  std::vector<Subscription*> subscriptions;
  for (std::size_t i = 0; i < kSamples.size(); ++i) {
    const message::Format& format = *formats().find(kSamples[i].type);
    EndpointSettings settings;
    settings.ros_type = format.type->name;
    settings.type = format.type;
    settings.fixed_size = format.codec.fixed_size();
    settings.qos = middleware::default_qos();
    settings.qos.depth = 100;
    settings.topic = "/of_" + other + "/topic_" + std::to_string(i);
    Comparing& handler = handlers.emplace_back(kSamples[i], format, failures);
    subscriptions.push_back(&runtime->create_subscription(executor, settings, handler));
    settings.topic = "/of_" + own + "/topic_" + std::to_string(i);
    publishers.push_back(&runtime->create_publisher(settings));
  }
  acting.create(*runtime, executor, own, other);
  const auto one = [](auto* endpoint) { return endpoint->matched() == 1; };
  if (!eventually([&] { return std::ranges::all_of(subscriptions, one) && std::ranges::all_of(publishers, one) &&
                           acting.matched(); })) {
    std::fprintf(stderr, "%s does not find the other side\n", own.c_str());
    return 1;
  }
  runtime->start(clock.now());
  acting.begin();
  for (std::uint64_t number = 0; number < kMessages; ++number) {
    for (std::size_t i = 0; i < kSamples.size(); ++i) {
      const message::Format& format = *formats().find(kSamples[i].type);
      message::Object object = made(*format.type, kSamples[i], number);
      bool sent = false;
      if (structs) {
        Nanoseconds serialize_ns = kUnknownTime;
        void* const prepared = publishers[i]->prepare_object(object);
        sent = prepared != nullptr && publishers[i]->publish_object(format.codec, prepared, 0, serialize_ns);
      } else {
        std::vector<std::uint8_t> bytes(format.codec.encoded_size(object.data()));
        format.codec.encode(object.data(), bytes);
        sent = publishers[i]->publish({{}, {}, bytes});
      }
      if (!sent) failures.fetch_add(1);
    }
  }
  const bool all = eventually(
      [&] { return std::ranges::all_of(handlers, [](const Comparing& h) { return h.count() >= kMessages; }); });
  if (!all) {
    for (std::size_t i = 0; i < kSamples.size(); ++i) {
      if (handlers[i].count() < kMessages)
        std::fprintf(stderr, "%s: %u of %u messages of %s\n", own.c_str(), static_cast<unsigned>(handlers[i].count()),
                     static_cast<unsigned>(kMessages), kSamples[i].type);
    }
    failures.fetch_add(1);
  }
  if (!eventually([&] { return acting.done(); })) {
    std::fprintf(stderr, "%s: not all goals have ended\n", own.c_str());
    failures.fetch_add(1);
  }
  both_done();
  runtime->stop();
  return failures;
}

struct Asked {
  std::string plugin;
  std::string library;
  std::string rmw;
  std::string side;
  std::uint32_t domain = 0;
  bool structs = true;
};
Asked asked;
std::string program;

// The other process: says that it is done by a byte on its output, and ends when its input does.
int be_ros() {
  const auto open = [](const measure::Clock& clock, EventSink& sink) {
    static const Plugin plugin = Plugin::load(asked.library);
    return plugin.open(
        {.middleware = "rclcpp/" + asked.rmw, .domain = asked.domain, .participants_expected = 2, .structs = asked.structs},
        clock, sink);
  };
  const auto both_done = [] {
    char byte = '.';
    static_cast<void>(!write(STDOUT_FILENO, &byte, 1));
    static_cast<void>(!read(STDIN_FILENO, &byte, 1));
  };
  try {
    return exchange("ros", "dds", asked.structs, open, both_done) == 0 ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}

class Child {
 public:
  Child(std::uint32_t domain, bool structs) {
    std::array<int, 2> to{}, from{};
    EXPECT_TRUE(pipe2(to.data(), O_CLOEXEC) == 0 && pipe2(from.data(), O_CLOEXEC) == 0);
    const std::string number = std::to_string(domain);
    const std::array<const char*, 12> words{program.c_str(), "--side",       "ros",         "--domain",
                                            number.c_str(),  "--structs",    structs ? "on" : "off",
                                            "--library",     asked.library.c_str(),         "--rmw",
                                            asked.rmw.c_str(), nullptr};
    pid_ = fork();
    if (pid_ == 0) {
      dup2(to[0], STDIN_FILENO);
      dup2(from[1], STDOUT_FILENO);
      execv(program.c_str(), const_cast<char* const*>(words.data()));
      _exit(127);
    }
    close(to[0]);
    close(from[1]);
    to_ = to[1];
    from_ = from[0];
  }
  Child(const Child&) = delete;
  Child& operator=(const Child&) = delete;
  ~Child() { end(); }

  // Until it has everything, or has ended.
  void wait_until_done() const {
    char byte = 0;
    while (read(from_, &byte, 1) < 0 && errno == EINTR) {
    }
  }
  // Its exit code.
  int end() {
    if (pid_ <= 0) return 0;
    close(to_);
    close(from_);
    int status = 0;
    waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  }

 private:
  pid_t pid_ = 0;
  int to_ = -1;
  int from_ = -1;
};

class Between : public testing::TestWithParam<std::pair<bool, bool>> {};

TEST_P(Between, DdsAndRclcppEveryFieldOfEveryMessageIsTheSame) {
  const auto [own_structs, their_structs] = GetParam();
  const DomainLock domain;
  Child ros(domain.id(), their_structs);
  const auto open = [&](const measure::Clock& clock, EventSink& sink) {
    middleware::ParticipantSettings participant;
    participant.domain = domain.id();
    participant.participants_expected = 2;
    return std::make_unique<DdsRuntime>(middleware::Plugin::load(asked.plugin), participant, DdsSettings{}, clock, sink);
  };
  EXPECT_EQ(exchange("dds", "ros", own_structs, open, [&] { ros.wait_until_done(); }), 0u);
  EXPECT_EQ(ros.end(), 0) << "what rclcpp got was something else, see above";
}

INSTANTIATE_TEST_SUITE_P(, Between,
                         testing::Values(std::pair(true, true), std::pair(false, true), std::pair(true, false),
                                         std::pair(false, false)),
                         [](const auto& info) {
                           return std::string(info.param.first ? "structs" : "encoded") +
                                  (info.param.second ? "_and_structs" : "_and_encoded");
                         });

void set(const std::string& name, const std::string& value) {
  if (name == "--plugin") asked.plugin = value;
  if (name == "--library") asked.library = value;
  if (name == "--rmw") asked.rmw = value;
  if (name == "--side") asked.side = value;
  if (name == "--domain") asked.domain = static_cast<std::uint32_t>(std::stoul(value));
  if (name == "--structs") asked.structs = value == "on";
}

}  // namespace
}  // namespace perflab::runtime::conformance

int main(int argc, char** argv) {
  namespace conformance = perflab::runtime::conformance;
  testing::InitGoogleTest(&argc, argv);
  conformance::program = argv[0];
  for (int i = 1; i + 1 < argc; i += 2) conformance::set(argv[i], argv[i + 1]);
  return conformance::asked.side == "ros" ? conformance::be_ros() : RUN_ALL_TESTS();
}
