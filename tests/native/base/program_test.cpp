// Options, and error reporting.
#include "base/program.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "../rows.h"

namespace perflab {
namespace {

using nlohmann::json;

class Words {
 public:
  explicit Words(std::vector<std::string> words) : words_(std::move(words)) {
    words_.insert(words_.begin(), "program");
    for (std::string& word : words_) pointers_.push_back(word.data());
    pointers_.push_back(nullptr);
    optind = 0;  // restarts getopt(3)
  }
  [[nodiscard]] int count() const { return static_cast<int>(words_.size()); }
  [[nodiscard]] char** begin() { return pointers_.data(); }

 private:
  std::vector<std::string> words_;
  std::vector<char*> pointers_;
};

struct Given {
  std::string file;
  int depth = 0;
  double share = 0.0;
  bool check = false;
};

Options options_of(Given& given) {
  Options options("program --file FILE");
  options.text("file", given.file)
      .flag("check", given.check)
      .number("depth", given.depth, 1, 100)
      .number("share", given.share, 0.5, 1.0);
  return options;
}

TEST(Options, AreReadUpToTheFirstWordThatIsNone) {
  Given given;
  Words words({"--file", "a b", "--check", "--depth=7", "--share", "0.5", "run", "--file", "theirs"});
  const std::vector<std::string> rest = options_of(given).parse(words.count(), words.begin());
  EXPECT_EQ(given.file, "a b");
  EXPECT_EQ(given.depth, 7);
  EXPECT_EQ(given.share, 0.5);
  EXPECT_TRUE(given.check);
  EXPECT_EQ(rest, (std::vector<std::string>{"run", "--file", "theirs"}));
}

class WrongNumber : public testing::TestWithParam<const char*> {};

TEST_P(WrongNumber, IsAnsweredByWhatWouldBeRight) {
  Given given;
  Words words({"--depth", GetParam(), "--check"});
  try {
    options_of(given).parse(words.count(), words.begin());
    FAIL();
  } catch (const BadInput& error) {
    EXPECT_EQ(error.what(), "--depth " + std::string(GetParam()) + ": must be a number from 1 to 100");
    EXPECT_TRUE(given.check) << "what stands behind it was read";
  }
}

INSTANTIATE_TEST_SUITE_P(, WrongNumber, testing::Values("0", "101", "x", "7x", ""), rows::by_itself);

// An unknown option, or one without its value.
class WrongOption : public testing::TestWithParam<const char*> {};

TEST_P(WrongOption, IsAnsweredByTheUsage) {
  Given given;
  Words words({GetParam()});
  try {
    options_of(given).parse(words.count(), words.begin());
    FAIL();
  } catch (const Usage& error) {
    EXPECT_STREQ(error.what(), "usage: program --file FILE");
  }
}

INSTANTIATE_TEST_SUITE_P(, WrongOption, testing::Values("--unknown", "--depth", "-x"), rows::by_itself);

// A program with a control channel to the test.
class Programs : public testing::Test {
 protected:
  Programs() {
    std::array<int, 2> pair{};
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair.data()), 0);
    theirs_ = pair[0];
    perflab_.emplace(pair[1]);
  }
  int run(std::vector<std::string> given, const std::function<void(Control&)>& body) {
    Program program("program", "[--control-fd N]", WhenPerflabEnds::kFinish);
    given.insert(given.end(), {"--control-fd", std::to_string(theirs_)});
    Words words(std::move(given));
    testing::internal::CaptureStderr();
    const int code = program.run(words.count(), words.begin(), body);
    errors_ = testing::internal::GetCapturedStderr();
    perflab_->read();
    return code;
  }
  json said() {
    const auto line = perflab_->next_line();
    return line ? json::parse(*line) : json();
  }

  int theirs_ = -1;
  std::optional<Channel> perflab_;
  std::string errors_;
};

TEST_F(Programs, RunWithTheirChannel) {
  EXPECT_EQ(run({}, [](Control& control) { control.send("here"); }), 0);
  EXPECT_EQ(said(), json("here"));
  EXPECT_EQ(said(), json());
  EXPECT_EQ(errors_, "");
}

struct Thrown {
  const char* name;  // kind of error
  void (*body)(Control&);
  int code;
  const char* text;
};
class FailedProgram : public Programs, public testing::WithParamInterface<Thrown> {};

TEST_P(FailedProgram, ReportsWhatWentWrongAndExitsByItsKind) {
  const auto& [name, body, code, text] = GetParam();
  EXPECT_EQ(run({}, body), code);
  EXPECT_EQ(said(), (json{{"type", "error"}, {"kind", name}, {"text", text}}));
  EXPECT_EQ(errors_, "program: " + std::string(text) + "\n");
}

INSTANTIATE_TEST_SUITE_P(
    , FailedProgram,
    rows::of<Thrown>({{"unsupported", [](Control&) { throw Unsupported("no such kernel"); }, 3,
                       "no such kernel"},
                      {"bad_input", [](Control&) { throw BadInput("no such file"); }, 2, "no such file"},
                      // Exceptions of libraries as well.
                      {"failed", [](Control&) { throw std::runtime_error("x"); }, 1, "x"}}),
    rows::by_name);

TEST_F(Programs, ReportBadOptionsOnTheChannelThatStandsBehindThem) {
  EXPECT_EQ(run({"--unknown"}, [](Control&) { ADD_FAILURE() << "was run"; }), 2);
  EXPECT_EQ(said(),
            (json{{"type", "error"}, {"kind", "bad_input"}, {"text", "usage: program [--control-fd N]"}}));
  EXPECT_EQ(errors_, "usage: program [--control-fd N]\n");
}

}  // namespace
}  // namespace perflab
