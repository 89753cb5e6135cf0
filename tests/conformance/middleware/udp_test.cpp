// What is particular to datagrams: what a socket has no room for, what others send to it, messages in pieces,
// and that nothing is allocated for a message.
#include <arpa/inet.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdlib>
#include <functional>
#include <new>
#include <nlohmann/json.hpp>
#include <set>

#include "base/descriptor.h"
#include "fixture.h"
#include "middleware/udp/datagram.h"
#include "peer.h"

// Also of the plug-in: what the program defines goes before what libraries do.
namespace {
thread_local std::uint64_t allocated = 0;
}
void* operator new(std::size_t size) {
  ++allocated;
  if (void* const memory = std::malloc(size)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace perflab::conformance {
namespace {

using middleware::udp::Head;
using middleware::udp::kLargestPiece;

class Udp : public Conformance {
 protected:
  nlohmann::json described() { return nlohmann::json::parse(participant().describe()); }
  // Without on_data(), for what is called has its socket read by another thread.
  static perflab_listener only_events(Recorder& recorder) {
    perflab_listener listener = recorder.listener();
    listener.on_data = nullptr;
    return listener;
  }
  void expect_refused(const std::function<void()>& make, Error::Kind kind,
                      const std::vector<std::string>& words) {
    try {
      make();
      ADD_FAILURE() << "accepted";
    } catch (const Error& refusal) {
      const std::string text = refusal.what();
      EXPECT_EQ(refusal.kind(), kind) << text;
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
      for (const std::string& word : words) EXPECT_NE(text.find(word), std::string::npos) << text;
    }
  }
};

TEST_F(Udp, WhatDatagramsCannotDoIsRefusedInALineThatSaysWhatWouldBeRight) {
  const auto refused = [&](const char* policy, const char* right,
                           const std::function<void(perflab_qos&)>& ask) {
    perflab_qos qos = usual_qos();
    ask(qos);
    for (const bool writes : {true, false}) {
      expect_refused([&] { writes ? static_cast<void>(writer(qos)) : static_cast<void>(reader(qos)); },
                     Error::Kind::kUnsupported, {"udp: ", kTopic, policy, right});
    }
  };
  refused("reliability", "right would be reliability best_effort",
          [](perflab_qos& qos) { qos.reliability = PERFLAB_RELIABLE; });
  refused("durability", "right would be durability volatile",
          [](perflab_qos& qos) { qos.durability = PERFLAB_TRANSIENT_LOCAL; });
  refused("deadline", "right would be deadline infinite", [](perflab_qos& qos) { qos.deadline_ns = 1'000'000'000; });
  refused("lifespan", "right would be lifespan infinite", [](perflab_qos& qos) { qos.lifespan_ns = 1'000'000'000; });
  refused("liveliness", "right would be lease_duration infinite", [](perflab_qos& qos) { qos.lease_duration_ns = 1'000'000'000; });
  refused("liveliness", "right would be liveliness automatic", [](perflab_qos& qos) { qos.liveliness = PERFLAB_MANUAL_BY_TOPIC; });
}

TEST_F(Udp, MalformedOptionsAreRefusedByName) {
  for (const char* const key : {"socket_receive_buffer", "socket_send_buffer"}) {
    for (const char* const value : {"1", "much", "2TiB"})
      expect_refused([&] { open_with({{key, value}}); }, Error::Kind::kBadInput, {key});
  }
}

TEST_F(Udp, AnotherNetworkThanTheLoopbackIsRefused) {
  ParticipantSettings given = settings();
  given.network = "eth0";
  expect_refused([&] { open_with(given); }, Error::Kind::kUnsupported, {"eth0", "right would be 'lo'"});
}

// ---- what a socket has no room for ----

TEST_F(Udp, MessageThatNoSocketHoldsIsRefusedWhereItsSizeIsKnownAndOtherwiseNotSent) {
  open_with({{"socket_receive_buffer", "64KiB"}});
  const std::size_t size = 200'000;
  const std::vector<std::string> words{kTopic, "200000", "does not fit", "socket_receive_buffer="};
  for (const bool writes : {true, false}) {
    const middleware::EndpointSettings fixed{
        .topic = kTopic, .type = kType, .fixed_size = size, .qos = usual_qos()};
    expect_refused(
        [&] {
          writes ? static_cast<void>(participant().create_writer(fixed))
                 : static_cast<void>(participant().create_reader(fixed));
        },
        Error::Kind::kUnsupported, words);
  }
  Writer w = writer();
  Reader r = reader();
  ASSERT_TRUE(matched(w, r));
  EXPECT_FALSE(written(w, 1, size));
  EXPECT_TRUE(written(w, 2, 60'000));
  EXPECT_EQ(numbers(take_until(r, 1)), range(2, 3));
}

TEST_F(Udp, TheLargestMessageFitsIntoASocketThatNobodyReads) {
  for (const char* const buffer : {"8KiB", "64KiB", "96KiB", "200KiB", "1MiB"}) {
    open_with({{"socket_receive_buffer", buffer}});
    const auto size = described().at("largest_message").get<std::size_t>();
    Writer w = writer();
    Reader r = reader();
    ASSERT_TRUE(matched(w, r));
    ASSERT_TRUE(written(w, 1, size)) << buffer;
    EXPECT_FALSE(written(w, 2, size + 1)) << buffer;
    const auto taken = take_until(r, 1);
    ASSERT_EQ(taken.size(), 1u) << buffer;
    EXPECT_TRUE(intact(taken[0].bytes, size)) << buffer;
  }
}

TEST_F(Udp, WhatAFullSocketDropsIsCountedAndReported) {
  open_with({{"socket_receive_buffer", "16KiB"}});
  Recorder recorder;
  Writer w = writer();
  Reader r = reader(keep_all(), only_events(recorder));
  ASSERT_TRUE(matched(w, r));
  constexpr std::uint64_t kCount = 500;
  for (std::uint64_t number = 0; number < kCount; ++number) write(w, number, 1000);
  std::size_t got = take_until(r, 1).size();
  while (take(r)) ++got;
  EXPECT_LT(got, kCount);
  // The next one shows how many are missing.
  write(w, kCount, 1000);
  EXPECT_EQ(numbers(take_until(r, 1)), range(kCount, kCount + 1));
  const auto lost = static_cast<std::int32_t>(kCount - got);
  EXPECT_TRUE(eventually([&] { return recorder.total(PERFLAB_SAMPLE_LOST) == lost; }));
  EXPECT_EQ(described().at("lost"), lost);
  EXPECT_EQ(described().at("dropped_by_sockets"), lost);
  EXPECT_EQ(described().at("incomplete"), 0);
}

TEST_F(Udp, MessageOfWhichPiecesAreMissingIsLostAndItsReaderGoesOn) {
  open_with({{"socket_receive_buffer", "160KiB"}});
  Recorder recorder;
  Writer w = writer();
  Reader r = reader(keep_all(), only_events(recorder));
  ASSERT_TRUE(matched(w, r));
  // Nobody takes, so the last pieces of some message find no room.
  for (std::uint64_t number = 0; number < 5; ++number) write(w, number, 200'000);
  std::vector<Taken> taken;
  while (auto one = take(r)) taken.push_back(std::move(*one));
  write(w, 5, 200'000);
  for (Taken& one : take_until(r, 1)) taken.push_back(std::move(one));
  ASSERT_FALSE(taken.empty());
  EXPECT_LT(taken.size(), 6u);
  EXPECT_EQ(taken.back().number(), 5u);
  for (const Taken& one : taken) EXPECT_TRUE(intact(one.bytes, 200'000));
  const auto lost = static_cast<std::int32_t>(6 - taken.size());
  EXPECT_TRUE(eventually([&] { return recorder.total(PERFLAB_SAMPLE_LOST) == lost; }));
  EXPECT_GE(described().at("incomplete"), 1);
  EXPECT_LE(described().at("incomplete"), lost);
}

// ---- history ----

TEST_F(Udp, HistoryOfAReaderIsForAllItsWritersTogether) {
  perflab_qos last = usual_qos();
  last.depth = 3;
  Writer a = writer();
  Writer b = writer();
  Reader r = reader(last);
  ASSERT_TRUE(matched(a, r, 1, 2));
  ASSERT_TRUE(matched(b, r, 1, 2));
  for (std::uint64_t number = 0; number < 100; ++number) write(number % 2 == 0 ? a : b, number);
  EXPECT_EQ(numbers(take_until_quiet(r, 10ms)), range(97, 100));
  EXPECT_EQ(described().at("lost"), 0) << "what the history drops is not lost";
}

// ---- what others send ----

// Every port of UDP on which this process listens.
std::set<std::uint16_t> own_ports() {
  std::set<std::uint16_t> ports;
  for (int number = 0; number < 1024; ++number) {
    sockaddr_in name{};
    socklen_t length = sizeof name;
    int type = 0;
    socklen_t type_length = sizeof type;
    if (getsockopt(number, SOL_SOCKET, SO_TYPE, &type, &type_length) != 0 || type != SOCK_DGRAM) continue;
    if (getsockname(number, reinterpret_cast<sockaddr*>(&name), &length) != 0) continue;
    if (name.sin_family == AF_INET) ports.insert(ntohs(name.sin_port));
  }
  return ports;
}

TEST_F(Udp, DatagramsOfOthersAreCountedAndHarmNobody) {
  Writer w = writer();
  const std::set<std::uint16_t> before = own_ports();
  Reader r = reader();
  ASSERT_TRUE(matched(w, r));
  std::set<std::uint16_t> ports = own_ports();
  for (const std::uint16_t port : before) ports.erase(port);
  ASSERT_EQ(ports.size(), 1u);

  const Descriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_port = htons(*ports.begin());
  to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  std::uint64_t sent = 0;
  const auto send = [&](const std::vector<std::uint8_t>& bytes) {
    ASSERT_EQ(sendto(socket.number(), bytes.data(), bytes.size(), 0, reinterpret_cast<const sockaddr*>(&to),
                     sizeof to),
              static_cast<ssize_t>(bytes.size()));
    ++sent;
  };
  const auto framed = [](Head head, std::size_t piece) {
    std::vector<std::uint8_t> bytes(sizeof head + piece, 0x5a);
    std::memcpy(bytes.data(), &head, sizeof head);
    return bytes;
  };
  send({});
  send({1, 2, 3});
  send(std::vector<std::uint8_t>(sizeof(Head), 0xff));
  send(std::vector<std::uint8_t>(60'000, 0xff));
  // As one of a writer that it has, but without its key; and with every size and place that makes no sense.
  Head head;
  head.writer = w.identity();
  head.sequence = 1;
  head.size = 100;
  send(framed(head, 100));
  for (const std::uint32_t size : {0u, 1u, 99u, 70'000u, 0xffff'ffffu}) {
    for (const std::uint32_t offset : {0u, 1u, static_cast<std::uint32_t>(kLargestPiece), 0xffff'fff0u}) {
      head.size = size;
      head.offset = offset;
      send(framed(head, 100));
    }
  }
  EXPECT_FALSE(take(r));
  EXPECT_EQ(described().at("foreign"), sent);
  EXPECT_EQ(described().at("lost"), 0);
  write(w, 5);
  EXPECT_EQ(numbers(take_until(r, 1)), range(5, 6));
}

TEST_F(Udp, WhatAWriterSentBeforeItWasKilledIsTaken) {
  Reader r = reader();
  Peer doomed(subject().plugin, domain_.id());
  ASSERT_EQ(doomed.ask(std::string("writer x ") + kTopic + " " + kType + " keep_all best_effort volatile 1"),
            "ok");
  ASSERT_EQ(doomed.ask("wait_matched x 1"), "ok");
  ASSERT_TRUE(eventually([&] { return r.matched_writers() == 1; }));
  ASSERT_EQ(doomed.ask("write x 0 20 5000"), "wrote 20");
  doomed.kill();
  EXPECT_TRUE(eventually([&] { return r.matched_writers() == 0; }));
  const auto taken = take_until(r, 20);
  EXPECT_EQ(numbers(taken), range(0, 20));
  for (const Taken& one : taken) EXPECT_TRUE(intact(one.bytes, 5000));
}

// ---- what is measured ----

TEST_F(Udp, NothingIsAllocatedForAMessageOnceItIsWarm) {
  for (const std::size_t size : {std::size_t{1000}, std::size_t{200'000}}) {
    const std::string topic = "rt/size" + std::to_string(size);
    Writer w = writer(usual_qos(), {}, topic.c_str());
    Reader r = reader(usual_qos(), {}, topic.c_str());
    ASSERT_TRUE(matched(w, r));
    const auto bytes = make_message(1, size);
    const perflab_bytes part{bytes.data(), bytes.size()};
    perflab_error error{};
    const auto exchange = [&] {
      perflab_sample sample{};
      ASSERT_EQ(w.write({&part, 1}, error), PERFLAB_OK) << error.text;
      ASSERT_EQ(r.take(sample, error), PERFLAB_OK) << error.text;
      r.return_sample(sample);
    };
    for (int i = 0; i < 3; ++i) exchange();
    ASSERT_GT(allocated, 0u) << "they are counted";
    const std::uint64_t before = allocated;
    for (int i = 0; i < 1000; ++i) exchange();
    EXPECT_EQ(allocated, before) << size;
  }
}

}  // namespace
}  // namespace perflab::conformance
