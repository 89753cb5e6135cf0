// Truncated messages, on each middleware that connects processes: they are counted, whether or not they are
// decoded or relayed.
#include <filesystem>
#include <span>
#include <string>
#include <vector>

#include "domain_lock.h"
#include "eventually.h"
#include "message/names.h"
#include "side.h"

namespace perflab::graph {
namespace {

using conformance::eventually;

constexpr const char* kSink = R"(
name: pair
processes:
  - {name: a, nodes: [{name: talker, publishers: [{topic: chatter, type: TYPE, size: 64, period: 10ms}]}]}
  - {name: b, nodes: [{name: listener, subscriptions: [{topic: chatter, type: TYPE, qos: {depth: 100}}]}]}
)";

class CutMessages : public testing::TestWithParam<std::string> {
 protected:
  // Messages without a stamp: each truncated one is malformed, and a whole one only has an unknown time.
  void expect_counted(bool structs) {
    const std::string type = "my_msgs/msg/Parts";
    Side listener(plugin_, domain_.id(), kSink, type, "string name\nuint8[] data\nfloat64 last\n", 1, {.structs = structs});
    middleware::Writer writer =
        talker_.create_writer({.topic = "rt/chatter", .type = message::dds_type_name(type), .qos = qos()});
    ASSERT_TRUE(eventually([&] { return listener.live().unmatched().empty() && writer.matched_readers() == 1; }));
    // It replaces the publisher of the graph.
    const std::vector<WriterName> known{{"/talker", "/chatter", writer.identity()}};
    listener.live().set_writers(known);
    listener.live().start(clock_.now());
    const std::vector<std::uint8_t> whole = message::encode_filled(listener.format(type), 64).bytes;
    std::uint64_t cut = 0;
    for (std::size_t size = message::kEncapsulationBytes; size < whole.size(); size += 8, ++cut)
      send(writer, std::span(whole).first(size));
    send(writer, whole);
    EXPECT_TRUE(eventually([&] { return listener.live().forgotten_messages() == 1; }));
    EXPECT_EQ(listener.live().malformed_messages(), cut);
    listener.stop();
    EXPECT_EQ(listener.live().edges().at(0).recorder->sequence().received(), 0u);
  }

  static perflab_qos qos() {
    perflab_qos qos = middleware::default_qos();
    qos.depth = 100;
    return qos;
  }
  static void send(middleware::Writer& writer, std::span<const std::uint8_t> bytes) {
    const perflab_bytes part{bytes.data(), bytes.size()};
    perflab_error error{};
    EXPECT_EQ(writer.write({&part, 1}, error), PERFLAB_OK) << error.text;
  }

  conformance::DomainLock domain_;
  measure::MonotonicClock clock_;
  perflab_host host_{[](void* clock) { return static_cast<measure::MonotonicClock*>(clock)->now(); }, nullptr, &clock_};
  middleware::Plugin plugin_ = middleware::Plugin::load(GetParam());
  middleware::Participant talker_ = plugin_.open(host_, {.domain = domain_.id(), .participants_expected = 4});
};

TEST_P(CutMessages, AreCountedWhereMessagesAreEncodedOnce) { expect_counted(false); }
TEST_P(CutMessages, AreCountedWhereEveryMessageIsDecoded) { expect_counted(true); }

INSTANTIATE_TEST_SUITE_P(, CutMessages, testing::Values(PERFLAB_PLUGINS), [](const auto& info) {
  return std::filesystem::path(info.param).stem().string();
});

}  // namespace
}  // namespace perflab::graph
