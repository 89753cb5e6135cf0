#include "base/control.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/error.h"

namespace perflab {
namespace {

using nlohmann::json;

class Controls : public testing::Test {
 protected:
  Controls() {
    std::array<int, 2> pair{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
    control_.emplace(pair[0]);
    perflab_.emplace(pair[1]);
  }

  static json received(Control& control, Nanoseconds timeout_ns, std::initializer_list<int> others = {}) {
    return control.receive(timeout_ns, others).value_or("nothing");
  }

  std::optional<Control> control_;
  std::optional<Channel> perflab_;  // perflab's end
};

TEST_F(Controls, CarryMessagesLineByLine) {
  perflab_->send(R"({"type":"one"})");
  perflab_->send(R"({"type":"two"})");
  EXPECT_EQ(received(*control_, Control::kForever), (json{{"type", "one"}}));
  EXPECT_EQ(received(*control_, 0), (json{{"type", "two"}}));
  EXPECT_EQ(received(*control_, 0), json("nothing"));
  control_->send({{"type", "three"}});
  EXPECT_TRUE(perflab_->read());
  EXPECT_EQ(perflab_->next_line().value_or("nothing"), R"({"type":"three"})");
}

TEST_F(Controls, NamesNeedNotBeText) {
  control_->send({{"name", "\x96"}});
  EXPECT_TRUE(perflab_->read());
  EXPECT_TRUE(json::accept(*perflab_->next_line()));
}

TEST_F(Controls, ALineThatIsNoMessageIsAnError) {
  perflab_->send("{");
  EXPECT_THROW(static_cast<void>(control_->receive(Control::kForever)), Failed);
}

TEST_F(Controls, EndWithTheOtherSideAfterItsLastMessage) {
  perflab_->send("1");
  perflab_->send("2");
  perflab_.reset();
  EXPECT_EQ(received(*control_, Control::kForever), json(1));
  EXPECT_FALSE(control_->closed()) << "there is a message left";
  EXPECT_EQ(received(*control_, Control::kForever), json(2));
  EXPECT_EQ(received(*control_, Control::kForever), json("nothing"));
  EXPECT_TRUE(control_->closed());
  control_->send("to nobody");
}

TEST_F(Controls, StopWaitingForSomethingElse) {
  const Event event;
  event.notify();
  EXPECT_EQ(received(*control_, Control::kForever, {event.number()}), json("nothing"));
  EXPECT_FALSE(control_->closed());
  Control alone(-1);
  EXPECT_FALSE(alone.attached());
  EXPECT_EQ(received(alone, Control::kForever, {event.number()}), json("nothing"));
}

// More than the socket holds: unsent messages are kept, and only superseded ones are dropped.
TEST_F(Controls, NeverWaitForAReader) {
  const std::string large(1 << 20, 'x');
  control_->send(large);
  control_->send_replaceable("left out");
  control_->send("kept");
  std::vector<std::string> lines;
  while (lines.size() < 2) {
    control_->receive(0);
    perflab_->read();
    while (auto line = perflab_->next_line()) lines.push_back(*line);
  }
  EXPECT_EQ(lines[0].size(), large.size() + 2);
  EXPECT_EQ(lines[1], "\"kept\"");
}

}  // namespace
}  // namespace perflab
