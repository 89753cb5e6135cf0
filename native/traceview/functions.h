// Function calls of programs built with -finstrument-functions, and the names of the functions.
//
// Each thread has a stack of calls. An exit ends the innermost call of its function. Inner calls without an exit
// (longjmp, lost events) have no end, nor do calls that are open at the end of the trace. An exit of a function
// that is not on the stack is only counted. If the tracer does not record the function that exits (null address),
// the exit ends the innermost call.
//
// Names come from the symbol tables of the program or library loaded at the address. The files must be on this
// machine and identical to the traced ones (compared by build id if the trace has it).
//
// Example:
//   FunctionModel model;
//   model.binary(process, 0x5574d486e000, 24784, "/opt/robot/bin/planner", true);
//   model.entry(thread, process, 1000, 0x5574d486f2a9);
//   model.exit(thread, process, 1500, 0x5574d486f2a9);
//   model.finish();
//   model.functions().symbol[0];  // "Planner::plan(Goal const&)"
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "traceview/tables.h"

namespace perflab::traceview {

// Names of the functions in an ELF file (64 bit), by address.
class SymbolTable {
 public:
  // nullopt if the file cannot be read or is not 64-bit ELF.
  [[nodiscard]] static std::optional<SymbolTable> read(const std::string& path);

  // Mangled name of the function that contains this address of the file; nullopt if there is none. If an address has
  // several names, a global one is preferred, then the first in the file.
  [[nodiscard]] std::optional<std::string> name_at(std::uint64_t address) const;
  [[nodiscard]] const std::vector<std::uint8_t>& build_id() const noexcept { return build_id_; }
  // Address of the first loaded byte according to the file.
  [[nodiscard]] std::uint64_t first_address() const noexcept { return first_address_; }

 private:
  struct Symbol {
    std::uint64_t address = 0, size = 0;
    bool is_global = false;
    std::string name;
  };
  std::vector<Symbol> symbols_;  // by address
  std::vector<std::uint8_t> build_id_;
  std::uint64_t first_address_ = 0;
};

class FunctionModel {
 public:
  // Reasons why functions have no symbol (numbers of functions), and mismatches (numbers of events).
  struct Counts {
    std::uint64_t functions_of_unknown_binaries = 0;  // the trace shows no binary at their address
    std::uint64_t functions_of_absent_files = 0;  // their file is not on this machine, or not ELF
    std::uint64_t functions_of_other_builds = 0;  // their file on this machine is not the traced one
    std::uint64_t functions_without_symbols = 0;  // the symbol tables of their file have no function at their
                                                  // address
    std::uint64_t entries_without_exit = 0;
    std::uint64_t exits_without_entry = 0;
  };

  // Events must be in time order. `thread` and `process` are rows of those tables.
  void entry(std::int32_t thread, std::int32_t process, std::int64_t time_ns, std::uint64_t address);
  void exit(std::int32_t thread, std::int32_t process, std::int64_t time_ns,
            std::optional<std::uint64_t> address);
  // From now on, a program or library occupies [base, base + size) of the process. Unless its code is position
  // independent, the process uses the addresses of the file.
  void binary(std::int32_t process, std::uint64_t base, std::uint64_t size, std::string_view path,
              bool is_position_independent);
  void build_id(std::int32_t process, std::uint64_t base, std::span<const std::uint8_t> id);
  void unload(std::int32_t process, std::uint64_t base);

  // Ends the input and looks up the names.
  void finish();

  // After finish():
  [[nodiscard]] const FunctionCalls& calls() const noexcept { return calls_; }
  [[nodiscard]] const Functions& functions() const noexcept { return functions_; }
  [[nodiscard]] const Counts& counts() const noexcept { return counts_; }

 private:
  struct Binary {
    std::uint64_t base = 0, size = 0;
    std::string path;
    bool is_position_independent = true;
    std::vector<std::uint8_t> build_id;
  };
  struct Function {
    std::int32_t process = 0;
    std::uint64_t address = 0;
    std::int32_t binary = -1;  // index into binaries_
  };
  struct Open {
    std::uint64_t address;
    std::int32_t call;
  };
  struct Key {
    std::int32_t process;
    std::uint64_t address;
    bool operator==(const Key&) const = default;
  };
  struct Hash {
    std::size_t operator()(const Key& key) const noexcept {
      return static_cast<std::size_t>((key.address ^ static_cast<std::uint64_t>(key.process) << 48) *
                                      0x9e3779b97f4a7c15u);
    }
  };

  [[nodiscard]] std::int32_t binary_at(std::int32_t process, std::uint64_t address) const;
  std::int32_t function_of(std::int32_t process, std::uint64_t address);
  // Name of the function; counts the reason if it has none.
  [[nodiscard]] std::optional<std::string> symbol_of(const Function& function, const Binary& binary,
                                                     const std::optional<SymbolTable>& symbols);

  FunctionCalls calls_;
  Functions functions_;
  Counts counts_;
  std::vector<Function> rows_;
  std::vector<Binary> binaries_;  // all binaries, including unloaded ones
  std::unordered_map<std::int32_t, std::map<std::uint64_t, std::int32_t>> loaded_;  // by process and base
  // Row of a function while its binary stays loaded.
  std::unordered_map<Key, std::int32_t, Hash> function_by_address_;
  std::vector<std::vector<Open>> stacks_;  // by thread
};

// The demangled C++ name; unchanged if it is not mangled.
[[nodiscard]] std::string demangled(const std::string& symbol);

}  // namespace perflab::traceview
