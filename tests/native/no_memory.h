// Memory that runs out: while a NoMemory lives, operator new fails in this thread. For programs that
// are linked with no_memory.cpp.
#pragma once

namespace perflab::test {

class NoMemory {
 public:
  NoMemory();
  ~NoMemory();
  NoMemory(const NoMemory&) = delete;
  NoMemory& operator=(const NoMemory&) = delete;
};

}  // namespace perflab::test
