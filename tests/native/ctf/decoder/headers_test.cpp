// Event headers and time stamps.
#include <gtest/gtest.h>

#include <random>

#include "ctf/decoder.h"
#include "made_trace.h"

namespace perflab::ctf::test {
namespace {

TEST(Clock, WrapsOnceWhereTheReadingGotSmaller) {
  EXPECT_EQ(advance_clock(0, 5, 27), 5U);
  EXPECT_EQ(advance_clock(100, 99, 27), (1U << 27U) + 99U);
  EXPECT_EQ(advance_clock(100, 100, 27), 100U);
  // The bit that the wrap carries into is set already.
  EXPECT_EQ(advance_clock((std::uint64_t{1} << 32U) + 7, 6, 32), (std::uint64_t{2} << 32U) + 6);
  EXPECT_EQ(advance_clock((std::uint64_t{3} << 27U) + 7, 6, 27), (std::uint64_t{4} << 27U) + 6);
  EXPECT_EQ(advance_clock(1000, 5, 64), 5U);
}

class Headers : public testing::TestWithParam<bool> {
 protected:
  // Ids up to what fits into the short form, both forms, times that wrap.
  void put_header(Bits& bits, std::uint64_t id, std::uint64_t time, bool extended) const {
    const bool is_large = GetParam();
    bits.align(8);
    if (is_large) {
      bits.put(extended ? 65535 : id, 16);
    } else {
      bits.put(extended ? 31 : id, 5);
    }
    if (extended) {
      bits.align(8).put(id, 32).put(time, 64);
    } else {
      bits.put(time, is_large ? 32 : 27);
    }
  }
  static std::string metadata() {
    return prologue() +
           stream(GetParam() ? kLargeHeader : kCompactHeader, {{"a", "u8 x;"}, {"b", "u32 x; string s;"}});
  }
};

TEST_P(Headers, OfLttngGiveIdAndTime) {
  const std::uint64_t wrap = std::uint64_t{1} << (GetParam() ? 32U : 27U);
  const std::uint64_t start = 3 * wrap - 10;  // bit N is set, and stays so for one wrap more
  MadePacket packet(start, start + 3 * wrap);
  put_header(packet.bits, 0, start + 1, false);
  packet.bits.put(1, 8);
  put_header(packet.bits, 1, start + 20, false);  // wrapped
  packet.bits.put(2, 32).text("two");
  put_header(packet.bits, 0, start + 20 + 2 * wrap, true);  // too long ago for the short form
  packet.bits.put(3, 8);
  put_header(packet.bits, 1, start + 21 + 2 * wrap, false);
  packet.bits.put(4, 32).text("");
  const OneTrace trace(metadata(), {{"s", packet.bytes(5)}});
  EXPECT_TRUE(trace->decoders[0]->has_special_header());
  const auto [events, ledger] = read(*trace);
  const auto begin = static_cast<std::int64_t>(start);
  const auto twice = static_cast<std::int64_t>(2 * wrap);
  const std::vector<Seen> expected{{begin + 1, "a", {1}},
                                   {begin + 20, "b", {2, 't', 'w', 'o'}},
                                   {begin + 20 + twice, "a", {3}},
                                   {begin + 21 + twice, "b", {4}}};
  EXPECT_EQ(events, expected);
  EXPECT_TRUE(ledger.empty());
  EXPECT_TRUE(trace.set.ledger().empty());
}

// The special way and the general one, on headers of random bytes.
TEST_P(Headers, OfLttngAreReadAsInTheGeneralWay) {
  const Metadata metadata = parse_metadata(Headers::metadata(), "metadata");
  const StreamClass& stream_class = metadata.streams.at(0);
  std::vector<EventLayout> layouts;
  for (const auto& [id, event] : stream_class.events) layouts.push_back(make_layout(stream_class, *event));
  const auto clock = Decoder::clock_of(stream_class);
  const Decoder special(metadata, stream_class, layouts, 0, clock);
  Decoder general(metadata, stream_class, layouts, 0, clock);
  ASSERT_TRUE(special.has_special_header());
  general.use_general_header();

  std::mt19937 random(3);
  std::size_t decoded = 0;
  for (int round = 0; round < 20000; ++round) {
    Bits bits;
    for (int i = 0; i < 4; ++i) {
      put_header(bits, random() % (random() % 8 == 0 ? 40 : 2), random() * std::uint64_t{random()},
                 random() % 3 == 0);
      bits.put(random(), random() % 2 == 0 ? 8 : 40).put(0, random() % 2 * 8);
    }
    std::vector<std::uint8_t> bytes = bits.bytes();
    bytes.resize(bytes.size() + 64);
    const std::uint64_t end = random() % 2 == 0 ? bits.size() : random() % bits.size();
    const std::uint64_t cycles = random();
    struct Way {
      const Decoder* decoder;
      Cursor cursor;
      ElementMemory memory, scratch;
      std::vector<std::uint64_t> slots;
      Decoder::Seen seen;
    };
    std::array<Way, 2> ways;
    ways[0].decoder = &special;
    ways[1].decoder = &general;
    for (auto& way : ways) {
      way.slots.resize(special.slots());
      way.seen.counts.resize(2);
      way.cursor.data = bytes.data();
      way.cursor.end = end;
      way.cursor.cycles = cycles;
      way.cursor.memory = &way.memory;
      way.cursor.scratch = &way.scratch;
    }
    const std::uint8_t wanted[] = {1, 1};
    while (true) {
      std::array<Decoder::Step, 2> steps{};
      for (std::size_t i = 0; i < 2; ++i) {
        steps[i] = ways[i].decoder->next(ways[i].cursor, ways[i].slots.data(), wanted, ways[i].seen);
      }
      ASSERT_EQ(steps[0], steps[1]);
      ASSERT_EQ(ways[0].cursor.at, ways[1].cursor.at);
      ASSERT_EQ(ways[0].cursor.cycles, ways[1].cursor.cycles);
      if (steps[0] == Decoder::Step::failed) {
        ASSERT_EQ(ways[0].cursor.failure, ways[1].cursor.failure);
      }
      if (steps[0] != Decoder::Step::event) break;
      ++decoded;
      ASSERT_EQ(ways[0].cursor.class_index, ways[1].cursor.class_index);
      // All but the spare slot and those behind a short event's.
      const std::size_t count = layouts[ways[0].cursor.class_index].slots;
      const std::size_t stale =
          ways[0].slots[1] == 0 ? 3 : count;  // the short form leaves its second slot as it was
      for (std::size_t i = 0; i < count; ++i) {
        if (i == stale) continue;
        ASSERT_EQ(ways[0].slots[i], ways[1].slots[i]) << i;
      }
    }
  }
  EXPECT_GT(decoded, 20000U);
}

TEST_P(Headers, EventsOfFixedLayoutCanBeReadInPlace) {
  MadePacket packet(0, 1000);
  for (std::uint64_t i = 0; i < 300; ++i) {
    const bool fixed = i % 7 != 3;
    put_header(packet.bits, fixed ? 0 : 1, i, i % 5 == 2);
    if (fixed) {
      packet.bits.put(i, 8).put(0 - i, 32).put(0x64636261, 32);
    } else {
      packet.bits.put(i, 32).text("text");
    }
  }
  const OneTrace trace(prologue() + stream(GetParam() ? kLargeHeader : kCompactHeader,
                                           {{"a", "u8 x; s32 y; u8 z[4];"}, {"b", "u32 x; string s;"}}),
                       {{"s", packet.bytes()}});
  const Decoder& decoder = *trace->decoders[0];
  EXPECT_TRUE(decoder.can_read_in_place(0));
  EXPECT_FALSE(decoder.can_read_in_place(1));
  EXPECT_FALSE(decoder.place_of(0, 10000));
  const auto place = [&](std::size_t field) {
    return decoder.place_of(0, trace->layouts[0].payload->children[field].slot).value();
  };
  StreamReader reader(*trace, 0, {}, {true, true}), decoded(*trace, 0);
  std::uint64_t events = 0;
  for (Event event, other; reader.next(event); ++events) {
    ASSERT_TRUE(decoded.next(other));
    EXPECT_EQ(event.time_ns, other.time_ns);
    ASSERT_EQ(event.class_index, other.class_index);
    if (event.class_index == 1) {
      ASSERT_EQ(event.body, nullptr);
      EXPECT_EQ(event.text(trace->layouts[1].payload->children[1]), "text");
      continue;
    }
    ASSERT_NE(event.body, nullptr);
    EXPECT_EQ(event.slots, nullptr);
    EXPECT_EQ(place(0).integer(event.body), events & 0xff);
    EXPECT_EQ(place(1).integer(event.body), 0 - events);
    const auto bytes = place(2).bytes(event.body);
    EXPECT_EQ(std::string(bytes.begin(), bytes.end()), "abcd");
  }
  EXPECT_EQ(events, 300U);
  EXPECT_EQ(reader.counts(), decoded.counts());
  EXPECT_EQ(reader.last_ns(), decoded.last_ns());
}

INSTANTIATE_TEST_SUITE_P(Lttng, Headers, testing::Bool(),
                         [](const auto& info) { return info.param ? "Large" : "Compact"; });

TEST(TimeStamps, InAContextCount) {
  MadePacket packet(1000, 3000);
  packet.bits.put(0, 16).put(9, 8).put(1500, 32).put(1, 8);
  packet.bits.put(0, 16).put(9, 8).put(2500, 32).put(2, 8);
  const OneTrace trace(prologue() + stream("event.header := struct { u16 id; };\n", {{"a", "u8 x;"}},
                                           "event.context := struct { u8 y; t32 when; };\n"),
                       {{"s", packet.bytes()}});
  EXPECT_EQ(times(read(*trace).events), (std::vector<std::int64_t>{1500, 2500}));
  // Also where the events are only passed over.
  StreamReader reader(*trace, 0, {false});
  Event event;
  EXPECT_FALSE(reader.next(event));
  EXPECT_EQ(reader.first_ns(), 1500);
  EXPECT_EQ(reader.last_ns(), 2500);
}

TEST(TimeStamps, OfASlowClockAreInNanoseconds) {
  MadePacket packet(10, 30);
  packet.event(0, 12).bits.put(1, 8);
  const OneTrace trace(prologue(kUuid, 1'000'000) + stream(kPlainHeader, {{"a", "u8 x;"}}),
                       {{"s", packet.bytes()}});
  EXPECT_EQ(times(read(*trace).events), (std::vector<std::int64_t>{12000}));
  EXPECT_EQ(trace->clock_offset_ns(), 5'000'000'000);
  EXPECT_EQ(trace->to_ns(~std::uint64_t{0}), std::numeric_limits<std::int64_t>::max());
}

TEST(TimeStamps, ThatGoBackwardsAreSaid) {
  MadePacket packet(10, 30);
  for (const std::uint64_t time : {12U, 20U, 15U, 16U, 11U}) packet.event(0, time).bits.put(1, 8);
  const OneTrace trace(prologue() + stream(kPlainHeader, {{"a", "u8 x;"}}), {{"s", packet.bytes()}});
  const auto [events, ledger] = read(*trace);
  EXPECT_EQ(times(events), (std::vector<std::int64_t>{12, 20, 15, 16, 11}));
  ASSERT_EQ(ledger.size(), 1U);
  EXPECT_EQ(ledger[0].loss, Loss::backwards_time);
  EXPECT_EQ(ledger[0].count, 2U);
  EXPECT_EQ(ledger[0].begin_ns, 11);
  EXPECT_EQ(ledger[0].end_ns, 20);
}

}  // namespace
}  // namespace perflab::ctf::test
