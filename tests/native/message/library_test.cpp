// Known interfaces, their names, and the checks of nested structs.
#include "message/library.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <string_view>
#include <vector>

#include "../rows.h"
#include "base/error.h"

namespace perflab::message {
namespace {

namespace fs = std::filesystem;

template <typename Action>
std::string error_of(Action action) {
  try {
    action();
  } catch (const BadInput& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing was refused";
  return {};
}

// A folder that is removed with its test.
class Folders : public testing::Test {
 protected:
  Folders() : root_(fs::path(testing::TempDir()) / ("interfaces." + std::to_string(getpid()))) {
    fs::remove_all(root_);
    fs::create_directories(root_);
  }
  ~Folders() override { fs::remove_all(root_); }

  fs::path write(const fs::path& file, std::string_view text) const {
    fs::create_directories((root_ / file).parent_path());
    std::ofstream(root_ / file, std::ios::binary) << text;
    return root_ / file;
  }
  std::string refused(const fs::path& folder) const {
    Library library;
    return error_of([&] { library.add_folder(folder); });
  }

  const fs::path root_;
};

constexpr InterfaceText kBrought[] = {
    {"std_msgs", "msg", "Header", "builtin_interfaces/Time stamp\nstring frame_id\n"},
    {"builtin_interfaces", "msg", "Time", "int32 sec\nuint32 nanosec\n"},
    {"service_msgs", "msg", "ServiceEventInfo", "uint8 event_type\nbuiltin_interfaces/Time stamp\n"},
    {"std_srvs", "srv", "SetBool", "bool data\n---\nbool success\n"},
    {"perflab_msgs", "msg", "Header", "int64 intended_ns\n"},
    {"perflab_msgs", "msg", "Stamped10b", "Header header\nuint8[10] data\n"},
    {"perflab_msgs", "srv", "Stamped10b", "---\n"},
    {"perflab_msgs", "msg", "Stamped9Float32", "Header header\nfloat32[9] data\n"},
    {"perflab_msgs", "msg", "Array1k", "uint8[1024] array\n"},
    {"perflab_msgs", "msg", "PointCloud1m", "uint8[] data\n"},
};

const std::string& inner_name(const Definition& type, std::size_t index) {
  return std::get<std::string>(type.fields.at(index).type.element);
}

// ---- names

struct Name {
  std::string text;
  std::string full;  // "": unknown
};
class FullNames : public testing::TestWithParam<Name> {};

TEST_P(FullNames, AreFoundForShortOnes) {
  const Library library(kBrought);
  EXPECT_EQ(library.full_name(GetParam().text).value_or(""), GetParam().full);
}

INSTANTIATE_TEST_SUITE_P(, FullNames,
                         rows::of<Name>({{"std_msgs/msg/Header", "std_msgs/msg/Header"},
                                         {"std_msgs/Header", "std_msgs/msg/Header"},
                                         {"std_srvs/SetBool", "std_srvs/srv/SetBool"},
                                         {"std_srvs/srv/SetBool_Request", "std_srvs/srv/SetBool_Request"},
                                         {"std_srvs/SetBool_Event", "std_srvs/srv/SetBool_Event"},
                                         {"perflab_msgs/Stamped10b", "perflab_msgs/msg/Stamped10b"},
                                         {"stamped10b", "perflab_msgs/msg/Stamped10b"},
                                         {"stamped9_float32", "perflab_msgs/msg/Stamped9Float32"},
                                         {"array1k", "perflab_msgs/msg/Array1k"},
                                         {"point_cloud1m", "perflab_msgs/msg/PointCloud1m"},
                                         {"Stamped10b", ""},
                                         {"set_bool", ""},
                                         {"std_msgs/msg/Nothing", ""},
                                         {"std_srvs/srv/SetBool_Goal", ""},
                                         {"a/b/c/d", ""},
                                         {"", ""},
                                         {"/", ""}}),
                         rows::by_text);

TEST(FullName, ThatMeansSeveralIsRefused) {
  Library library;
  library.add_text("perflab_msgs/msg/XYZPoint", "", "a");
  library.add_text("perflab_msgs/msg/XyzPoint", "", "b");
  EXPECT_EQ(error_of([&] { static_cast<void>(library.full_name("xyz_point")); }),
            "'xyz_point' is ambiguous: perflab_msgs/msg/XYZPoint or perflab_msgs/msg/XyzPoint; "
            "use one of these");
  library.add_text("pkg/srv/Do", "---\n", "d");
  library.add_text("pkg/action/Do", "---\n---\n", "e");
  EXPECT_EQ(error_of([&] { static_cast<void>(library.full_name("pkg/Do")); }),
            "'pkg/Do' is ambiguous: pkg/srv/Do or pkg/action/Do; use one of these");
}

TEST(AddText, WantsAFullName) {
  Library library;
  EXPECT_EQ(error_of([&] { library.add_text("pkg/Name", "", "x.msg"); }),
            "x.msg: 'pkg/Name' is not an interface name; write PACKAGE/msg/NAME, PACKAGE/srv/NAME or "
            "PACKAGE/action/NAME");
}

// ---- nested structs

TEST(Header, IsThatOfThePackageAndElseOfStdMsgs) {
  Library library(kBrought);
  library.add_text("pkg/msg/Name", "Header header\n", "Name.msg");
  EXPECT_EQ(inner_name(library.find("perflab_msgs/msg/Stamped10b"), 0), "perflab_msgs/msg/Header");
  EXPECT_EQ(inner_name(library.find("pkg/msg/Name"), 0), "std_msgs/msg/Header");
  library.add_text("pkg/msg/Header", "int32 a\n", "Header.msg");
  EXPECT_EQ(inner_name(library.find("pkg/msg/Name"), 0), "pkg/msg/Header");
}

TEST(ServicePart, NeedsOnlyWhatItIsMadeOf) {
  Library library;
  library.add_text("pkg/srv/Do", "int32 a\n---\npkg/Missing b\n", "Do.srv");
  EXPECT_EQ(library.find("pkg/srv/Do_Request").fields.size(), 1U);
  EXPECT_EQ(error_of([&] { library.find("pkg/srv/Do_Response"); }),
            "Do.srv:3:1: unknown type 'pkg/Missing'; no file 'pkg/msg/Missing.msg' is known");
  EXPECT_EQ(error_of([&] { library.find("pkg/srv/Do_Event"); }),
            "Do.srv: unknown type 'service_msgs/ServiceEventInfo'; no file "
            "'service_msgs/msg/ServiceEventInfo.msg' is known");
}

TEST(Service, AsAWholeIsNoMessage) {
  Library library(kBrought);
  EXPECT_EQ(error_of([&] { library.find("std_srvs/srv/SetBool"); }),
            "'std_srvs/srv/SetBool' is not a message, but consists of std_srvs/srv/SetBool_Request, "
            "std_srvs/srv/SetBool_Response or std_srvs/srv/SetBool_Event");
}

TEST(Find, OffersTheNearestName) {
  Library library(kBrought);
  EXPECT_EQ(error_of([&] { library.find("std_msgs/msg/Heder"); }),
            "unknown type 'std_msgs/Heder'; did you mean 'std_msgs/Header'?");
  EXPECT_EQ(error_of([&] { library.find("nothing at all\n"); }),
            "unknown type 'nothing at all\\x0a'; no such interface is known");
}

TEST(RecursiveTypes, AreRefusedWithTheCycle) {
  Library library;
  library.add_text("pkg/msg/A", "int32 a\nB[] b\n", "A.msg");
  library.add_text("pkg/msg/B", "C c\n", "B.msg");
  library.add_text("pkg/msg/C", "\nB[<=3] back\n", "C.msg");
  library.add_text("pkg/msg/Own", "Own own\n", "Own.msg");
  for (int i = 0; i < 2; ++i) {  // as it was after the first refusal
    EXPECT_EQ(error_of([&] { library.find("pkg/msg/A"); }),
              "C.msg:2:1: pkg/B contains itself: pkg/B -> pkg/C -> pkg/B; ROS 2 has no recursive types");
  }
  EXPECT_EQ(error_of([&] { library.find("pkg/msg/Own"); }),
            "Own.msg:1:1: pkg/Own contains itself: pkg/Own -> pkg/Own; ROS 2 has no recursive types");
}

// pkg/msg/N1 contains N2, and so on to the last, which contains what is given.
Library chain(std::size_t length, const std::string& end) {
  Library library;
  for (std::size_t i = 1; i <= length; ++i) {
    const std::string next = i < length ? "N" + std::to_string(i + 1) + " next\n" : end;
    library.add_text("pkg/msg/N" + std::to_string(i), next, "N" + std::to_string(i) + ".msg");
  }
  return library;
}

TEST(LongCycle, IsShownInPart) {
  Library library = chain(20, "N1 first\n");
  EXPECT_EQ(error_of([&] { library.find("pkg/msg/N1"); }),
            "N20.msg:1:1: pkg/N1 contains itself: pkg/N1 -> pkg/N2 -> pkg/N3 -> ... -> pkg/N18 -> pkg/N19 -> "
            "pkg/N20 -> pkg/N1; ROS 2 has no recursive types");
}

TEST(Depth, IsLimited) {
  EXPECT_NO_THROW(chain(kMaxDepth, "int32 a\n").find("pkg/msg/N1"));
  Library deeper = chain(kMaxDepth + 1, "int32 a\n");
  EXPECT_EQ(error_of([&] { deeper.find("pkg/msg/N1"); }),
            "N64.msg:1:1: structs are nested more than 64 deep");
  // The same if the inner ones are already checked.
  EXPECT_NO_THROW(deeper.find("pkg/msg/N2"));
  EXPECT_EQ(error_of([&] { deeper.find("pkg/msg/N1"); }), "N1.msg:1:1: structs are nested more than 64 deep");
}

TEST(FixedSize, IsLimitedOverAllLevels) {
  Library library;
  library.add_text("pkg/msg/Inner", "uint8[1073741824] data\n", "Inner.msg");
  library.add_text("pkg/msg/Two", "int8 a\nInner b\n", "Two.msg");
  library.add_text("pkg/msg/Many", "Inner[4294967295] b\n", "Many.msg");
  library.add_text("pkg/msg/Sequence", "Inner[] a\nInner[<=4294967295] b\n", "Sequence.msg");
  EXPECT_NO_THROW(library.find("pkg/msg/Inner"));
  EXPECT_NO_THROW(library.find("pkg/msg/Sequence"));
  EXPECT_EQ(error_of([&] { library.find("pkg/msg/Two"); }),
            "Two.msg:2:1: field 'b' makes pkg/Two larger than 1073741824 bytes; use a sequence (T[]) "
            "for large data");
  EXPECT_EQ(error_of([&] { library.find("pkg/msg/Many"); }),
            "Many.msg:1:1: field 'b' makes pkg/Many larger than 1073741824 bytes; use a sequence (T[]) "
            "for large data");
}

TEST(Nesting, ThatDoublesAtEachLevelIsJudgedOnceForEachStruct) {
  Library library;
  for (int i = 1; i < 60; ++i) {
    const std::string next = "N" + std::to_string(i + 1) + "[] ";
    library.add_text("pkg/msg/N" + std::to_string(i), next + "a\n" + next + "b\n" + next + "c\n", "x");
  }
  library.add_text("pkg/msg/N60", "", "x");
  EXPECT_EQ(library.hash("pkg/msg/N1").size(), 71U);
}

// ---- texts

TEST(TextsOf, AreWhatAnotherLibraryNeeds) {
  Library library(kBrought);
  const auto texts = library.texts_of("std_srvs/srv/SetBool");
  std::vector<std::string> names;
  Library other;
  for (const auto& [name, text] : texts) {
    names.push_back(name);
    other.add_text(name, text, name);
  }
  EXPECT_EQ(names,
            (std::vector<std::string>{"builtin_interfaces/msg/Time", "service_msgs/msg/ServiceEventInfo",
                                      "std_srvs/srv/SetBool"}));
  EXPECT_EQ(other.hash("std_srvs/srv/SetBool"), library.hash("std_srvs/srv/SetBool"));
  EXPECT_EQ(library.texts_of("std_srvs/srv/SetBool_Request"), texts);
}

// ---- folders

TEST_F(Folders, AreSearchedForInterfacesWhereverTheyAre) {
  write("src/deep/pkg/msg/One.msg", "int32 a\n");
  write("src/deep/pkg/srv/Two.srv", "---\n");
  write("src/deep/pkg/action/Three.action", "---\n---\n");
  write("src/deep/pkg/msg/Two.srv", "no service: wrong folder");
  write("src/deep/pkg/msg/One.idl", "no interface file");
  write("src/deep/pkg/One.msg", "no package");
  fs::create_directory_symlink(root_ / "src", root_ / "src/deep/loop");
  fs::create_symlink(root_ / "nowhere", root_ / "src/dangling");
  Library library;
  library.add_folder(root_);
  EXPECT_EQ(library.names(), (std::vector<std::string>{"pkg/action/Three", "pkg/msg/One", "pkg/srv/Two"}));
  EXPECT_EQ(library.source_of("pkg/msg/One"), (root_ / "src/deep/pkg/msg/One.msg").string());
}

TEST_F(Folders, MayBeThePackageOrItsPartItself) {
  write("pkg/msg/One.msg", "int32 a\n");
  for (const char* const part : {"pkg", "pkg/msg", "pkg/msg/", "pkg/../pkg/."}) {
    Library library;
    library.add_folder(root_ / part);
    EXPECT_EQ(library.names(), std::vector<std::string>{"pkg/msg/One"}) << part;
  }
}

TEST_F(Folders, OfLaterCallsComeFirst) {
  write("a/pkg/msg/Name.msg", "Part p\n");
  write("a/pkg/msg/Part.msg", "int32 of_a\n");
  const fs::path later = write("b/pkg/msg/Part.msg", "int32 of_b\n");
  Library library;
  library.add_folder(root_ / "a");
  library.find("pkg/msg/Name");
  const std::string before = library.hash("pkg/msg/Name");
  library.add_folder(root_ / "b");
  EXPECT_EQ(library.find("pkg/msg/Part").fields.at(0).name, "of_b");
  EXPECT_EQ(library.source_of("pkg/msg/Part"), later.string());
  EXPECT_NE(library.hash("pkg/msg/Name"), before);
}

TEST_F(Folders, OfAnInstalledRos2AreThoseOfItsIndex) {
  const fs::path index = "share/ament_index/resource_index/rosidl_interfaces";
  write(index / "pkg", "msg/One.idl\nmsg/One.msg\nsrv/Two.srv\n");
  write(index / "std_msgs", "msg/Header.idl\nmsg/Header.msg\n");
  write(index / "perflab_msgs", "msg/Header.msg\n");
  const fs::path one = write("share/pkg/msg/One.msg", "std_msgs/Header header\n");
  write("share/pkg/srv/Two.srv", "---\nint32 a\n");
  write("share/pkg/msg/NotInTheIndex.msg", "int32 a\n");
  write("share/std_msgs/msg/Header.msg", "int32 of_ros\n");
  write("share/perflab_msgs/msg/Header.msg", "int32 of_ros\n");
  Library library(kBrought);
  library.add_installed(root_ / "none");  // a prefix without interfaces
  library.add_installed(root_);
  EXPECT_EQ(library.source_of("pkg/msg/One"), one.string());
  EXPECT_EQ(library.full_name("pkg/Two"), "pkg/srv/Two");
  EXPECT_FALSE(library.full_name("pkg/NotInTheIndex"));
  EXPECT_EQ(library.find("pkg/msg/One").fields.size(), 1u);
  EXPECT_EQ(library.find("std_msgs/msg/Header").fields.at(0).name, "of_ros");
  EXPECT_EQ(library.find("perflab_msgs/msg/Header").fields.at(0).name, "intended_ns") << "perflab's own stay";
}

TEST_F(Folders, WithEqualFilesOfOneNameAreTakenAndWithDifferentOnesRefused) {
  write("install/pkg/share/pkg/msg/Name.msg", "int32 a\n");
  write("src/pkg/msg/Name.msg", "int32 a\n");
  Library library;
  library.add_folder(root_);
  EXPECT_NO_THROW(library.find("pkg/msg/Name"));
  const fs::path changed = write("src/pkg/msg/Name.msg", "int32 b\n");
  library.add_folder(root_);
  EXPECT_EQ(error_of([&] { library.find("pkg/msg/Name"); }),
            changed.string() + ": differs from " + (root_ / "install/pkg/share/pkg/msg/Name.msg").string() +
                ", which has the same name; give a folder with one of them");
}

TEST_F(Folders, WithoutInterfacesAreRefused) {
  EXPECT_EQ(refused(root_ / "none"), (root_ / "none").string() + ": no such folder");
  const fs::path file = write("file", "");
  EXPECT_EQ(refused(file), file.string() + ": no such folder");
  EXPECT_EQ(refused(root_),
            root_.string() + ": contains no interface file; expected PACKAGE/msg/NAME.msg, "
                             "PACKAGE/srv/NAME.srv or PACKAGE/action/NAME.action");
}

TEST_F(Folders, ErrorsNameTheFile) {
  const fs::path bad = write("pkg/msg/Name.msg", "int32 a\nint32\n");
  const fs::path large = write("pkg/msg/Large.msg", std::string(5 << 20, '#'));
  const fs::path gone = write("pkg/msg/Gone.msg", "");
  Library library;
  library.add_folder(root_);
  fs::remove(gone);
  EXPECT_EQ(error_of([&] { library.find("pkg/msg/Name"); }),
            bad.string() +
                ":2:1: 'int32' is not followed by a name; write  TYPE NAME, TYPE NAME DEFAULT or TYPE "
                "NAME=VALUE");
  EXPECT_EQ(error_of([&] { library.find("pkg/msg/Large"); }),
            large.string() + ": 5242880 bytes; an interface file has at most 1048576");
  EXPECT_EQ(error_of([&] { library.find("pkg/msg/Gone"); }),
            gone.string() + ": cannot be read: No such file or directory");
}

TEST_F(Folders, ThatCannotBeReadAreRefused) {
  write("pkg/msg/Name.msg", "");
  const fs::path closed = root_ / "pkg/closed";
  fs::create_directory(closed);
  fs::permissions(closed, fs::perms::none);
  // Root can read everything, so act as nobody for a moment.
  const uid_t user = geteuid();
  constexpr uid_t kNobody = 65534;
  ASSERT_EQ(seteuid(user == 0 ? kNobody : user), 0);
  const std::string line = refused(root_);
  ASSERT_EQ(seteuid(user), 0);
  EXPECT_EQ(line, closed.string() + ": cannot be read: Permission denied");
  fs::permissions(closed, fs::perms::owner_all);
}

}  // namespace
}  // namespace perflab::message
