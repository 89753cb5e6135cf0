#include "program/symbols.h"

#include <cxxabi.h>
#include <dlfcn.h>
#include <elf.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <optional>
#include <span>

namespace perflab::node {
namespace {

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 && text ? text.get() : name;
}

// The record at this position of a file, which may be truncated.
template <typename Record>
std::optional<Record> record_at(std::span<const char> bytes, std::uint64_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(Record)) return std::nullopt;
  Record record;
  std::memcpy(&record, bytes.data() + at, sizeof record);
  return record;
}

}  // namespace

Symbol Symbols::at(const void* return_address) {
  const auto* const call = static_cast<const char*>(return_address) - 1;
  Dl_info info{};
  if (dladdr(call, &info) == 0 || info.dli_fname == nullptr) return {};
  const std::string file = info.dli_fname[0] == '\0' ? "/proc/self/exe" : info.dli_fname;
  Symbol symbol{.object = file.substr(file.rfind('/') + 1),
                .offset = static_cast<std::uint64_t>(call - static_cast<const char*>(info.dli_fbase)),
                .function = {}};
  if (info.dli_sname != nullptr) {
    symbol.function = demangled(info.dli_sname);
    return symbol;
  }
  // The path of the program itself may no longer exist, or be relative.
  const std::vector<Function>* functions = &functions_of(file);
  if (functions->empty() && file.find('/') == std::string::npos) functions = &functions_of("/proc/self/exe");
  const auto after = std::ranges::upper_bound(*functions, symbol.offset, {}, &Function::begin);
  if (after == functions->begin()) return symbol;
  const Function& before = *std::prev(after);
  if (symbol.offset - before.begin < before.size) symbol.function = demangled(before.name.c_str());
  return symbol;
}

const std::vector<Symbols::Function>& Symbols::functions_of(const std::string& file) {
  const auto [found, is_new] = functions_.try_emplace(file);
  if (!is_new) return found->second;
  std::ifstream stream(file, std::ios::binary);
  const std::vector<char> bytes{std::istreambuf_iterator<char>(stream), {}};
  const auto header = record_at<Elf64_Ehdr>(bytes, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) return found->second;
  const auto section = [&](std::uint64_t index) {
    return record_at<Elf64_Shdr>(bytes, header->e_shoff + index * sizeof(Elf64_Shdr));
  };
  for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
    const auto table = section(i);
    if (!table || table->sh_type != SHT_SYMTAB) continue;
    const auto names = section(table->sh_link);
    if (!names || names->sh_offset > bytes.size() || bytes.size() - names->sh_offset < names->sh_size)
      continue;
    for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= table->sh_size; at += sizeof(Elf64_Sym)) {
      const auto symbol = record_at<Elf64_Sym>(bytes, table->sh_offset + at);
      if (!symbol || ELF64_ST_TYPE(symbol->st_info) != STT_FUNC || symbol->st_size == 0 ||
          symbol->st_name >= names->sh_size)
        continue;
      const char* const name = bytes.data() + names->sh_offset + symbol->st_name;
      found->second.push_back({symbol->st_value, symbol->st_size,
                               std::string(name, strnlen(name, names->sh_size - symbol->st_name))});
    }
  }
  std::ranges::sort(found->second, {}, &Function::begin);
  return found->second;
}

}  // namespace perflab::node
