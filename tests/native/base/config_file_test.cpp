#include "base/config_file.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <stdexcept>

namespace perflab {
namespace {

class ConfigFiles : public testing::Test {
 protected:
  ~ConfigFiles() override { std::filesystem::remove(path_); }
  void write(const std::string& text) const { std::ofstream(path_) << text; }
  // The message about the file, after its name.
  [[nodiscard]] std::string complaint() const {
    try {
      static_cast<void>(read());
    } catch (const BadInput& error) {
      const std::string line = error.what();
      EXPECT_TRUE(line.starts_with(path_ + ": ")) << line;
      return line.substr(path_.size() + 2);
    }
    return "";
  }
  [[nodiscard]] int read() const {
    return read_config_file(path_, [](const nlohmann::json& document) {
      const int number = document.at("number").get<int>();
      if (number < 0) throw std::invalid_argument("number: must not be negative");
      return number;
    });
  }

  const std::string path_ = testing::TempDir() + "perflab_config_" + std::to_string(getpid());
};

TEST_F(ConfigFiles, AreWhatIsMadeOfTheirDocument) {
  write(R"({"number": 3})");
  EXPECT_EQ(read(), 3);
}

TEST_F(ConfigFiles, ThatAreWrongHaveALineWithTheirName) {
  EXPECT_EQ(complaint(), "cannot be read");
  write(R"({"number": -1})");
  EXPECT_EQ(complaint(), "number: must not be negative");
  write("{");
  EXPECT_NE(complaint().find("parse error"), std::string::npos);
  write("{}");
  EXPECT_NE(complaint().find("number"), std::string::npos);
}

}  // namespace
}  // namespace perflab
