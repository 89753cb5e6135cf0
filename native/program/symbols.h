// The function and object file for an address in this process, as text.
//
// Example:
//   Symbols symbols;
//   symbols.at(return_address).function;   // "ddsi_serdata_from_sample"; empty: unknown
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace perflab::node {

struct Symbol {
  std::string object;        // file name without folder; empty: in no file
  std::uint64_t offset = 0;  // offset from the object's load address
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
  // Sorted by address; from the file's own symbol table, unless it is stripped.
  const std::vector<Function>& functions_of(const std::string& file);

  std::map<std::string, std::vector<Function>> functions_;
};

}  // namespace perflab::node
