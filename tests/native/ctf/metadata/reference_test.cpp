// Metadata that tracers wrote, from recorded traces. The folder with the archives is named by
// PERFLAB_REFERENCE_TRACES; without it, it is ../shared/traces beside the repository.
#include <gtest/gtest.h>
#include <sys/wait.h>

#include <cstdlib>
#include <map>

#include "ctf/metadata.h"

namespace perflab::ctf {
namespace {

using Path = std::filesystem::path;

Path archives() {
  const char* named = std::getenv("PERFLAB_REFERENCE_TRACES");
  return named != nullptr && *named != '\0' ? Path(named) : Path(PERFLAB_SOURCE_DIR) / "../shared/traces";
}

// The metadata files of an archive, by their way inside it; empty, with a message, if there is no such
// archive.
class Archive {
 public:
  explicit Archive(const std::string& name) : file_(archives() / (name + ".tar.xz")) {
    if (!present()) return;
    std::string pattern = ::testing::TempDir() + "perflab_metadata_XXXXXX";
    folder_ = mkdtemp(pattern.data());
    const std::string command =
        "tar -xJf '" + file_.string() + "' -C '" + folder_.string() + "' --wildcards '*/metadata'";
    EXPECT_EQ(std::system(command.c_str()), 0) << command;
  }
  ~Archive() {
    std::error_code ignored;
    if (!folder_.empty()) std::filesystem::remove_all(folder_, ignored);
  }
  Archive(const Archive&) = delete;
  Archive& operator=(const Archive&) = delete;

  [[nodiscard]] bool present() const { return std::filesystem::exists(file_); }
  [[nodiscard]] std::string absence() const {
    return "no " + file_.string() + "; PERFLAB_REFERENCE_TRACES names the folder with recorded traces";
  }

  // What becomes of each: "" where it is read, else the error without the file's name.
  [[nodiscard]] std::map<std::string, std::string> outcomes() const {
    std::map<std::string, std::string> result;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder_)) {
      if (entry.path().filename() != "metadata") continue;
      auto& outcome = result[std::filesystem::relative(entry.path().parent_path(), folder_).string()];
      try {
        (void)read_metadata(entry.path());
      } catch (const MetadataError& error) {
        outcome = std::string(error.what()).substr(entry.path().string().size());
      }
    }
    return result;
  }

 private:
  Path file_;
  Path folder_;
};

TEST(ReferenceMetadata, OfRecordedTracesIsRead) {
  int count = 0;
  std::string absent;
  for (const auto* name : {"caret_end_to_end_sample", "jazzy_small", "jazzy_small_ipc", "kernel_16_cores_rt",
                           "lttng_ust_plus_perf", "ros2_fastrtps_humble_fork"}) {
    const Archive archive(name);
    if (!archive.present()) {
      absent = archive.absence();
      continue;
    }
    const auto outcomes = archive.outcomes();
    EXPECT_FALSE(outcomes.empty()) << name;
    for (const auto& [trace, error] : outcomes) EXPECT_EQ(error, "") << trace;
    ++count;
  }
  if (count == 0) GTEST_SKIP() << absent;
}

// Babeltrace's own collection: these it refuses because of their metadata, all others it reads.
TEST(ReferenceMetadata, IsRefusedWhereBabeltrace2RefusesIt) {
  const Archive archive("babeltrace_ctf_traces");
  if (!archive.present()) GTEST_SKIP() << archive.absence();
  const std::string root = "babeltrace_ctf_traces/fail/";
  const std::string old_packets =
      ":1:1: the metadata packet at byte 0 is broken: it is of CTF 116.121; only CTF 1.8 is read";
  const std::map<std::string, std::string> refused = {
      {root + "fail1", ":15:10: this is CTF 0.1; only CTF 1.8 is read"},
      {root + "fail2", ":9:16: unknown escape '\\o'; write \\\\ for a backslash"},
      {root + "integer-range",
       ":7:10: integer '234523978563489756238975628937465892374652893746589237645982...' is out of range; "
       "the "
       "largest has 64 bits"},
      {root + "invalid-sequence-length-field-class",
       ":23:13: the length of this sequence, 'len', is a structure; it must be an unsigned integer"},
      {root + "invalid-variant-selector-field-class",
       ":23:11: the selector of this variant, 'selector', is a structure; it must be an enumeration"},
      {root + "lttng-modules-2.0-pre1", old_packets},
      {root + "metadata-syntax-error", ":3:58: ']' where the name of an attribute would be right"},
      {root + "packet-based-metadata", old_packets},
      {root + "smalltrace", ":6:10: this is CTF 0.1; only CTF 1.8 is read"},
  };
  const auto outcomes = archive.outcomes();
  EXPECT_GE(outcomes.size(), 60U);
  for (const auto& [trace, error] : outcomes) {
    const auto expected = refused.find(trace);
    EXPECT_EQ(error, expected == refused.end() ? "" : expected->second) << trace;
  }
  for (const auto& [trace, error] : refused) EXPECT_TRUE(outcomes.contains(trace)) << trace;
}

}  // namespace
}  // namespace perflab::ctf
