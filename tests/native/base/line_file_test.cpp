#include "base/line_file.h"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <csignal>
#include <filesystem>

#include "base/error.h"

namespace perflab {
namespace {

// A file in the test's folder, whose size the kernel limits.
class LineFiles : public testing::Test {
 protected:
  LineFiles() : path_(testing::TempDir() + "perflab_line_file_" + std::to_string(getpid())) {
    getrlimit(RLIMIT_FSIZE, &before_);
    std::signal(SIGXFSZ, SIG_IGN);
  }
  ~LineFiles() override {
    setrlimit(RLIMIT_FSIZE, &before_);
    std::filesystem::remove(path_);
  }
  void allow(rlim_t bytes) const {
    const rlimit limit{bytes, before_.rlim_max};
    ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &limit), 0);
  }
  [[nodiscard]] std::string content() const { return read_file(path_).value_or("cannot be read"); }

  const std::string path_;
  rlimit before_{};
};

TEST_F(LineFiles, HaveWhatWasWritten) {
  LineFile file(path_);
  EXPECT_TRUE(file.write("one\n"));
  EXPECT_TRUE(file.write("tw"));
  EXPECT_TRUE(file.write("o\nthree\n"));
  EXPECT_EQ(content(), "one\ntwo\nthree\n");
  EXPECT_EQ(file.error(), "");
}

TEST_F(LineFiles, KeepWholeLinesWhereNotAllFits) {
  LineFile file(path_);
  allow(10);
  EXPECT_FALSE(file.write("one\ntwo\nthree\n"));
  EXPECT_EQ(content(), "one\ntwo\n");
  EXPECT_EQ(file.error(), path_ + ": File too large");
  allow(before_.rlim_cur);
  EXPECT_TRUE(file.write("four\n"));
  EXPECT_EQ(content(), "one\ntwo\nfour\n");
}

TEST_F(LineFiles, TakeBackALineOfWhichPiecesGotThere) {
  LineFile file(path_);
  allow(10);
  EXPECT_TRUE(file.write("one\n"));
  EXPECT_TRUE(file.write("tw"));
  EXPECT_FALSE(file.write("o and more\n"));
  EXPECT_EQ(content(), "one\n");
  EXPECT_TRUE(file.write("tw"));
  file.take_back("not whole");
  EXPECT_EQ(content(), "one\n");
  EXPECT_EQ(file.error(), path_ + ": not whole");
}

TEST_F(LineFiles, SayWhichFileCannotBeMade) {
  try {
    const LineFile file("/no/such/folder/file");
    FAIL();
  } catch (const Failed& error) {
    EXPECT_STREQ(error.what(), "/no/such/folder/file: cannot be written: No such file or directory");
  }
}

}  // namespace
}  // namespace perflab
