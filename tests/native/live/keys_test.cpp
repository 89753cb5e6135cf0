// Keyed topics, on each middleware with instances: a history keeps the last messages of each instance.
#include <filesystem>
#include <set>
#include <string>
#include <vector>

#include "domain_lock.h"
#include "eventually.h"
#include "message/names.h"
#include "side.h"

namespace perflab::graph {
namespace {

using conformance::eventually;

constexpr const char* kTalker = R"(
name: pair
keyed: true
processes:
  - {name: a, nodes: [{name: talker, publishers: [{topic: chatter, type: TYPE, size: 100, period: 10ms, instances: 7}]}]}
  - {name: b, nodes: [{name: listeners, number: 2, subscriptions: [{topic: chatter, type: TYPE}]}]}
)";
// The key comes after a field of variable length.
constexpr const char* kType = "my_msgs/msg/Keyed";
constexpr const char* kDefinition = "uint8[] data\nuint16 number  # @key\nint64 time\nuint64 id\n";

struct Seen {
  std::uint16_t instance;
  std::uint64_t id;
  bool operator<(const Seen& other) const { return instance < other.instance; }
};

class Keys : public testing::TestWithParam<std::tuple<std::string, bool>> {
 protected:
  // The key of a type, as the host gives it to the plug-in.
  static perflab_key as_c(const message::Key& key) {
    return {.extract = nullptr,  // never called
            .hash =
                [](const void* context, perflab_form, const perflab_bytes* parts, std::size_t count, std::uint8_t* hash) {
                  std::vector<std::span<const std::uint8_t>> pieces;
                  for (std::size_t i = 0; i < count; ++i)
                    pieces.emplace_back(static_cast<const std::uint8_t*>(parts[i].data), parts[i].size);
                  message::KeyHash found{};
                  if (!static_cast<const message::Key*>(context)->hash(pieces, message::Key::In::kMessage, found))
                    return false;
                  std::ranges::copy(found, hash);
                  return true;
                },
            .context = &key};
  }

  conformance::DomainLock domain_;
  measure::MonotonicClock clock_;
  perflab_host host_{[](void* clock) { return static_cast<measure::MonotonicClock*>(clock)->now(); }, nullptr, &clock_};
  middleware::Plugin plugin_ = middleware::Plugin::load(std::get<0>(GetParam()));
};

TEST_P(Keys, TellThePublishersMessagesApartInTurn) {
  if (!plugin_.capabilities().instances) {
    EXPECT_THROW(Side(plugin_, domain_.id(), kTalker, kType, kDefinition, 0), Unsupported);
    GTEST_SKIP() << "the plug-in has no instances";
  }
  Side talker(plugin_, domain_.id(), kTalker, kType, kDefinition, 0, {.structs = std::get<1>(GetParam())});
  const message::Format& format = talker.format(kType);
  const perflab_key key = as_c(*format.key);
  // Instead of the listeners: one reader that takes everything, and one that takes when all have come.
  middleware::Participant listener = plugin_.open(host_, {.domain = domain_.id(), .participants_expected = 4});
  const auto reader = [&](std::int32_t depth) {
    perflab_qos qos = middleware::default_qos();
    qos.depth = depth;
    return listener.create_reader(
        {.topic = "rt/chatter", .type = message::dds_type_name(kType), .qos = qos, .key = &key});
  };
  middleware::Reader slow = reader(1), complete = reader(100);
  ASSERT_TRUE(eventually([&] { return slow.matched_writers() == 1 && complete.matched_writers() == 1; }));
  ASSERT_TRUE(eventually([&] { return talker.live().unmatched().empty(); }));
  talker.live().start(clock_.now() + 50'000'000);
  std::size_t all = 0;
  EXPECT_TRUE(eventually([&] {
    perflab_sample sample{};
    perflab_error error{};
    for (; complete.take(sample, error) == PERFLAB_OK; ++all) complete.return_sample(sample);
    return all == 100;
  }));
  EXPECT_EQ(talker.live().totals().sent, 100u);
  // Of a hundred messages with seven keys, the last seven.
  std::set<Seen> seen;
  EXPECT_TRUE(eventually([&] {
    perflab_sample sample{};
    perflab_error error{};
    while (slow.take(sample, error) == PERFLAB_OK) {
      message::Object object(*format.type);
      EXPECT_TRUE(format.codec.decode({sample.data, sample.size}, object.data()));
      const auto* const bytes = static_cast<const std::byte*>(object.data());
      Seen one{};
      std::memcpy(&one.instance, bytes + format.type->member("number")->offset, sizeof one.instance);
      std::memcpy(&one.id, bytes + format.type->member("id")->offset, sizeof one.id);
      EXPECT_TRUE(seen.insert(one).second);
      slow.return_sample(sample);
    }
    return seen.size() == 7;
  }));
  std::set<std::uint64_t> ids;
  for (const Seen& one : seen) {
    EXPECT_LT(one.instance, 7u);
    ids.insert(one.id & 0xffff);
  }
  EXPECT_EQ(ids, (std::set<std::uint64_t>{93, 94, 95, 96, 97, 98, 99}));
}

INSTANTIATE_TEST_SUITE_P(, Keys, testing::Combine(testing::Values(PERFLAB_PLUGINS), testing::Bool()),
                         [](const auto& info) {
                           return std::filesystem::path(std::get<0>(info.param)).stem().string() +
                                  (std::get<1>(info.param) ? "_every" : "_once");
                         });

}  // namespace
}  // namespace perflab::graph
