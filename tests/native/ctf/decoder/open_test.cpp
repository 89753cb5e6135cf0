// Finding traces on disk.
#include <gtest/gtest.h>

#include <algorithm>

#include "made_trace.h"

namespace perflab::ctf::test {
namespace {

const std::string kNumberMetadata = prologue() + stream(kPlainHeader, {{"number", "u8 x;"}});

std::vector<std::uint8_t> one_event(std::uint64_t time, std::uint16_t id = 0, std::uint64_t instance = 0) {
  MadePacket packet(time, time, 0, 0, instance);
  packet.event(id, time).bits.put(1, 8);
  return packet.bytes();
}

std::string error_of(const std::filesystem::path& path) {
  try {
    (void)open(path);
  } catch (const TraceError& error) {
    EXPECT_EQ(std::string(error.what()).find('\n'), std::string::npos);
    return error.what();
  }
  return "no error";
}

TEST(Open, SaysInOneLineWhatIsNoTrace) {
  Folder folder;
  folder.write("file", "text");
  folder.write("empty/nothing", "");
  folder.write("broken/metadata", "/* CTF 1.8 */ trace {");
  const auto in = [&](const char* name) { return (folder.path() / name).string(); };
  EXPECT_EQ(error_of(in("missing")), in("missing") + ": does not exist");
  EXPECT_EQ(error_of(in("file")), in("file") + ": is no directory; give the directory of a trace");
  EXPECT_EQ(error_of(in("empty")),
            in("empty") + ": holds no trace: there is no file \"metadata\" in it or below");
  EXPECT_EQ(error_of(in("broken")).find(in("broken") + "/metadata:"), 0U) << error_of(in("broken"));
  EXPECT_THROW(TraceSet::open({}), TraceError);
}

// /etc has such links: a folder that was seen before is not one that holds a trace.
TEST(Open, SaysThatThereIsNoTraceBelowLinksThatLeadInACircle) {
  Folder folder;
  folder.write("sub/nothing", "");
  std::filesystem::create_directory_symlink(folder.path(), folder.path() / "sub" / "up");
  EXPECT_EQ(error_of(folder.path()),
            folder.path().string() + ": holds no trace: there is no file \"metadata\" in it or below");
}

TEST(Open, ReadsTheRestWhereOneMetadataIsBroken) {
  Folder folder;
  folder.write("a/metadata", "/* CTF 1.8 */ trace {");
  folder.write("b/metadata", kNumberMetadata);
  folder.write("b/s", one_event(5));
  const TraceSet set = open(folder.path());
  ASSERT_EQ(set.traces().size(), 1U);
  EXPECT_EQ(set.traces()[0]->path, "b");
  EXPECT_EQ(set.traces()[0]->streams[0].files, (std::vector<std::string>{"b/s"}));
  ASSERT_EQ(set.ledger().size(), 1U);
  EXPECT_EQ(set.ledger()[0].loss, Loss::unreadable_metadata);
  EXPECT_EQ(set.ledger()[0].file, "a/metadata");
}

TEST(Open, TakesTheMetadataForItsFolder) {
  const OneTrace trace(kNumberMetadata, {{"s", one_event(5)}});
  EXPECT_EQ(open(trace.folder.path() / "metadata").traces().at(0)->streams.size(), 1U);
}

TEST(Open, FindsATraceThatIsCalledIndex) {
  Folder folder;
  folder.write("index/metadata", kNumberMetadata);
  folder.write("index/s", one_event(5));
  const TraceSet set = open(folder.path());
  ASSERT_EQ(set.traces().size(), 1U);
  EXPECT_EQ(set.traces()[0]->path, "index");
  EXPECT_EQ(read(*set.traces()[0]).events.size(), 1U);
}

TEST(Open, AcceptsATraceWithoutEvents) {
  const OneTrace trace(kNumberMetadata, {});
  EXPECT_EQ(trace->streams.size(), 0U);
  EXPECT_TRUE(trace.set.ledger().empty());
}

TEST(Open, DoesNotFollowLinksInCircles) {
  Folder folder;
  folder.write("a/metadata", kNumberMetadata);
  folder.write("a/s", one_event(5));
  std::filesystem::create_directory_symlink(folder.path(), folder.path() / "a" / "up");
  const TraceSet set = open(folder.path());
  ASSERT_EQ(set.traces().size(), 1U);
  EXPECT_EQ(set.traces()[0]->streams.size(), 1U);
}

TEST(Open, ReadsAFolderThatIsGivenTwiceOnce) {
  Folder folder;
  folder.write("a/metadata", kNumberMetadata);
  folder.write("a/s", one_event(5));
  const std::vector<std::filesystem::path> paths{folder.path(), folder.path() / "a"};
  const TraceSet set = TraceSet::open(paths);
  ASSERT_EQ(set.traces().size(), 1U);
  EXPECT_EQ(read(*set.traces()[0]).events.size(), 1U);
}

// The second chunk knows an event more than the first.
TEST(Chunks, OfOneSessionAreOneTrace) {
  Folder folder;
  folder.write("1/metadata", kNumberMetadata);
  folder.write("1/s", one_event(5));
  folder.write("2/metadata", prologue() + stream(kPlainHeader, {{"number", "u8 x;"}, {"more", "u8 y;"}}));
  folder.write("2/s", one_event(9, 1));
  const TraceSet set = open(folder.path());
  ASSERT_EQ(set.traces().size(), 1U);
  const Trace& trace = *set.traces()[0];
  ASSERT_EQ(trace.streams.size(), 1U);
  EXPECT_EQ(read(trace).events, (std::vector<Seen>{{5, "number", {1}}, {9, "more", {1}}}));
}

TEST(Chunks, ThatContradictEachOtherAreTracesOfTheirOwn) {
  Folder folder;
  folder.write("1/metadata", kNumberMetadata);
  folder.write("1/s", one_event(5));
  folder.write("2/metadata", prologue() + stream(kPlainHeader, {{"another", "u8 x;"}}));
  folder.write("2/s", one_event(9));
  const TraceSet set = open(folder.path());
  ASSERT_EQ(set.traces().size(), 2U);
  EXPECT_EQ(read(*set.traces()[0]).events, (std::vector<Seen>{{5, "number", {1}}}));
  EXPECT_EQ(read(*set.traces()[1]).events, (std::vector<Seen>{{9, "another", {1}}}));
}

TEST(Streams, HaveTheirCpu) {
  const OneTrace trace(kNumberMetadata, {{"s1", MadePacket(1, 2, 0, 0, 4, 3).bytes()},
                                         {"s0", MadePacket(1, 2, 0, 0, 9, 1).bytes()}});
  const auto& streams = trace->streams;
  ASSERT_EQ(streams.size(), 2U);
  EXPECT_EQ(streams[0].cpu, 1U);
  EXPECT_EQ(streams[0].instance, 9U);
  EXPECT_EQ(streams[1].cpu, 3U);
}

}  // namespace
}  // namespace perflab::ctf::test
