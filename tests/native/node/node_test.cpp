// perflab-node on the simulator, driven over its control channel as by perflab.
#include <gtest/gtest.h>
#include <spawn.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "base/control.h"
#include "domain_lock.h"
#include "graph/parse.h"
#include "graph/resolved.h"

namespace perflab {
namespace {

using nlohmann::json;
namespace fs = std::filesystem;

constexpr Nanoseconds kMs = 1'000'000;
// Only a failing test waits that long; the machine may be busy.
constexpr Nanoseconds kPatience = 60 * kNanosecondsPerSecond;

class Folder {
 public:
  Folder() {
    std::string pattern = (fs::temp_directory_path() / "perflab-node-XXXXXX").string();
    if (mkdtemp(pattern.data()) == nullptr) throw std::runtime_error("no temporary folder");
    path_ = pattern;
  }
  ~Folder() { fs::remove_all(path_); }
  Folder(const Folder&) = delete;
  Folder& operator=(const Folder&) = delete;
  [[nodiscard]] const fs::path& path() const { return path_; }

 private:
  fs::path path_;
};

json configuration(const json& graph, const std::string& process, std::uint32_t domain) {
  return {{"schema", 1},
          {"graph", graph},
          {"process", process},
          {"runtime", "dds"},
          {"middleware",
           {{"name", "shm"}, {"library", PERFLAB_SHM}, {"domain", domain}, {"options", json::object()}}},
          {"duration_ns", kNanosecondsPerSecond},
          {"sampling_ns", 100 * kMs},
          {"discovery_timeout_ns", kPatience}};
}

json resolved(const std::string& yaml) {
  return json::parse(graph::graph_to_json(graph::parse_graph({{"test.yaml", yaml, "test"}})).dump());
}

class Node {
 public:
  Node(const Folder& folder, const std::string& name, json config, const std::string& preload = {})
      : records_(folder.path() / (name + ".jsonl")) {
    config["records"] = records_.string();
    const fs::path file = folder.path() / (name + ".config.json");
    std::ofstream(file) << config;
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) throw std::runtime_error("socketpair");
    // So small that one or two progress lines fill it if nobody reads.
    for (const int end : ends) {
      const int smallest = 1;
      setsockopt(end, SOL_SOCKET, SO_SNDBUF, &smallest, sizeof smallest);
    }
    control_.emplace(ends[0]);
    const int for_node = 100;  // dup2 in the child leaves it open there
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], for_node);
    std::vector<std::string> arguments{PERFLAB_NODE, "--config", file.string(), "--control-fd",
                                       std::to_string(for_node)};
    std::vector<std::string> environment;
    for (char** variable = environ; *variable != nullptr; ++variable) environment.emplace_back(*variable);
    if (!preload.empty()) environment.push_back("LD_PRELOAD=" + preload);
    const int failed = posix_spawn(&pid_, PERFLAB_NODE, &actions, nullptr, pointers(arguments).data(),
                                   pointers(environment).data());
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    if (failed != 0) throw std::runtime_error("perflab-node cannot be started");
  }
  ~Node() {
    control_.reset();  // which ends the node
    if (pid_ > 0) wait();
  }
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;

  // The next line of one of these types; skips others.
  json expect(const std::string& type, const std::string& or_type = {}) {
    const measure::MonotonicClock clock;
    for (const Nanoseconds end = clock.now() + kPatience; clock.now() < end && !control_->closed();) {
      const auto line = control_->receive(100 * kMs);
      if (line && (line->at("type") == type || line->at("type") == or_type)) return *line;
      if (line && line->at("type") == "error") throw std::runtime_error(line->dump());
    }
    throw std::runtime_error("no line of type " + type);
  }
  void send(const json& line) { control_->send(line); }

  // From the end of discovery to the end of the process; returns the last progress line. Nothing may be lost,
  // so the queues of the graph must survive a stall of the machine.
  json run() {
    const json created = expect("created");
    expect("ready");
    const measure::MonotonicClock clock;
    // Far enough ahead for a busy machine: a node that is late fails.
    send({{"type", "start"},
          {"at_ns", clock.now() + 2 * kNanosecondsPerSecond},
          {"writers", created["writers"]}});
    json progress;
    const Nanoseconds end = clock.now() + kPatience;
    do {
      if (clock.now() > end) throw std::runtime_error("not everything arrived: " + progress.dump());
      progress = expect("progress");
    } while (progress["publishing"] || progress["completed"] != progress["deliveries_expected"]);
    send({{"type", "stop"}});
    expect("done");
    EXPECT_EQ(wait(), 0);
    return progress;
  }

  int wait() {
    int status = 0;
    waitpid(std::exchange(pid_, 0), &status, 0);
    return WIFEXITED(status) ? WEXITSTATUS(status) : -WTERMSIG(status);
  }

  [[nodiscard]] std::vector<json> records(const std::string& type) const {
    std::vector<json> list;
    std::ifstream file(records_);
    for (std::string line; std::getline(file, line) && !file.eof();) {  // the last may be unfinished
      json record = json::parse(line);
      if (record["type"] == type) list.push_back(std::move(record));
    }
    return list;
  }

 private:
  static std::vector<char*> pointers(std::vector<std::string>& texts) {
    std::vector<char*> list;
    for (std::string& text : texts) list.push_back(text.data());
    list.push_back(nullptr);
    return list;
  }

  fs::path records_;
  std::optional<Control> control_;
  pid_t pid_ = 0;
};

constexpr const char* kPair = R"(
name: pair
nodes:
  - name: talker
    publishers: [{topic: chatter, type: stamped1kb, period: 10ms, qos: {depth: 1000}}]
  - name: listener
    subscriptions: [{topic: chatter, type: stamped1kb, qos: {depth: 1000}}]
)";

// `serialize` and `deserialize` would be 0, which is not a measurement.
TEST(Node, InVirtualTimeNotEveryMessageIsEncodedForNoTimePassesMeanwhile) {
  const Folder folder;
  json graph = resolved(kPair);
  graph["serialization"] = "every";
  json config = configuration(graph, "pair", 0);
  config["runtime"] = "virtual";
  config["process"] = nullptr;
  Node node(folder, "virtual", config);
  std::string said;
  try {
    node.expect("created");
  } catch (const std::runtime_error& error) {
    said = error.what();
  }
  EXPECT_NE(said.find("serialization: the runtime virtual cannot do 'every'; right would be once"), std::string::npos)
      << said;
  EXPECT_EQ(node.wait(), 2);
}

// For messages between processes without a due time, it is looked up in shared memory.
TEST(Node, WithoutMemoryForTheScheduleAGraphThatNeedsItIsRefused) {
  const auto graph = [](const std::string& type, bool together) {
    const std::string talker = "{name: talker, publishers: [{topic: chatter, type: " + type + ", period: 10ms}]}";
    const std::string listener = "{name: listener, subscriptions: [{topic: chatter, type: " + type + "}]}";
    return resolved(together ? "name: pair\nprocesses:\n  - {name: a, nodes: [" + talker + ", " + listener +
                                   "]}\n  - {name: b, nodes: [{name: idle, timers: [{name: t, period: 1s, work: 1us}]}]}\n"
                             : "name: pair\nprocesses:\n  - {name: a, nodes: [" + talker + "]}\n  - {name: b, nodes: [" +
                                   listener + "]}\n");
  };
  const Folder folder;
  const conformance::DomainLock domain;
  const auto refusal = [&](const std::string& type, const std::string& process) {
    Node node(folder, process, configuration(graph(type, false), process, domain.id()));
    try {
      node.expect("created");
    } catch (const std::runtime_error& error) {
      EXPECT_EQ(node.wait(), 2);
      return std::string(error.what());
    }
    return std::string();
  };
  for (const auto& [process, other] : {std::pair{"a", "b"}, std::pair{"b", "a"}}) {
    for (const std::string type : {"array1k", "geometry_msgs/msg/Twist"}) {
      const std::string said = refusal(type, process);
      const std::string line = std::string("process ") + process + ", schedule_fd: missing; messages of " + type +
                               " on /chatter do not contain their due time, and process " + other +
                               " has the other end; right would be ";
      EXPECT_NE(said.find(line), std::string::npos) << said;
    }
    EXPECT_EQ(refusal("stamped1kb", process), "");
  }
  // Messages within the process need no shared memory.
  Node alone(folder, "alone", configuration(graph("array1k", true), "a", domain.id()));
  EXPECT_EQ(alone.expect("ready")["matched"], true);
}

// The middleware matches both, because they have the same name; each reports the difference before the start.
TEST(Node, TypesOfOneNameThatDifferBetweenProcessesAreWhatDiscoveryEndsWith) {
  const auto graph = [](const std::string& definition) {
    json one = resolved(R"(
name: pair
processes:
  - {name: a, nodes: [{name: talker, publishers: [{topic: chatter, type: stamped10b, period: 10ms}]}]}
  - {name: b, nodes: [{name: listener, subscriptions: [{topic: chatter, type: stamped10b}]}]}
)");
    for (const auto& [process, ends] : {std::pair{0, "publishers"}, std::pair{1, "subscriptions"}})
      one["processes"][process]["nodes"][0][ends][0]["type"] = "my_msgs/msg/Pair";
    one["processes"][0]["nodes"][0]["publishers"][0]["size_bytes"] = 4;
    one["interfaces"] = {{"my_msgs/msg/Pair", "perflab_msgs/Header header\n" + definition}};
    return one;
  };
  const Folder folder;
  const conformance::DomainLock domain;
  json a = configuration(graph("int32 a\n"), "a", domain.id()), b = configuration(graph("int32 b\n"), "b", domain.id());
  a["discovery_timeout_ns"] = b["discovery_timeout_ns"] = 2 * kNanosecondsPerSecond;
  Node talker(folder, "a", a), listener(folder, "b", b);
  for (Node* const node : {&talker, &listener}) {
    const json ready = node->expect("ready");
    EXPECT_EQ(ready["matched"], false);
    ASSERT_EQ(ready["unmatched"].size(), 1u) << ready;
    const auto line = ready["unmatched"][0].get<std::string>();
    EXPECT_TRUE(line.starts_with("topic /chatter: my_msgs/msg/Pair is RIHS01_")) << line;
    EXPECT_TRUE(line.ends_with("elsewhere; right would be the same definition on both sides")) << line;
  }
}

TEST(Node, ConditionsAreCountedApartAndMarkedInTheCheckpoint) {
  json graph = resolved(R"(
name: flooded
nodes:
  - name: talker
    publishers: [{topic: chatter, type: stamped1kb, period: 10ms, qos: {depth: 1000}}]
  - name: listener
    subscriptions: [{topic: chatter, type: stamped1kb, qos: {depth: 1000}}]
  - name: flood
    publishers: [{topic: chatter, type: stamped1kb, qos: {depth: 1000}}, {topic: noise, type: stamped10b}]
    timers: [{name: flood, period: 5ms, publish: [chatter, noise], overrun: skip}]
)");
  graph["processes"][0]["nodes"][2]["condition"] = "message_flood";
  const Folder folder;
  const conformance::DomainLock domain;
  Node node(folder, "flooded", configuration(graph, "flooded", domain.id()));
  const json progress = node.run();
  EXPECT_EQ(progress["sent"], 100);
  EXPECT_EQ(progress["deliveries_expected"], 100);
  EXPECT_EQ(progress["received"], 100);
  EXPECT_EQ(progress["completed"], 100);
  ASSERT_TRUE(progress["conditions"].is_object()) << progress;
  ASSERT_EQ(progress["conditions"].size(), 1u);
  const json& flood = progress["conditions"]["message_flood"];
  // The period may have been skipped on a busy machine, and is then counted in not_sent.
  EXPECT_EQ(flood["sent"].get<int>() + flood["not_sent"].get<int>(), 400);
  EXPECT_GT(flood["sent"], 0);
  // One of its two topics has a reader.
  EXPECT_EQ(flood["deliveries_expected"].get<int>(), flood["sent"].get<int>() / 2);
  EXPECT_GT(flood["received"], 0);

  ASSERT_FALSE(node.records("checkpoint").empty());
  const json checkpoint = node.records("checkpoint").back();
  std::vector<std::string> marked;
  for (const char* list : {"publishers", "edges"}) {
    for (const json& entry : checkpoint[list]) {
      const bool own = entry.value("publisher", entry.value("node", "")) == "/talker";
      EXPECT_EQ(entry.contains("condition"), !own) << entry["topic"];
      if (!own) marked.push_back(entry["condition"]);
    }
  }
  EXPECT_EQ(marked, (std::vector<std::string>(3, "message_flood")));
}

// perflab may be stopped, or wait for a disk, while its nodes measure.
TEST(Node, WritesCheckpointsWhileNobodyReadsItsProgress) {
  const Folder folder;
  const conformance::DomainLock domain;
  json config = configuration(resolved(kPair), "pair", domain.id());
  config["duration_ns"] = 600 * kNanosecondsPerSecond;
  config["checkpoint_ns"] = 50 * kMs;
  Node node(folder, "pair", config);
  const json created = node.expect("created");
  node.expect("ready");
  const measure::MonotonicClock clock;
  node.send({{"type", "start"},
             {"at_ns", clock.now() + 2 * kNanosecondsPerSecond},
             {"writers", created["writers"]}});
  // One line is about as long as the socket's capacity, and there is one per second.
  const auto is_written = [&](const char* type, std::size_t count) {
    const Nanoseconds end = clock.now() + kPatience;
    while (node.records(type).size() < count && clock.now() < end)
      std::this_thread::sleep_for(std::chrono::milliseconds(20));
    return node.records(type).size() >= count;
  };
  EXPECT_TRUE(is_written("progress", 6));
  const std::size_t written = node.records("checkpoint").size();
  EXPECT_TRUE(is_written("checkpoint", written + 3));
  // Afterwards perflab receives messages again.
  node.send({{"type", "stop"}});
  node.expect("progress");
  node.expect("done");
  EXPECT_EQ(node.wait(), 0);
}

TEST(Node, WithoutConditionsProgressDoesNotSpeakOfThem) {
  const Folder folder;
  const conformance::DomainLock domain;
  Node node(folder, "pair", configuration(resolved(kPair), "pair", domain.id()));
  EXPECT_FALSE(node.run().contains("conditions"));
}

// Another program publishes and subscribes to the same topic in the same domain.
TEST(Node, APeerTooManyIsNamedAndWaitedFor) {
  const Folder folder;
  const conformance::DomainLock domain;
  const json config = configuration(resolved(kPair), "pair", domain.id());
  std::optional<Node> stranger(std::in_place, folder, "stranger", config);
  stranger->expect("ready");
  const std::string tail = " of 1 writers: another program uses domain " + std::to_string(domain.id());
  std::vector<std::string> unmatched;
  const std::string expected = "/listener subscription /chatter: 2" + tail;
  // A node whose own endpoints match before they discover the stranger's is ready at once, correctly: then
  // another one is tried.
  std::optional<Node> node;
  json line = {{"type", "ready"}};
  for (int attempt = 0; attempt < 10 && line["type"] == "ready"; ++attempt) {
    node.emplace(folder, "pair" + std::to_string(attempt), config);
    line = node->expect("waiting", "ready");
  }
  ASSERT_EQ(line["type"], "waiting");
  unmatched = line["unmatched"].get<std::vector<std::string>>();
  for (int more = 0; more < 10 && std::ranges::find(unmatched, expected) == unmatched.end(); ++more)
    unmatched = node->expect("waiting")["unmatched"].get<std::vector<std::string>>();
  EXPECT_NE(std::ranges::find(unmatched, expected), unmatched.end()) << json(unmatched);
  stranger.reset();
  const json ready = node->expect("ready");
  EXPECT_TRUE(ready["matched"]);
  EXPECT_TRUE(ready["unmatched"].empty());
}

TEST(Node, WithoutPatienceItIsReadyAtOnceAndSaysWhatIsNotMatched) {
  const Folder folder;
  const conformance::DomainLock domain;
  const json graph = resolved(R"(
name: split
processes:
  - name: a
    nodes: [{name: talker, publishers: [{topic: chatter, type: stamped1kb, period: 10ms}]}]
  - name: b
    nodes: [{name: listener, subscriptions: [{topic: chatter, type: stamped1kb}]}]
)");
  json config = configuration(graph, "a", domain.id());
  config["discovery_timeout_ns"] = 0;
  Node node(folder, "a", config);
  const json ready = node.expect("ready");
  EXPECT_FALSE(ready["matched"]);
  EXPECT_EQ(ready["unmatched"], json::array({"/talker publisher /chatter: 0 of 1 readers"}));
}

TEST(Node, HiccupRecordsHowMuchLongerASleepTakes) {
  const Folder folder;
  const conformance::DomainLock domain;
  json config = configuration(resolved(kPair), "pair", domain.id());
  config["hiccup_ns"] = kMs;
  config["warmup_ns"] = 100 * kMs;
  Node node(folder, "pair", config);
  node.run();
  const json start = node.records("start").at(0);
  const json hiccup = node.records("checkpoint").back()["hiccup"];
  ASSERT_TRUE(hiccup.is_object());
  EXPECT_GT(hiccup["count"], 0);
  EXPECT_LE(hiccup["count"], 1'000);  // each sleep takes a millisecond at least
  EXPECT_EQ(hiccup["negative"], 0);   // and never less
  EXPECT_GE(hiccup["max_at_ns"], start["measured_from_ns"].get<Nanoseconds>() + kMs);
  // Waiting for a CPU and being woken late add up to the total, if the kernel reports both.
  const json waited = node.records("checkpoint").back()["hiccup_waited"];
  const json woken_late = node.records("checkpoint").back()["hiccup_woken_late"];
  ASSERT_EQ(waited.is_null(), !std::filesystem::exists("/proc/thread-self/schedstat"));
  if (waited.is_null()) return;
  EXPECT_EQ(waited["count"], hiccup["count"]);
  EXPECT_EQ(waited["sum"].get<Nanoseconds>() + woken_late["sum"].get<Nanoseconds>(),
            hiccup["sum"].get<Nanoseconds>());
  // All sleeps except the last one together are no longer than the measured part.
  const auto slept = hiccup["count"].get<Nanoseconds>() * kMs + hiccup["sum"].get<Nanoseconds>();
  EXPECT_LE(slept - hiccup["max"].get<Nanoseconds>(), kNanosecondsPerSecond);
  bool found = false;
  const json reading = node.records("threads").at(0);
  for (const json& thread : reading["threads"]) {
    if (thread["name"] != "hiccup") continue;
    found = true;
    EXPECT_EQ(thread["role"], "perflab");
  }
  EXPECT_TRUE(found);
}

TEST(Node, HiccupIsRefusedInVirtualTimeAndOutsideItsBounds) {
  const Folder folder;
  json config = configuration(resolved(kPair), "pair", 0);
  const auto error = [&] {
    Node node(folder, "pair", config);
    try {
      node.expect("created");
    } catch (const std::runtime_error& refused) {
      return std::pair(std::string(refused.what()), node.wait());
    }
    return std::pair(std::string(), node.wait());
  };
  config["hiccup_ns"] = 1;
  const auto [bounds, bad_input] = error();
  EXPECT_NE(bounds.find("hiccup_ns: must be from 10000 to 1000000000"), std::string::npos) << bounds;
  EXPECT_EQ(bad_input, 2);
  config["hiccup_ns"] = kMs;
  config["runtime"] = "virtual";
  config["process"] = nullptr;
  config["middleware"] = {{"name", "virtual"}, {"options", json::object()}};
  const auto [text, unsupported] = error();
  EXPECT_NE(text.find("virtual: hiccup_ns: "), std::string::npos) << text;
  EXPECT_EQ(unsupported, 3);
}

TEST(Node, WhatNobodyObservesIsNull) {
  const Folder folder;
  const conformance::DomainLock domain;
  Node node(folder, "pair", configuration(resolved(kPair), "pair", domain.id()));
  node.run();
  for (const json& checkpoint : node.records("checkpoint")) EXPECT_TRUE(checkpoint.at("hiccup").is_null());
  const std::vector<json> samples = node.records("resources");
  ASSERT_FALSE(samples.empty());
  for (const json& sample : samples) {
    EXPECT_TRUE(sample.at("allocations").is_null());
    for (const json& thread : sample["threads"]) EXPECT_TRUE(thread.at("allocations").is_null());
  }
}

TEST(Node, WritesWhatItCostAtBothEndsOfTheMeasuredPart) {
  const Folder folder;
  const conformance::DomainLock domain;
  Node node(folder, "pair", configuration(resolved(kPair), "pair", domain.id()));
  node.run();
  const std::vector<json> ends = node.records("cost");
  ASSERT_EQ(ends.size(), 2u);
  EXPECT_EQ(ends[0].at("when"), "start");
  EXPECT_EQ(ends[1].at("when"), "end");
  const json start = node.records("start").at(0);
  EXPECT_GE(ends[0]["at_ns"], start["measured_from_ns"]);
  EXPECT_GE(ends[1]["at_ns"], start["measured_until_ns"]);
  EXPECT_GT(ends[1]["cpu_ns"], ends[0]["cpu_ns"]);
  std::map<std::string, Nanoseconds> by_role;
  for (const json& thread : ends[1]["threads"])
    by_role[thread.at("role")] += thread["cpu_ns"].get<Nanoseconds>();
  EXPECT_GT(by_role["executor"], 0);
  EXPECT_GT(by_role["perflab"], 0);
  for (const json& end : ends) {
    for (const char* counter : {"cycles", "instructions", "cache_misses"}) {
      const json& counted = end.at(counter);
      if (counted.at("count").is_null()) {
        EXPECT_FALSE(counted.at("reason").get<std::string>().empty());
      } else {
        EXPECT_GT(counted["count"], 0);
        EXPECT_LE(counted["running_ns"], counted["enabled_ns"]);
      }
    }
  }
}

#ifdef PERFLAB_PRELOAD
TEST(Node, AllocationsAreInTheResourcesWhereTheyAreCounted) {
  const Folder folder;
  const conformance::DomainLock domain;
  Node node(folder, "pair", configuration(resolved(kPair), "pair", domain.id()), PERFLAB_PRELOAD);
  node.run();
  const std::vector<json> samples = node.records("resources");
  ASSERT_GT(samples.size(), 1u);
  std::uint64_t previous = 0;
  for (const json& sample : samples) {
    const json& allocations = sample["allocations"];
    ASSERT_TRUE(allocations.is_object()) << sample;
    const auto count = allocations["count"].get<std::uint64_t>();
    EXPECT_GT(count, previous);  // the sampler itself allocates
    EXPECT_LE(allocations["frees"], count);
    EXPECT_GE(allocations["bytes"], count);
    previous = count;
    for (const json& thread : sample["threads"])
      EXPECT_TRUE(thread["allocations"].is_number_unsigned()) << thread;
  }
  std::uint64_t of_threads = 0;
  for (const json& thread : samples[0]["threads"]) of_threads += thread["allocations"].get<std::uint64_t>();
  EXPECT_GT(of_threads, 0u);
}
#endif

}  // namespace
}  // namespace perflab
