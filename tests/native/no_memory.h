// Simulates lack of memory: while a NoMemory exists, operator new fails in this thread. For programs linked
// with no_memory.cpp.
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
