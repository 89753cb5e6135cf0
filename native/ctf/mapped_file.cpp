#include "ctf/mapped_file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <system_error>

#include "base/descriptor.h"

namespace perflab::ctf {
namespace {

std::size_t page_size() {
  static const auto size = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return size;
}

[[noreturn]] void fail(const char* what) { throw std::system_error(errno, std::generic_category(), what); }

}  // namespace

std::shared_ptr<const MappedFile> MappedFile::open(const std::filesystem::path& path) {
  // Non-blocking: a named pipe in the directory must not block the reader.
  const Descriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.open()) fail("cannot be opened");
  struct stat status{};
  if (fstat(file.number(), &status) != 0) fail("cannot be examined");
  if (!S_ISREG(status.st_mode)) {
    errno = EINVAL;
    fail("is not a regular file");
  }
  const std::shared_ptr<MappedFile> result(new MappedFile());
  result->size_ = static_cast<std::size_t>(status.st_size);
  if (result->size_ == 0) {
    result->copy_.resize(kReadableBeyond);
    result->data_ = result->copy_.data();
    return result;
  }
  // The mapping is one page longer than the file; anonymous memory makes that page readable.
  const std::size_t page = page_size();
  const std::size_t whole = (result->size_ + page - 1) / page * page;
  void* place = mmap(nullptr, whole + page, PROT_READ, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) fail("cannot be mapped");
  result->mapping_ = place;
  result->mapped_ = whole + page;
  if (mmap(place, result->size_, PROT_READ, MAP_PRIVATE | MAP_FIXED, file.number(), 0) == MAP_FAILED) {
    fail("cannot be mapped");
  }
  madvise(place, result->size_, MADV_SEQUENTIAL);
  result->data_ = static_cast<const std::uint8_t*>(place);
  return result;
}

std::shared_ptr<const MappedFile> MappedFile::of_bytes(std::span<const std::uint8_t> bytes) {
  const std::shared_ptr<MappedFile> result(new MappedFile());
  result->size_ = bytes.size();
  result->copy_.resize(bytes.size() + kReadableBeyond);
  std::copy(bytes.begin(), bytes.end(), result->copy_.begin());
  result->data_ = result->copy_.data();
  return result;
}

MappedFile::~MappedFile() {
  if (mapping_ != nullptr) munmap(mapping_, mapped_);
}

bool MappedFile::readable(std::size_t begin, std::size_t end) const noexcept {
  end = std::min(end, size_);
  if (mapping_ == nullptr || end <= begin) return true;
#ifdef MADV_POPULATE_READ
  if (end - begin > kReadAtOnce) begin = end - 1;
  begin = begin / page_size() * page_size();
  while (madvise(static_cast<std::uint8_t*>(mapping_) + begin, end - begin, MADV_POPULATE_READ) != 0) {
    if (errno == EFAULT || errno == EHWPOISON) return false;
    if (errno != EINTR && errno != EAGAIN) break;  // not supported by the kernel
  }
#endif
  return true;
}

bool MappedFile::can_tell_what_is_readable() noexcept {
#ifdef MADV_POPULATE_READ
  // Advice on zero bytes fails only if the kernel does not know the advice.
  return madvise(nullptr, 0, MADV_POPULATE_READ) == 0;
#else
  return false;
#endif
}

void MappedFile::release(std::size_t begin, std::size_t end) const noexcept {
  const std::size_t page = page_size();
  begin = (begin + page - 1) / page * page;
  end = std::min(end, size_) / page * page;
  if (mapping_ == nullptr || end <= begin) return;
  madvise(static_cast<std::uint8_t*>(mapping_) + begin, end - begin, MADV_DONTNEED);
}

}  // namespace perflab::ctf
