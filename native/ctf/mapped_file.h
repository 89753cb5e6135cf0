// A read-only file in memory.
//
// Up to kReadableBeyond bytes after the last byte can be read (zeros or arbitrary data): the decoder loads
// whole words and masks what does not belong to the field. As with every mapped file, an access ends the
// process with SIGBUS if another program truncates the file or its disk fails: call readable() before. An
// error between that call and the access still ends the process; tracers only append.
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

  // Reads [begin, end) from the file into memory, and returns whether that is possible. Of more than
  // kReadAtOnce bytes, only the last are read. Always true before Linux 5.14, which cannot check it.
  [[nodiscard]] bool readable(std::size_t begin, std::size_t end) const noexcept;
  static constexpr std::size_t kReadAtOnce = std::size_t{4} << 20U;

  [[nodiscard]] static bool can_tell_what_is_readable() noexcept;

  // Frees the memory of whole pages in [begin, end); later accesses read the file again.
  void release(std::size_t begin, std::size_t end) const noexcept;

 private:
  MappedFile() = default;

  const std::uint8_t* data_ = nullptr;
  std::size_t size_ = 0;
  void* mapping_ = nullptr;  // null if the bytes are a copy
  std::size_t mapped_ = 0;
  std::vector<std::uint8_t> copy_;
};

}  // namespace perflab::ctf
