// A file in memory, read-only.
//
// The memory after the last byte can be read as far as kReadableBeyond (zeros, or whatever stands there): the
// decoder loads whole words and cuts off what does not belong to the field. A file that another program makes
// shorter while it is mapped, or whose disk fails, ends the process with SIGBUS where it is touched, as with
// every mapped file: readable() is to be asked before. What goes wrong between that and the use still ends
// the process; tracers only ever append.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <vector>

namespace perflab::ctf {

class MappedFile {
 public:
  static constexpr std::size_t kReadableBeyond = 64;

  // Throws std::system_error.
  [[nodiscard]] static std::shared_ptr<const MappedFile> open(const std::filesystem::path& path);
  [[nodiscard]] static std::shared_ptr<const MappedFile> of_bytes(std::span<const std::uint8_t> bytes);

  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  [[nodiscard]] const std::uint8_t* data() const noexcept { return data_; }
  [[nodiscard]] std::size_t size() const noexcept { return size_; }

  // Reads [begin, end) from the file into memory, and says whether that can be done. Of more than
  // kReadAtOnce bytes only the last are read. Always true before Linux 5.14, which cannot tell.
  [[nodiscard]] bool readable(std::size_t begin, std::size_t end) const noexcept;
  static constexpr std::size_t kReadAtOnce = std::size_t{4} << 20U;

  [[nodiscard]] static bool can_tell_what_is_readable() noexcept;

  // Gives back the memory of whole pages in [begin, end); they are read from the file again where they are
  // used again.
  void release(std::size_t begin, std::size_t end) const noexcept;

 private:
  MappedFile() = default;

  const std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
  void* mapping_ = nullptr;  // null where the bytes are copied
  std::size_t mapped_ = 0;
  std::vector<std::uint8_t> copy_;
};

}  // namespace perflab::ctf
