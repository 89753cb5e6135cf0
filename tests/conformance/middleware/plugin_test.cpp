// Loading a plug-in: one line that names the file and what is wrong with it.
#include "middleware/host/plugin.h"

#include <gtest/gtest.h>

#include <string>

namespace perflab::middleware {
namespace {

void expect_refused(const std::string& file, const std::string& reason) {
  try {
    Plugin::load(file);
    FAIL() << file << " was loaded";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(error.kind(), Error::Kind::kFailed);
    EXPECT_NE(text.find(file), std::string::npos) << text;
    EXPECT_NE(text.find(reason), std::string::npos) << text;
    EXPECT_EQ(text.find('\n'), std::string::npos) << text;
  }
}

TEST(Plugin, MissingFile) { expect_refused("no/such/plugin.so", "no such file"); }

TEST(Plugin, FileThatIsNoLibrary) { expect_refused("/proc/self/stat", "/proc/self/stat"); }

TEST(Plugin, LibraryThatIsNoPlugin) {
  expect_refused(PERFLAB_BAD_PLUGINS "/no_entry.so", "perflab_middleware_plugin");
}

TEST(Plugin, OtherInterfaceVersion) {
  expect_refused(PERFLAB_BAD_PLUGINS "/other_abi.so", "interface version 999");
}

TEST(Plugin, IdentityIsShownAsHexadecimalDigits) {
  perflab_identity identity{};
  identity.bytes[0] = 0x01;
  identity.bytes[15] = 0xfe;
  EXPECT_EQ(to_hex(identity), "010000000000000000000000000000fe");
}

}  // namespace
}  // namespace perflab::middleware
