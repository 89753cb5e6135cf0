// Content filters: a reader receives the messages that its filter wants, and no others.
#include <algorithm>

#include "fixture.h"
#include "peer.h"

namespace perflab::conformance {
namespace {

constexpr std::uint64_t kMessages = 100;

std::vector<std::uint64_t> even(std::uint64_t end) {
  std::vector<std::uint64_t> all;
  for (std::uint64_t number = 0; number < end; number += 2) all.push_back(number);
  return all;
}

class Filters : public Conformance {
 protected:
  Reader filtered_reader(const perflab_qos& qos = keep_all(), const perflab_listener& listener = {},
                         const perflab_key* key = nullptr) {
    return participant().create_reader(
        {.topic = kTopic, .type = kType, .qos = qos, .key = key, .filters = {even_messages()}}, listener);
  }
  Writer informed_writer(const perflab_qos& qos = keep_all(), const perflab_key* key = nullptr) {
    return participant().create_writer({.topic = kTopic, .type = kType, .qos = qos, .key = key, .filters = {even_messages()}});
  }
  static void write_all(Writer& writer) {
    for (std::uint64_t number = 0; number < kMessages; ++number) write(writer, number, 36 + number);
  }
  // What comes before a last message that is wanted: then nothing else can come.
  static std::vector<std::uint64_t> received(Reader& reader) {
    std::vector<std::uint64_t> all = numbers(take_until(reader, kMessages / 2));
    const std::vector<std::uint64_t> more = numbers(take_until_quiet(reader, 100ms));
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
};

TEST_F(Filters, ReadersReceiveWhatTheyWantAndOthersAll) {
  for (const bool informed : {false, true}) {
    SCOPED_TRACE(informed ? "the writer knows the filter" : "the writer does not know the filter");
    PERFLAB_CREATE_OR_REFUSE(r, filtered_reader(), "filters");
    Reader all = reader();
    Writer w = informed ? informed_writer() : writer();
    ASSERT_TRUE(matched(w, r, 2));
    ASSERT_TRUE(matched(w, all, 2));
    write_all(w);
    EXPECT_EQ(received(r), even(kMessages));
    EXPECT_EQ(numbers(take_until(all, kMessages)), range(0, kMessages));
  }
}

TEST_F(Filters, OfAnotherProcessToo) {
  for (const bool informed : {false, true}) {
    SCOPED_TRACE(informed ? "the writer knows the filter" : "the writer does not know the filter");
    PERFLAB_CREATE_OR_REFUSE(r, filtered_reader(), "filters");
    if (!plugin_.capabilities().across_processes) GTEST_SKIP() << "one process alone";
    Peer peer(subject().plugin, domain_.id());
    const std::string writer = "writer w " + std::string(kTopic) + " " + kType + " keep_all reliable volatile 1";
    ASSERT_EQ(peer.ask(writer + (informed ? " filtered" : "")), "ok");
    ASSERT_TRUE(eventually([&] { return r.matched_writers() == 1; }));
    ASSERT_EQ(peer.ask("wait_matched w 1"), "ok");
    ASSERT_EQ(peer.ask("write w 0 " + std::to_string(kMessages) + " 36"), "wrote " + std::to_string(kMessages));
    EXPECT_EQ(received(r), even(kMessages));
  }
}

TEST_F(Filters, WhatIsNotWantedTakesNoRoomInTheHistory) {
  perflab_qos qos = usual_qos();
  qos.depth = 3;
  PERFLAB_CREATE_OR_REFUSE(r, filtered_reader(qos), "filters");
  Writer w = informed_writer();
  ASSERT_TRUE(matched(w, r));
  for (const std::uint64_t number : {0, 2, 4, 5, 7, 9, 11}) write(w, number);
  std::vector<std::uint64_t> got;
  EXPECT_TRUE(eventually([&] {
    for (const std::uint64_t number : numbers(take_until_quiet(r, 100ms))) got.push_back(number);
    return got.size() >= 3;
  }));
  EXPECT_EQ(got, (std::vector<std::uint64_t>{0, 2, 4}));
}

TEST_F(Filters, AndKeysGoTogether) {
  if (!plugin_.capabilities().instances || may_refuse("keys")) GTEST_SKIP() << "no keys";
  PERFLAB_CREATE_OR_REFUSE(r, filtered_reader(keep_all(), {}, key_of_messages()), "filters");
  Writer w = informed_writer(keep_all(), key_of_messages());
  ASSERT_TRUE(eventually([&] { return r.matched_writers() == 1; }));
  write_all(w);
  std::vector<std::uint64_t> all = received(r);
  std::ranges::sort(all);
  EXPECT_EQ(all, even(kMessages));
}

// Which may lie in memory that the ends share.
TEST_F(Filters, MessagesOfFixedSizeAreFilteredToo) {
  constexpr std::size_t kSize = 36;
  const auto settings = [](const std::vector<perflab_filter>& filters) {
    return middleware::EndpointSettings{.topic = kTopic, .type = kType, .fixed_size = kSize, .qos = keep_many(), .filters = filters};
  };
  PERFLAB_CREATE_OR_REFUSE(r, participant().create_reader(settings({even_messages()})), "filters");
  Writer w = participant().create_writer(settings({even_messages()}));
  ASSERT_TRUE(matched(w, r));
  for (std::uint64_t number = 0; number < kMessages; ++number) write(w, number, kSize);
  EXPECT_EQ(received(r), even(kMessages));
}

TEST_F(Filters, AreRefusedWhereThePluginHasNone) {
  if (plugin_.capabilities().filters) GTEST_SKIP() << "it has them";
  EXPECT_THROW(filtered_reader(), Unsupported);
  EXPECT_TRUE(may_refuse("filters"));
}

}  // namespace
}  // namespace perflab::conformance
