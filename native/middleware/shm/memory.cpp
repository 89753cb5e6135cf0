#include "middleware/shm/memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "base/error.h"

namespace perflab::middleware::shm {

void fail(const std::string& what) { throw Failed("shm: " + what + ": " + reason_of(errno)); }

Descriptor duplicate(const Descriptor& file) {
  Descriptor copy(fcntl(file.number(), F_DUPFD_CLOEXEC, 0));
  if (!copy.open()) fail("no file descriptor is left");
  return copy;
}

Descriptor make_file(const char* name, std::size_t size) {
  Descriptor file(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!file.open() || ftruncate(file.number(), static_cast<off_t>(size)) != 0 ||
      fcntl(file.number(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    fail("cannot make shared memory");
  }
  return file;
}

bool is_sealed_file(const Descriptor& file, std::size_t size) noexcept {
  struct stat status {};
  const int seals = fcntl(file.number(), F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(file.number(), &status) == 0 &&
         status.st_size == static_cast<off_t>(size);
}

Window::Window(const Descriptor& file, std::size_t offset, std::size_t size, bool writable) : size_(size) {
  const int protection = writable ? PROT_READ | PROT_WRITE : PROT_READ;
  void* const memory = mmap(nullptr, size, protection, MAP_SHARED, file.number(), static_cast<off_t>(offset));
  if (memory == MAP_FAILED) fail("cannot map shared memory");
  data_ = static_cast<std::uint8_t*>(memory);
}

Window::~Window() {
  if (data_ != nullptr) munmap(data_, size_);
}

bool Window::grow(std::size_t size) noexcept {
  if (size <= size_) return true;
  // Maps to a newly reserved address: the thread sanitizer does not see mremap(), and would confuse the
  // memory with what was at an old address.
  void* const place = mmap(nullptr, size, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (place == MAP_FAILED) return false;
  void* const memory = mremap(data_, size_, size, MREMAP_MAYMOVE | MREMAP_FIXED, place);
  if (memory == MAP_FAILED) {
    munmap(place, size);
    return false;
  }
  data_ = static_cast<std::uint8_t*>(memory);
  size_ = size;
  return true;
}

}  // namespace perflab::middleware::shm
