#include "graph/schedule.h"

#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>

#include "base/error.h"

namespace perflab::graph {

Schedule::Schedule(std::size_t publishers, int descriptor) : bytes_(publishers * kKept * sizeof(Slot)) {
  if (bytes_ == 0) return;
  const bool shared = descriptor >= 0;
  // Every process sets the same size; new bytes are zero, which is an empty slot.
  if (shared && ::ftruncate(descriptor, static_cast<off_t>(bytes_)) != 0)
    throw Failed("the memory for the schedule cannot be made " + std::to_string(bytes_) +
                 " bytes large: " + reason_of(errno));
  void* const memory =
      ::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, shared ? MAP_SHARED : MAP_PRIVATE | MAP_ANONYMOUS, descriptor, 0);
  if (memory == MAP_FAILED)
    throw Failed("no memory for the schedule, " + std::to_string(bytes_) + " bytes: " + reason_of(errno));
  slots_ = static_cast<Slot*>(memory);
}

Schedule::~Schedule() {
  if (slots_ != nullptr) ::munmap(slots_, bytes_);
}

}  // namespace perflab::graph
