#include "traceview/functions.h"

#include <gtest/gtest.h>
#include <link.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

// In a named name space and not static: it has a symbol, with a mangled name.
namespace shapes {
struct Square {
  double side;
  [[nodiscard]] double area(int times) const;
};
[[gnu::noinline]] double Square::area(int times) const { return side * side * times; }
}  // namespace shapes

namespace perflab::traceview {
namespace {

constexpr std::int32_t kThread = 0, kOther = 1, kProcess = 3;

TEST(FunctionCalls, NestByEntryAndExitOfEachThread) {
  FunctionModel model;
  model.entry(kThread, kProcess, 10, 0x100);
  model.entry(kOther, kProcess, 11, 0x100);
  model.entry(kThread, kProcess, 12, 0x200);
  model.exit(kThread, kProcess, 20, 0x200);
  model.exit(kOther, kProcess, 25, 0x100);
  model.exit(kThread, kProcess, 30, 0x100);
  model.finish();
  const FunctionCalls& calls = model.calls();
  ASSERT_EQ(calls.thread.size(), 3u);
  EXPECT_EQ(calls.end_ns.at(0), 30);
  EXPECT_EQ(calls.end_ns.at(1), 25);
  EXPECT_EQ(calls.end_ns.at(2), 20);
  EXPECT_FALSE(calls.parent.valid(0));
  EXPECT_FALSE(calls.parent.valid(1));
  EXPECT_EQ(calls.parent.at(2), 0);
  EXPECT_EQ(calls.function[0], calls.function[1]);
  EXPECT_EQ(model.functions().address.size(), 2u);
}

TEST(FunctionCalls, OfRecursionEndInnermostFirst) {
  FunctionModel model;
  for (std::int64_t time : {1, 2, 3}) model.entry(kThread, kProcess, time, 0x100);
  for (std::int64_t time : {4, 5, 6}) model.exit(kThread, kProcess, time, 0x100);
  model.finish();
  for (std::size_t i = 0; i < 3; ++i) EXPECT_EQ(model.calls().end_ns.at(i), static_cast<std::int64_t>(6 - i));
  EXPECT_EQ(model.calls().parent.at(2), 1);
  EXPECT_EQ(model.counts().entries_without_exit, 0u);
}

TEST(FunctionCalls, WithoutTheirExitHaveNoEndAndDoNotHoldUpTheirCallers) {
  FunctionModel model;
  model.entry(kThread, kProcess, 1, 0x100);
  model.entry(kThread, kProcess, 2, 0x200);
  model.exit(kThread, kProcess, 5, 0x100);
  model.entry(kThread, kProcess, 6, 0x300);
  model.finish();
  EXPECT_EQ(model.calls().end_ns.at(0), 5);
  EXPECT_FALSE(model.calls().end_ns.valid(1));
  EXPECT_FALSE(model.calls().end_ns.valid(2));
  EXPECT_FALSE(model.calls().parent.valid(2));
  EXPECT_EQ(model.counts().entries_without_exit, 2u);
}

TEST(FunctionCalls, ExitsWithoutEntryAreOnlyCounted) {
  FunctionModel model;
  model.exit(kThread, kProcess, 1, 0x100);
  model.entry(kThread, kProcess, 2, 0x200);
  model.exit(kThread, kProcess, 3, 0x100);
  model.exit(kThread, kProcess, 4, 0x200);
  model.finish();
  EXPECT_EQ(model.calls().end_ns.at(0), 4);
  EXPECT_EQ(model.counts().exits_without_entry, 2u);
}

TEST(FunctionCalls, AnExitThatDoesNotSayOfWhatEndsTheInnermost) {
  FunctionModel model;
  model.entry(kThread, kProcess, 1, 0x100);
  model.entry(kThread, kProcess, 2, 0x200);
  model.exit(kThread, kProcess, 3, std::nullopt);
  model.finish();
  EXPECT_EQ(model.calls().end_ns.at(1), 3);
  EXPECT_FALSE(model.calls().end_ns.valid(0));
}

// This program: its position and size in memory.
struct Self {
  std::uint64_t base = 0, bias = 0, size = 0;
  std::string path = std::filesystem::read_symlink("/proc/self/exe").string();
  Self() {
    dl_iterate_phdr(
        [](dl_phdr_info* info, std::size_t, void* data) {
          auto& self = *static_cast<Self*>(data);
          self.bias = info->dlpi_addr;
          std::uint64_t first = UINT64_MAX, last = 0;
          for (int i = 0; i < info->dlpi_phnum; ++i) {
            if (info->dlpi_phdr[i].p_type != PT_LOAD) continue;
            first = std::min<std::uint64_t>(first, info->dlpi_phdr[i].p_vaddr);
            last = std::max<std::uint64_t>(last, info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz);
          }
          self.base = self.bias + first - first % 4096;
          self.size = last - (first - first % 4096);
          return 1;  // the first is the program
        },
        this);
  }
  [[nodiscard]] bool is_position_independent() const { return bias != 0; }
};

std::uint64_t address_of_area() {
  // A pointer to a member function that is not virtual begins with its address.
  const auto member = &shapes::Square::area;
  std::uint64_t address = 0;
  std::memcpy(&address, &member, sizeof(address));
  return address;
}

TEST(FunctionSymbols, ComeFromTheFileThatLiesAtTheAddress) {
  const Self self;
  const volatile double side = 2;
  ASSERT_EQ((shapes::Square{side}.area(2)), 8.0);
  FunctionModel model;
  model.entry(kThread, kProcess, 1, address_of_area());  // before the trace has the mappings
  model.binary(kProcess, self.base, self.size, self.path, self.is_position_independent());
  model.entry(kThread, kProcess, 2, address_of_area() + 1);
  model.entry(kThread, kProcess + 1, 3, address_of_area());
  model.entry(kThread, kProcess, 4, self.base + self.size);
  model.finish();
  const Functions& functions = model.functions();
  ASSERT_EQ(functions.symbol.size(), 4u);
  EXPECT_EQ(functions.symbol[0], "shapes::Square::area(int) const");
  EXPECT_EQ(functions.file[0], self.path);
  EXPECT_EQ(functions.symbol[1], "shapes::Square::area(int) const");
  EXPECT_FALSE(functions.symbol.valid(2)) << "nothing is known of the other process";
  EXPECT_FALSE(functions.symbol.valid(3)) << "beyond the program";
  EXPECT_FALSE(functions.file.valid(3));
  EXPECT_EQ(model.counts().functions_of_unknown_binaries, 2u);
}

TEST(FunctionSymbols, AreNotTakenFromAnotherBuild) {
  const Self self;
  const auto symbols = SymbolTable::read(self.path);
  ASSERT_TRUE(symbols);
  if (symbols->build_id().empty()) GTEST_SKIP() << "this program was linked without a build id";
  for (const bool same : {true, false}) {
    auto id = symbols->build_id();
    if (!same) id.back() ^= 1;
    FunctionModel model;
    model.binary(kProcess, self.base, self.size, self.path, self.is_position_independent());
    model.build_id(kProcess, self.base, id);
    model.entry(kThread, kProcess, 1, address_of_area());
    model.finish();
    EXPECT_EQ(model.functions().symbol.valid(0), same);
    EXPECT_EQ(model.counts().functions_of_other_builds, same ? 0u : 1u);
  }
}

// Reading them would block forever, or never end.
TEST(FunctionSymbols, AreReadFromFilesOfProgramsAlone) {
  const std::string large = ::testing::TempDir() + "perflab_large";
  std::ofstream(large) << "text";
  std::filesystem::resize_file(large, std::uintmax_t{3} << 30U);
  const std::string link = ::testing::TempDir() + "perflab_link";
  std::filesystem::remove(link);
  std::filesystem::create_symlink("/proc/self/exe", link);
  for (const std::string& path : {std::string("/proc/kmsg"), std::string("/dev/zero"),
                                  std::string("/proc/cpuinfo"), std::string("/sys/kernel/notes"), large}) {
    EXPECT_FALSE(SymbolTable::read(path)) << path;
  }
  EXPECT_TRUE(SymbolTable::read(link));  // it leads out of /proc
  std::filesystem::remove(link);
  std::filesystem::remove(large);
}

TEST(FunctionSymbols, OfFilesThatAreNotHereAreNotKnown) {
  const std::string text = ::testing::TempDir() + "perflab_no_elf";
  std::ofstream(text) << "text";
  for (const std::string& path :
       {std::string("/nowhere/at/all"), std::string("linux-vdso.so.1"), text, ::testing::TempDir()}) {
    FunctionModel model;
    model.binary(kProcess, 0x1000, 0x1000, path, true);
    model.entry(kThread, kProcess, 1, 0x1800);
    model.finish();
    EXPECT_FALSE(model.functions().symbol.valid(0));
    EXPECT_EQ(model.functions().file[0], path);
    EXPECT_EQ(model.counts().functions_of_absent_files, 1u);
  }
  std::filesystem::remove(text);
}

TEST(FunctionSymbols, OfALibraryThatTookThePlaceOfAnotherAreOfTheNewOne) {
  FunctionModel model;
  model.binary(kProcess, 0x1000, 0x1000, "/nowhere/first.so", true);
  model.entry(kThread, kProcess, 1, 0x1800);
  model.unload(kProcess, 0x1000);
  model.binary(kProcess, 0x1000, 0x1000, "/nowhere/second.so", true);
  model.entry(kThread, kProcess, 2, 0x1800);
  model.finish();
  ASSERT_EQ(model.functions().file.size(), 2u);
  EXPECT_EQ(model.functions().file[0], "/nowhere/first.so");
  EXPECT_EQ(model.functions().file[1], "/nowhere/second.so");
  EXPECT_EQ(model.calls().function[1], 1);
}

TEST(FunctionSymbols, OfCutAndBrokenFilesDoNotReadBeyondThem) {
  const Self self;
  std::ifstream file(self.path, std::ios::binary);
  std::vector<char> start(4096);
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  const std::string path = ::testing::TempDir() + "perflab_broken_elf";
  for (std::size_t size = 0; size < start.size(); size += 37) {
    std::ofstream(path, std::ios::binary) << std::string(start.data(), size);
    const auto symbols = SymbolTable::read(path);
    if (symbols) {
      EXPECT_FALSE(symbols->name_at(0x1000));
    }
  }
  for (std::size_t at = 16; at < 64; ++at) {
    auto broken = start;
    broken[at] = static_cast<char>(0xff);
    std::ofstream(path, std::ios::binary) << std::string(broken.data(), broken.size());
    (void)SymbolTable::read(path);
  }
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace perflab::traceview
