// Packets: whole, broken, missing, rotated.
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <limits>

#include "ctf/mapped_file.h"
#include "made_trace.h"

namespace perflab::ctf::test {
namespace {

const std::string kMetadata = prologue() + stream(kPlainHeader, {{"number", "u8 x;"}, {"text", "string s;"}});

MadePacket numbers(std::uint64_t begin, std::uint64_t end, std::initializer_list<std::uint64_t> times,
                   std::uint64_t number = 0, std::uint64_t discarded = 0, std::uint64_t instance = 0) {
  MadePacket packet(begin, end, number, discarded, instance);
  for (const auto time : times) packet.event(0, time).bits.put(time & 0xFFU, 8);
  return packet;
}

const auto kPage = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));

struct Opened {
  Ledger index;
  Ledger reading;
  std::vector<Seen> events;
  std::size_t streams = 0;
};

Opened read_all(const TraceSet& set) {
  Opened result;
  result.index = set.ledger();
  for (const auto& trace : set.traces()) {
    result.streams += trace->streams.size();
    for (std::size_t i = 0; i < trace->streams.size(); ++i) {
      auto [events, ledger] = read(*trace, i);
      result.events.insert(result.events.end(), events.begin(), events.end());
      result.reading.insert(result.reading.end(), ledger.begin(), ledger.end());
    }
  }
  return result;
}

Opened open_stream(const std::vector<std::uint8_t>& bytes, const std::string& metadata = kMetadata) {
  return read_all(OneTrace(metadata, {{"s", bytes}}).set);
}

TEST(Packets, InARowAreRead) {
  const auto opened = open_stream(numbers(10, 20, {11, 12}, 0).bytes(7) + numbers(30, 40, {31}, 1).bytes());
  EXPECT_EQ(times(opened.events), (std::vector<std::int64_t>{11, 12, 31}));
  EXPECT_TRUE(opened.index.empty());
  EXPECT_TRUE(opened.reading.empty());
}

TEST(Packets, CutOffAnywhereLoseOnlyWhatIsCutOff) {
  auto second = numbers(30, 40, {31}, 1);
  second.event(1, 32).bits.text("text");
  second.event(0, 33).bits.put(1, 8);
  const auto whole = numbers(10, 20, {11, 12}, 0).bytes() + second.bytes();
  const auto all = open_stream(whole).events;
  ASSERT_EQ(all.size(), 5U);
  const std::size_t first_size = numbers(10, 20, {11, 12}, 0).bytes().size();
  std::size_t before = 0;
  for (std::size_t size = 0; size < whole.size(); ++size) {
    const auto opened = open_stream({whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size)});
    ASSERT_LE(opened.events.size(), all.size());
    ASSERT_GE(opened.events.size(), before);
    before = opened.events.size();
    ASSERT_TRUE(std::equal(opened.events.begin(), opened.events.end(), all.begin())) << size;
    ASSERT_TRUE(opened.reading.empty()) << "it is said once, when the packets are found";
    if (size == 0 || size == first_size) {
      ASSERT_TRUE(opened.index.empty());
      continue;
    }
    ASSERT_EQ(opened.index.size(), 1U) << size;
    ASSERT_EQ(opened.index[0].loss, Loss::truncated_packet) << size;
    if (opened.index[0].count_is_exact) {
      ASSERT_EQ(opened.index[0].count, (size < first_size ? first_size : whole.size()) - size) << size;
    }
  }
  EXPECT_EQ(before, 4U);
}

TEST(Packets, CutOffLoseTheTimeFromTheirLastGoodEventOn) {
  const auto whole = numbers(10, 20, {11, 12}, 0).bytes() + numbers(30, 90, {31, 45, 60}, 1).bytes();
  const std::vector<std::uint8_t> cut(whole.begin(), whole.end() - 1);
  const auto opened = open_stream(cut);
  EXPECT_EQ(times(opened.events), (std::vector<std::int64_t>{11, 12, 31, 45}));
  ASSERT_EQ(opened.index.size(), 1U);
  EXPECT_EQ(opened.index[0].loss, Loss::truncated_packet);
  EXPECT_EQ(opened.index[0].begin_ns, 45);
  EXPECT_EQ(opened.index[0].end_ns, 90);
}

TEST(Packets, HaveNoEventsLaterThanTheirEnd) {
  const auto opened = open_stream(numbers(10, 20, {11, 12, 21, 13}, 0).bytes() + numbers(30, 40, {31}, 1).bytes());
  EXPECT_EQ(times(opened.events), (std::vector<std::int64_t>{11, 12, 31}));
  ASSERT_EQ(opened.reading.size(), 1U);
  EXPECT_EQ(opened.reading[0].loss, Loss::undecodable_event);
  EXPECT_EQ(opened.reading[0].begin_ns, 12);
  EXPECT_EQ(opened.reading[0].end_ns, 20);
}

// Times of 27 bits: zeros read as an event 134 ms later at most, within a packet that lasts longer.
TEST(Packets, WithAPageOfZerosEndWhereItBegins) {
  const std::string metadata = prologue() + stream(kCompactHeader, {{"number", "u64 x;"}});
  constexpr std::uint64_t kFirst = 1'000'000'007, kEnd = 9'000'000'000;
  MadePacket packet(kFirst, kEnd);
  for (std::uint64_t i = 1; i <= 1500; ++i) packet.bits.put(((kFirst + 1000 * i) & 0x7FFFFFFU) << 5U, 32).put(~std::uint64_t{0}, 64);
  const auto whole = packet.bytes();
  const auto read_bytes = [&](const std::vector<std::uint8_t>& bytes) {
    return open_stream(bytes + numbers(kEnd, kEnd + 10, {}, 1).bytes(), metadata);
  };
  const auto all = read_bytes(whole).events;
  ASSERT_EQ(all.size(), 1500U);
  for (const std::size_t at : {std::size_t{4096}, std::size_t{5000}, std::size_t{8191}}) {
    auto bytes = whole;
    std::fill_n(bytes.begin() + static_cast<std::ptrdiff_t>(at), 4096, std::uint8_t{0});
    const auto opened = read_bytes(bytes);
    ASSERT_FALSE(opened.events.empty());
    ASSERT_LT(opened.events.size(), all.size());
    EXPECT_TRUE(std::equal(opened.events.begin(), opened.events.end(), all.begin())) << at;
    EXPECT_GE(12 * (opened.events.size() + 2) + MadePacket::kEventsAt / 8, at) << "what is before the zeros is read";
    ASSERT_EQ(opened.reading.size(), 1U);
    EXPECT_EQ(opened.reading[0].loss, Loss::undecodable_event);
    EXPECT_EQ(opened.reading[0].begin_ns, opened.events.back().time_ns);
    EXPECT_EQ(opened.reading[0].end_ns, static_cast<std::int64_t>(kEnd));
  }
}

TEST(Packets, WithoutAMagicNumberAreNoPackets) {
  auto bytes = numbers(10, 20, {11}).bytes();
  const std::size_t good = bytes.size();
  bytes.resize(good + 200, 0x55);
  const auto opened = open_stream(bytes);
  EXPECT_EQ(times(opened.events), (std::vector<std::int64_t>{11}));
  ASSERT_EQ(opened.index.size(), 1U);
  EXPECT_EQ(opened.index[0].loss, Loss::corrupt_packet);
  EXPECT_EQ(opened.index[0].offset, good);
  EXPECT_EQ(opened.index[0].count, 200U);
  EXPECT_EQ(opened.index[0].begin_ns, 20);

  const auto nothing = open_stream(std::vector<std::uint8_t>(300, 1));
  EXPECT_EQ(nothing.streams, 0U);
  ASSERT_EQ(nothing.index.size(), 1U);
  EXPECT_EQ(nothing.index[0].loss, Loss::unreadable_stream);
}

TEST(Packets, WithAnotherUuidAreReadAndSaidOfTheirFileOnce) {
  auto second = numbers(30, 40, {31}, 1).bytes();
  auto third = numbers(50, 60, {51, 52}, 2).bytes();
  second[5] ^= 1U;
  third[9] ^= 1U;
  const auto first = numbers(10, 20, {11}).bytes();
  const auto opened = open_stream(first + second + third);
  EXPECT_EQ(times(opened.events), (std::vector<std::int64_t>{11, 31, 51, 52}));
  ASSERT_EQ(opened.index.size(), 1U);
  EXPECT_EQ(opened.index[0].loss, Loss::foreign_uuid);
  EXPECT_EQ(opened.index[0].count, 2U);
  EXPECT_EQ(opened.index[0].offset, first.size());
}

// Touching what is no longer there would end the process.
TEST(Packets, ThatVanishAfterOpeningAreSaidToBeMissing) {
  if (!MappedFile::can_tell_what_is_readable()) GTEST_SKIP() << "this kernel cannot tell (before Linux 5.14)";
  const auto first = numbers(10, 20, {11}, 0).bytes(3 * kPage);
  const auto second = numbers(30, 40, {31, 32}, 1);
  const OneTrace trace(kMetadata, {{"s", first + second.bytes()}});
  ASSERT_TRUE(trace.set.ledger().empty());
  std::filesystem::resize_file(trace.folder.path() / "s", kPage);
  const auto [events, ledger] = read(*trace);
  EXPECT_EQ(times(events), (std::vector<std::int64_t>{11}));
  ASSERT_EQ(ledger.size(), 1U);
  EXPECT_EQ(ledger[0].loss, Loss::truncated_packet);
  EXPECT_EQ(ledger[0].count, second.bytes().size());
  EXPECT_EQ(ledger[0].offset, first.size());
  EXPECT_EQ(ledger[0].begin_ns, 30);
  EXPECT_EQ(ledger[0].end_ns, 40);
}

TEST(Packets, WithSizesThatCannotBeAreLeftOut) {
  struct Case {
    const char* name;
    std::uint64_t content, packet;
  };
  for (const auto& [name, content, packet] :
       {Case{"no size", 0, 0}, Case{"content beyond the packet", 4000, 2000},
        Case{"smaller than its header", 80, 80}, Case{"no whole bytes", 1001, 1001}}) {
    auto second = numbers(30, 40, {31}, 1).bits;
    second.set(MadePacket::kContentSizeAt, content, 64);
    second.set(MadePacket::kContentSizeAt + 64, packet, 64);
    const auto opened =
        open_stream(numbers(10, 20, {11}).bytes() + second.bytes() + numbers(50, 60, {51}).bytes());
    EXPECT_EQ(times(opened.events), (std::vector<std::int64_t>{11, 51})) << name;
    ASSERT_EQ(opened.index.size(), 1U) << name;
    EXPECT_EQ(opened.index[0].loss, Loss::corrupt_packet) << name;
    EXPECT_EQ(opened.index[0].count, second.bytes().size()) << name;
    EXPECT_EQ(opened.index[0].begin_ns, 20) << name;
    EXPECT_EQ(opened.index[0].end_ns, 50) << name;
  }
}

// Packets of one size, as LTTng's are, where twice a size leads to a packet again; and of any size.
TEST(Packets, WithABitFlippedLeaveAllOthers) {
  for (const std::size_t padding : {0U, 64U}) {
    std::vector<std::vector<std::uint8_t>> packets;
    for (std::uint64_t i = 0; i < 4; ++i) {
      const auto packet = numbers(100 * i, 100 * i + 50, {100 * i + 1, 100 * i + 2}, i);
      packets.push_back(packet.bytes(padding == 0 ? 3 * i : 512 - packet.bits.size() / 8));
    }
    constexpr std::size_t kSizes = MadePacket::kContentSizeAt;
    for (std::size_t broken = 0; broken < packets.size(); ++broken) {
      std::vector<std::size_t> bits;
      for (std::size_t bit = 0; bit < 32; ++bit) bits.push_back(bit);            // magic
      for (std::size_t bit = 0; bit < 128; ++bit) bits.push_back(kSizes + bit);  // sizes
      for (const std::size_t bit : bits) {
        auto damaged = packets;
        damaged[broken][bit / 8] = static_cast<std::uint8_t>(damaged[broken][bit / 8] ^ 1U << (bit % 8));
        std::vector<std::uint8_t> all;
        for (const auto& packet : damaged) all.insert(all.end(), packet.begin(), packet.end());
        const auto opened = open_stream(all);
        const auto seen = times(opened.events);
        for (std::size_t i = 0; i < packets.size(); ++i) {
          for (const auto time : {100 * i + 1, 100 * i + 2}) {
            if (i == broken) continue;
            ASSERT_EQ(std::count(seen.begin(), seen.end(), static_cast<std::int64_t>(time)), 1)
                << "padding " << padding << " packet " << broken << " bit " << bit << " time " << time;
          }
        }
        if (bit >= 32) continue;
        ASSERT_EQ(opened.index.size(), 1U) << broken << " " << bit;
        EXPECT_EQ(opened.index[0].loss, Loss::corrupt_packet);
        EXPECT_EQ(opened.index[0].count, packets[broken].size());
        if (broken > 0) {
          EXPECT_EQ(opened.index[0].begin_ns, static_cast<std::int64_t>(100 * broken - 50));
        }
        EXPECT_EQ(opened.index[0].begin_ns.has_value(), broken > 0);
        if (broken < 3) {
          EXPECT_EQ(opened.index[0].end_ns, static_cast<std::int64_t>(100 * broken + 100));
        }
        EXPECT_EQ(opened.index[0].end_ns.has_value(), broken < 3);
      }
    }
  }
}

TEST(Packets, AreFoundBehindAnythingInTimeThatIsNotSquare) {
  // Nothing but magic numbers, of which none begins a packet.
  Bits junk;
  for (int i = 0; i < 400'000; ++i) junk.put(0xC1FC1FC1, 32);
  const auto opened = open_stream(junk.bytes() + numbers(10, 20, {11}).bytes());
  EXPECT_EQ(times(opened.events), (std::vector<std::int64_t>{11}));
  ASSERT_EQ(opened.index.size(), 1U);
  EXPECT_EQ(opened.index[0].count, junk.bytes().size());
}

TEST(Packets, OfTimesBeyondTheLargestAreSaid) {
  const std::uint64_t late = (std::uint64_t{1} << 63U) + 5;
  const OneTrace trace(kMetadata, {{"s", numbers(late, late + 10, {late + 1, late + 2}).bytes()}});
  const auto largest = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(times(read(*trace).events), (std::vector<std::int64_t>{largest, largest}));
  ASSERT_EQ(trace->metadata.warnings.size(), 1U);
  EXPECT_NE(trace->metadata.warnings[0].find("2^63"), std::string::npos);
}

TEST(Events, ThatTakeNoRoomTakeNoTime) {
  MadePacket packet(10, 20);
  for (std::uint64_t i = 0; i < 150; ++i) packet.event(0, 11 + i).bits.put(1, 8);
  const auto opened = open_stream(
      packet.bytes(), prologue() + stream(kPlainHeader, {{"e", "struct { } a[4096][2048]; u8 x;"}}));
  EXPECT_TRUE(opened.events.empty());
  ASSERT_EQ(opened.reading.size(), 1U);
  EXPECT_EQ(opened.reading[0].loss, Loss::undecodable_event);
  EXPECT_NE(opened.reading[0].message.find("far more elements than bytes"), std::string::npos);
}

TEST(Packets, WithASizeBeyondTheFileAreReadAsFarAsTheyGo) {
  auto bits = numbers(10, 20, {11, 12}).bits;
  bits.set(MadePacket::kContentSizeAt, std::uint64_t{1} << 60U, 64);
  bits.set(MadePacket::kContentSizeAt + 64, std::uint64_t{1} << 60U, 64);
  const auto opened = open_stream(bits.bytes());
  EXPECT_EQ(times(opened.events), (std::vector<std::int64_t>{11, 12}));
  ASSERT_EQ(opened.index.size(), 1U);
  EXPECT_EQ(opened.index[0].loss, Loss::truncated_packet);
}

TEST(Packets, AreMissingWhereNumbersAre) {
  const auto opened = open_stream(numbers(10, 20, {11}, 5).bytes() + numbers(30, 40, {31}, 6).bytes() +
                                  numbers(50, 60, {51}, 10).bytes());
  EXPECT_EQ(opened.events.size(), 3U);
  ASSERT_EQ(opened.index.size(), 1U);
  EXPECT_EQ(opened.index[0].loss, Loss::lost_packets);
  EXPECT_EQ(opened.index[0].count, 3U);
  EXPECT_EQ(opened.index[0].begin_ns, 40);
  EXPECT_EQ(opened.index[0].end_ns, 50);
}

TEST(DiscardedEvents, AreTheIncreasesOfTheCount) {
  const OneTrace trace(kMetadata,
                       {{"s", numbers(10, 20, {11}, 0, 0).bytes() + numbers(30, 40, {31}, 1, 7).bytes() +
                                  numbers(50, 60, {51}, 2, 7).bytes() + numbers(70, 80, {71}, 3, 2).bytes() +
                                  numbers(90, 99, {91}, 4, 3).bytes()}});
  const Ledger& ledger = trace.set.ledger();
  ASSERT_EQ(ledger.size(), 2U);
  EXPECT_EQ(ledger[0].loss, Loss::discarded_events);
  EXPECT_EQ(ledger[0].count, 7U);
  EXPECT_TRUE(ledger[0].count_is_exact);
  EXPECT_EQ(ledger[0].begin_ns, 20);
  EXPECT_EQ(ledger[0].end_ns, 40);
  EXPECT_EQ(ledger[1].count, 1U);
  EXPECT_EQ(trace->streams[0].discarded_events, 8U);
}

// What is missing where nothing can be read is a part of the packet that is lost.
TEST(DiscardedEvents, AreCountedBeyondACorruptPacketAndMissingPacketsAreNot) {
  auto second = numbers(30, 40, {31}, 1, 7).bytes();
  second[0] = 0;
  const auto opened =
      open_stream(numbers(10, 20, {11}, 0).bytes() + second + numbers(50, 60, {51}, 4, 7).bytes());
  EXPECT_EQ(times(opened.events), (std::vector<std::int64_t>{11, 51}));
  std::vector<Loss> losses;
  for (const auto& entry : opened.index) losses.push_back(entry.loss);
  std::ranges::sort(losses);
  EXPECT_EQ(losses, (std::vector<Loss>{Loss::discarded_events, Loss::corrupt_packet}));
}

TEST(DiscardedEvents, BeforeTheFirstPacketHaveNoBegin) {
  const auto opened = open_stream(numbers(10, 20, {11}, 0, 4).bytes());
  ASSERT_EQ(opened.index.size(), 1U);
  EXPECT_EQ(opened.index[0].loss, Loss::discarded_events);
  EXPECT_EQ(opened.index[0].count, 4U);
  EXPECT_FALSE(opened.index[0].count_is_exact);
  EXPECT_FALSE(opened.index[0].begin_ns.has_value());
  EXPECT_EQ(opened.index[0].end_ns, 20);
}

TEST(Rotation, JoinsTheFilesOfAStreamInTheOrderOfTime) {
  Folder folder;
  folder.write("metadata", kMetadata);
  folder.write("s_0_0", numbers(50, 60, {51}, 3, 2, 7).bytes());
  folder.write("s_0_1", numbers(10, 20, {11}, 0, 0, 7).bytes() + numbers(30, 40, {31}, 1, 2, 7).bytes());
  folder.write("s_1_0", numbers(5, 90, {15}, 0, 0, 8).bytes());
  folder.write(".hidden", "no stream");
  folder.write("index/s_0_0.idx", "no stream");
  folder.write("s.idx", "no stream");
  folder.write("empty", "");
  const auto opened = read_all(open(folder.path()));
  EXPECT_EQ(opened.streams, 2U);
  EXPECT_EQ(times(opened.events), (std::vector<std::int64_t>{11, 31, 51, 15}));
  ASSERT_EQ(opened.index.size(), 2U);
  EXPECT_EQ(opened.index[0].loss, Loss::discarded_events);
  EXPECT_EQ(opened.index[0].count, 2U);
  EXPECT_EQ(opened.index[1].loss, Loss::lost_packets);
  EXPECT_EQ(opened.index[1].count, 1U);
  EXPECT_EQ(opened.index[1].begin_ns, 40);
  EXPECT_EQ(opened.index[1].end_ns, 50);
}

TEST(Rotation, ReadsPacketsThatSeveralSnapshotsHoldOnce) {
  Folder folder;
  folder.write("1/metadata", kMetadata);
  folder.write("2/metadata", kMetadata);
  const auto shared = numbers(30, 40, {31}, 1, 0, 7).bytes();
  folder.write("1/s", numbers(10, 20, {11}, 0, 0, 7).bytes() + shared);
  folder.write("2/s", shared + numbers(50, 60, {51}, 2, 0, 7).bytes());
  const auto opened = read_all(open(folder.path()));
  EXPECT_EQ(times(opened.events), (std::vector<std::int64_t>{11, 31, 51}));
  EXPECT_TRUE(opened.index.empty());
}

TEST(Events, OfUnknownIdsEndTheirPacketOnly) {
  auto first = numbers(10, 20, {11}, 0);
  const std::size_t at = first.bits.size() / 8;
  first.event(77, 12).bits.put(0, 64);
  const auto bytes = first.bytes();
  const auto opened = open_stream(bytes + numbers(30, 40, {31}, 1).bytes());
  EXPECT_EQ(times(opened.events), (std::vector<std::int64_t>{11, 31}));
  ASSERT_EQ(opened.reading.size(), 1U);
  EXPECT_EQ(opened.reading[0].loss, Loss::undecodable_event);
  EXPECT_EQ(opened.reading[0].offset, at);
  EXPECT_EQ(opened.reading[0].count, bytes.size() - at);
  EXPECT_NE(opened.reading[0].message.find("id 77"), std::string::npos) << opened.reading[0].message;
}

TEST(Events, WithATextThatDoesNotEndAreNotReadIntoTheNextPacket) {
  auto first = numbers(10, 20, {11}, 0);
  first.event(1, 12).bits.put('x', 8).put('y', 8);
  const auto opened = open_stream(first.bytes() + numbers(30, 40, {31}, 1).bytes());
  EXPECT_EQ(times(opened.events), (std::vector<std::int64_t>{11, 31}));
  ASSERT_EQ(opened.reading.size(), 1U);
  EXPECT_EQ(opened.reading[0].loss, Loss::undecodable_event);
}

TEST(Events, ThatEndWithTheirPacketAreRead) {
  auto packet = numbers(10, 20, {}, 0);
  packet.event(1, 12).bits.text("end");
  EXPECT_EQ(open_stream(packet.bytes()).events, (std::vector<Seen>{{12, "text", {'e', 'n', 'd'}}}));
}

TEST(Events, ThatAreNotWantedAreCounted) {
  auto packet = numbers(10, 20, {11, 12}, 0);
  packet.event(1, 13).bits.text("text");
  packet.event(0, 14).bits.put(1, 8);
  const OneTrace trace(kMetadata, {{"s", packet.bytes()}});
  EXPECT_EQ(times(read(*trace, 0, {false, true}).events), (std::vector<std::int64_t>{13}));
  EXPECT_EQ(times(read(*trace, 0, {true, false}).events), (std::vector<std::int64_t>{11, 12, 14}));
  StreamReader reader(*trace, 0, {false, false});
  Event event;
  EXPECT_FALSE(reader.next(event));
  EXPECT_EQ(reader.counts(), (std::vector<std::uint64_t>{3, 1}));
  EXPECT_EQ(reader.first_ns(), 11);
  EXPECT_EQ(reader.last_ns(), 14);
}

// A length in the packet's context, of a sequence in every event.
TEST(Events, MayReferToTheContextOfTheirPacket) {
  std::vector<std::uint8_t> bytes;
  for (const std::uint64_t length : {2U, 1U}) {
    Bits bits;
    const MadePacket header(0, 0);
    for (std::size_t i = 0; i < 32; ++i) bits.put(header.bits.bytes()[i], 8);
    const std::size_t size = 8 * (32 + 17 + 8 + 2 * length);
    bits.put(size, 64).put(size, 64).put(length, 8).put(100 + length, 64);
    for (std::uint64_t i = 0; i < length; ++i) bits.put(1000 + i, 16);
    bytes = bytes + bits.bytes();
  }
  const auto opened = open_stream(
      bytes, prologue() +
                 "stream { id = 0; event.header := struct { t64 timestamp; }; packet.context := struct "
                 "{ u64 content_size; u64 packet_size; u8 n; }; };\n"
                 "event { name = \"e\"; id = 0; stream_id = 0; fields := struct { u16 "
                 "v[stream.packet.context.n]; }; };\n");
  EXPECT_EQ(opened.events, (std::vector<Seen>{{102, "e", {1000, 1001}}, {101, "e", {1000}}}));
}

TEST(Files, WithoutSizesAreOnePacket) {
  const OneTrace trace(
      "/* CTF 1.8 */\ntypealias integer { size = 8; align = 8; signed = false; } := u8;\n"
      "trace { major = 1; minor = 8; byte_order = le; };\n"
      "stream { event.header := struct { u8 id; }; };\n"
      "event { name = \"e\"; id = 3; fields := struct { u8 x; }; };\n",
      {{"s", {3, 10, 3, 11}}});
  EXPECT_EQ(read(*trace).events, (std::vector<Seen>{{0, "e", {10}}, {0, "e", {11}}}));
  // That there are no times is said.
  ASSERT_EQ(trace->metadata.warnings.size(), 1U);
  EXPECT_FALSE(trace->clock_offset_ns().has_value());
}

TEST(Files, OfManyPacketsAreReadInBoundedMemory) {
  // More than what a reader keeps behind itself; every event must still be right when it is handed out.
  std::vector<std::uint8_t> bytes;
  std::uint64_t time = 0;
  for (std::uint64_t packet = 0; packet < 40; ++packet) {
    MadePacket made(time, time + 1000, packet);
    for (int i = 0; i < 1000; ++i) {
      ++time;
      made.event(0, time).bits.put(time & 0xFFU, 8);
    }
    const auto more = made.bytes(std::size_t{1} << 20U);
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  const OneTrace trace(kMetadata, {{"s", bytes}});
  StreamReader reader(*trace, 0);
  std::uint64_t expected = 0;
  for (Event event; reader.next(event);) {
    ++expected;
    ASSERT_EQ(event.time_ns, static_cast<std::int64_t>(expected));
    ASSERT_EQ(look_at(*trace, event).values.at(0), expected & 0xFFU);
  }
  EXPECT_EQ(expected, time);
}

}  // namespace
}  // namespace perflab::ctf::test
