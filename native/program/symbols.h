// The function at an address of this process, and the object file that it is in, as text.
//
// Example:
//   Symbols symbols;
//   symbols.at(return_address).function;   // "ddsi_serdata_from_sample"; empty: not known
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace perflab::node {

struct Symbol {
  std::string object;        // the file's name without its folder; empty: in no file
  std::uint64_t offset = 0;  // from where the object is loaded
  std::string function;      // demangled
};

class Symbols {
 public:
  // The function whose call returns to this address.
  Symbol at(const void* return_address);

 private:
  struct Function {
    std::uint64_t begin;
    std::uint64_t size;
    std::string name;
  };
  // By address; what a file's own table says, where it has not been stripped of it.
  const std::vector<Function>& functions_of(const std::string& file);

  std::map<std::string, std::vector<Function>> functions_;
};

}  // namespace perflab::node
