// From creation to the end: what starts, what stops, what is refused, what a runtime says of itself.
#include <nlohmann/json.hpp>

#include "lab.h"

namespace perflab::runtime::conformance {
namespace {

class Life : public AnyExecutor {
 protected:
  struct System {
    Inbox* inbox;
    Inbox* replies;
    Ticks* ticks;
    Publisher* publisher;
    Client* client;
  };
  // One of everything.
  System make() {
    const ServiceKind kind = service_kind("stamped10b");
    const Node on = node();
    System system{};
    system.inbox = &subscribe(on, "/a", kSmall);
    system.publisher = &publisher_of(on, "/a", kSmall);
    serve(on, "/add", kind);
    system.replies = &inbox(kind.reply);
    const Node asking = node();
    system.client = &client(asking, "/add", kind, *system.replies);
    system.ticks = &timer(on, 1ms, 1, 1'000'000'000);
    return system;
  }
};

TEST_P(Life, EndsWithoutAStart) {
  const System system = make();
  ASSERT_TRUE(matched());
  EXPECT_TRUE(send(*system.publisher, kSmall, 0));
  runtime().stop();
  runtime().stop();
  close();
  EXPECT_EQ(system.inbox->entered() + system.ticks->count() + system.replies->entered(), 0u);
}

TEST_P(Life, EndsWithoutAStartOrAStop) {
  make();
  std::unique_ptr<Runtime> ended = release();
  ended.reset();
}

TEST_P(Life, NothingRunsAfterTheStop) {
  const System system = make();
  const ServiceKind kind = service_kind("stamped10b");
  std::atomic<bool> stopped{false};
  std::atomic<bool> late{false};
  const auto note = [&] {
    if (stopped) late = true;
  };
  std::uint64_t number = 0;
  system.inbox->on_each = [&](const Received&) { note(); };
  system.replies->on_each = [&](const Received&) { note(); };
  system.ticks->on_each = [&](Nanoseconds) {
    note();
    EXPECT_TRUE(send(*system.publisher, kSmall, number));
    EXPECT_TRUE(request(*system.client, kind, number++));
  };
  ASSERT_TRUE(matched());
  ASSERT_TRUE(eventually([&] { return system.client->matched() == 1; }));
  start();
  EXPECT_TRUE(eventually([&] {
    return system.inbox->count() > 20 && system.ticks->count() > 20 && system.replies->count() > 20;
  }));
  runtime().stop();
  stopped = true;
  const std::array<std::size_t, 3> at_the_end{system.inbox->count(), system.ticks->count(),
                                              system.replies->count()};
  std::this_thread::sleep_for(20ms);  // so that what goes on is seen
  runtime().stop();
  EXPECT_FALSE(late);
  EXPECT_EQ(
      (std::array<std::size_t, 3>{system.inbox->count(), system.ticks->count(), system.replies->count()}),
      at_the_end);
  EXPECT_EQ(system.inbox->count(), system.inbox->entered());
  const Nanoseconds after = now();
  EXPECT_GE(now(), after);
}

TEST_P(Life, TheStopWaitsForTheCallbackThatRuns) {
  const System system = make();
  Gate gate;
  std::atomic<bool> returned{false};
  system.inbox->on_each = [&](const Received& one) {
    if (one.number != 0) return;
    gate.pass();
    returned = true;
  };
  at(10ms, [&] { EXPECT_TRUE(send(*system.publisher, kSmall, 0)); });
  ASSERT_TRUE(matched());
  start();
  ASSERT_TRUE(eventually([&] { return system.inbox->entered() == 1; }));
  std::atomic<bool> waited{false};
  std::thread controller([&] {
    runtime().stop();
    waited = returned.load();
  });
  std::this_thread::sleep_for(20ms);  // so that stop() has something to wait for
  gate.open();
  controller.join();
  EXPECT_TRUE(waited);
}

TEST_P(Life, ASecondRuntimeComesAfterTheFirst) {
  for (std::uint64_t life = 0; life < 3; ++life) {
    if (life > 0) open({.intra_process = intra_process()});
    Inbox& inbox = subscribe(node(), "/a", kSmall);
    Publisher& writer = publisher("/a", kSmall);
    at(10ms, [&] { EXPECT_TRUE(send(writer, kSmall, life)); });
    ASSERT_TRUE(matched());
    start();
    EXPECT_TRUE(eventually([&] { return inbox.count() >= 1; }));
    runtime().stop();
    EXPECT_EQ(inbox.numbers(), range(life, life + 1));
  }
}

INSTANTIATE_TEST_SUITE_P(, Life, testing::ValuesIn(all_executors()), case_name);

class Description : public Lab {};

TEST_F(Description, SaysWhatCarriesTheMessages) {
  for (const bool intra_process : {false, true}) {
    if (intra_process && !subject().abilities().intra_process) continue;
    open({.intra_process = intra_process});
    const nlohmann::json description = nlohmann::json::parse(runtime().describe(), nullptr, false);
    ASSERT_TRUE(description.is_object()) << runtime().describe();
    ASSERT_TRUE(description.contains("name") && description["name"].is_string()) << description;
    EXPECT_FALSE(description["name"].get<std::string>().empty());
    ASSERT_TRUE(description.contains("version")) << description;
    EXPECT_TRUE(description["version"].is_string() || description["version"].is_null()) << description;
    ASSERT_TRUE(description.contains("effective")) << description;
    EXPECT_TRUE(description["effective"].is_object()) << description;
  }
}

class Refusals : public Lab {
 protected:
  Refusals() { open(); }
};

TEST_F(Refusals, ExecutorsThatItDoesNotHave) {
  const std::vector<ExecutorKind> known = subject().executors();
  for (const ExecutorKind kind :
       {ExecutorKind::kInline, ExecutorKind::kSingleThreaded, ExecutorKind::kStaticSingleThreaded,
        ExecutorKind::kEvents, ExecutorKind::kPolling, ExecutorKind::kMultiThreaded, ExecutorKind::kPriority,
        ExecutorKind::kLet}) {
    SCOPED_TRACE(to_text(kind));
    if (std::ranges::count(known, kind) == 0) {
      expect_error([&] { executor(kind, 2, "executor_x"); }, Error::Kind::kUnsupported,
                   {"executor_x", to_text(kind)});
    } else if (subject().may_lack(kind)) {
      try {
        executor(kind);
      } catch (const Error& error) {
        EXPECT_EQ(error.kind(), Error::Kind::kUnsupported) << error.what();
        EXPECT_NE(std::string(error.what()).find(to_text(kind)), std::string::npos) << error.what();
      }
    } else {
      EXPECT_NO_THROW(executor(kind));
    }
  }
}

TEST_F(Refusals, ThreadsThatItCannotSchedule) {
  if (abilities().schedules_threads) return;
  expect_error(
      [&] {
        executor(ExecutorKind::kSingleThreaded, 1, "executor_x",
                 {.policy = std::nullopt, .priority = 0, .cpus = {0}});
      },
      Error::Kind::kUnsupported, {"executor_x"});
}

TEST_F(Refusals, TypesThatDoNotExist) {
  if (!abilities().checks_types) return;  // then any name will do
  const Node on = node(ExecutorKind::kSingleThreaded);
  EndpointSettings unknown = endpoint(on, "/a", kSmall, keep_last(10));
  ServiceSettings service_of_unknown = service(on, "/add", service_kind("stamped10b"));
  for (const char* package : {"perflab_msgs", "no_such_package"}) {
    unknown.ros_type = std::string(package) + "/msg/NoSuchType";
    service_of_unknown.ros_type = std::string(package) + "/srv/NoSuchType";
    Inbox& handler = inbox(kSmall);
    Echo echo(runtime().clock(), service_kind("stamped10b"));
    for (const std::function<void()>& create : std::vector<std::function<void()>>{
             [&] { runtime().create_publisher(unknown); },
             [&] { runtime().create_subscription(on.executor, unknown, handler); },
             [&] { runtime().create_client(on.executor, service_of_unknown, handler); },
             [&] { runtime().create_server(on.executor, service_of_unknown, echo); }}) {
      try {
        create();
        ADD_FAILURE() << "not refused";
      } catch (const Error& error) {
        const std::string text = error.what();
        EXPECT_NE(text.find("NoSuchType"), std::string::npos) << text;
        EXPECT_EQ(text.find('\n'), std::string::npos) << text;
      }
    }
  }
}

}  // namespace
}  // namespace perflab::runtime::conformance
