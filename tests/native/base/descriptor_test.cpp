#include "base/descriptor.h"

#include <gtest/gtest.h>
#include <poll.h>

#include <array>
#include <cerrno>
#include <csignal>
#include <thread>

namespace perflab {
namespace {

bool is_open(int number) { return fcntl(number, F_GETFD) != -1; }

struct Pipe {
  Pipe() {
    std::array<int, 2> ends{-1, -1};
    EXPECT_EQ(pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
    from = Descriptor(ends[0]);
    to = Descriptor(ends[1]);
  }
  Descriptor from;
  Descriptor to;
};

TEST(Descriptor, IsClosedOnceByItsLastOwner) {
  int number = -1;
  {
    Pipe pipe;
    number = pipe.to.number();
    Descriptor other = std::move(pipe.to);
    EXPECT_FALSE(pipe.to.open());
    EXPECT_EQ(other.number(), number);
    EXPECT_TRUE(is_open(number));
  }
  EXPECT_FALSE(is_open(number));
}

TEST(Descriptor, ReleasedIsSomebodyElses) {
  Pipe pipe;
  const int number = pipe.to.release();
  EXPECT_FALSE(pipe.to.open());
  EXPECT_TRUE(is_open(number));
  EXPECT_TRUE(Descriptor(number).close());
  EXPECT_FALSE(is_open(number));
  EXPECT_TRUE(Descriptor().close());
}

TEST(Files, AreReadWholeOrSayWhyNot) {
  const auto text = read_file("/proc/self/status");
  ASSERT_TRUE(text);
  EXPECT_TRUE(text->starts_with("Name:"));
  EXPECT_FALSE(read_file("/no/such/file"));
  EXPECT_EQ(errno, ENOENT);
  EXPECT_FALSE(read_file("/proc/self"));
  EXPECT_EQ(errno, EISDIR);
}

TEST(Files, AreWrittenWholeOrSayWhyNot) {
  Pipe pipe;
  EXPECT_TRUE(write_all(pipe.to, "abc"));
  std::array<char, 8> got{};
  EXPECT_EQ(read(pipe.from.number(), got.data(), got.size()), 3);
  const Descriptor full(open("/dev/full", O_WRONLY | O_CLOEXEC));
  EXPECT_FALSE(write_all(full, "abc"));
  EXPECT_EQ(errno, ENOSPC);
}

TEST(Event, IsReadableFromItsAnnouncementUntilItIsTaken) {
  const Event event;
  const auto readable = [&] {
    pollfd waiting{event.number(), POLLIN, 0};
    return poll(&waiting, 1, 0) == 1;
  };
  EXPECT_FALSE(readable());
  EXPECT_FALSE(event.take());
  event.notify();
  event.notify();
  EXPECT_TRUE(readable());
  EXPECT_TRUE(event.take());
  EXPECT_FALSE(readable());
}

// In a thread of its own, whose mask ends with it.
TEST(Signals, AreReadInsteadOfDelivered) {
  std::thread([] {
    const Descriptor signals = take_signals({SIGUSR1, SIGUSR2});
    EXPECT_EQ(next_signal(signals), 0);
    pthread_kill(pthread_self(), SIGUSR2);
    EXPECT_EQ(next_signal(signals), SIGUSR2);
    EXPECT_EQ(next_signal(signals), 0);
  }).join();
}

}  // namespace
}  // namespace perflab
