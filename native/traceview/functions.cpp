#include "traceview/functions.h"

#include <cxxabi.h>
#include <elf.h>

#include <algorithm>
#include <bit>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <system_error>
#include <utility>

#include "ctf/mapped_file.h"

namespace perflab::traceview {
namespace {

// Bounds-checked reads of a file in memory.
class Bytes {
 public:
  explicit Bytes(std::span<const char> data) noexcept : data_(data) {}

  template <typename T>
  [[nodiscard]] bool read(std::uint64_t offset, T& value) const noexcept {
    if (offset > data_.size() || data_.size() - offset < sizeof(T)) return false;
    std::memcpy(&value, data_.data() + offset, sizeof(T));
    return true;
  }
  [[nodiscard]] std::span<const char> part(std::uint64_t offset, std::uint64_t size) const noexcept {
    if (offset > data_.size() || data_.size() - offset < size) return {};
    return data_.subspan(static_cast<std::size_t>(offset), static_cast<std::size_t>(size));
  }

 private:
  std::span<const char> data_;
};

// Maps a program or library; only the pages that are read are loaded. Other kinds of files are refused:
// reading them may block, never end or have side effects.
std::shared_ptr<const ctf::MappedFile> program_at(const std::string& path) {
  std::error_code error;
  const auto real = std::filesystem::canonical(path, error);
  if (error) return nullptr;
  for (const char* const made_by_the_kernel : {"proc", "sys", "dev"}) {
    if (std::distance(real.begin(), real.end()) > 1 && *std::next(real.begin()) == made_by_the_kernel)
      return nullptr;
  }
  try {
    return ctf::MappedFile::open(real);
  } catch (const std::system_error&) {
    return nullptr;
  }
}

// String at an offset of a string table.
std::string_view text_at(std::span<const char> strings, std::uint64_t offset) noexcept {
  if (offset >= strings.size()) return {};
  const char* text = strings.data() + offset;
  return {text, strnlen(text, strings.size() - static_cast<std::size_t>(offset))};
}

constexpr std::uint64_t kLargestTable = std::uint64_t{256} << 20U;  // limit of a symbol table in bytes

constexpr std::uint64_t aligned(std::uint64_t size) noexcept { return (size + 3) & ~std::uint64_t{3}; }

std::vector<std::uint8_t> build_id_of(std::span<const char> notes) {
  const Bytes bytes(notes);
  Elf64_Nhdr note{};
  for (std::uint64_t at = 0; bytes.read(at, note);) {
    const std::uint64_t name = at + sizeof(note);
    const std::uint64_t content = name + aligned(note.n_namesz);
    if (note.n_type == NT_GNU_BUILD_ID && text_at(bytes.part(name, note.n_namesz), 0) == "GNU") {
      const auto id = bytes.part(content, note.n_descsz);
      return {id.begin(), id.end()};
    }
    at = content + aligned(note.n_descsz);
  }
  return {};
}

}  // namespace

std::optional<SymbolTable> SymbolTable::read(const std::string& path) {
  const auto file = program_at(path);
  if (file == nullptr) return std::nullopt;
  const Bytes bytes({reinterpret_cast<const char*>(file->data()), file->size()});
  Elf64_Ehdr header{};
  if (!bytes.read(0, header) || std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) return std::nullopt;
  constexpr unsigned char kOwnOrder = std::endian::native == std::endian::little ? ELFDATA2LSB : ELFDATA2MSB;
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != kOwnOrder) return std::nullopt;

  SymbolTable table;
  bool has_first = false;
  for (std::uint64_t i = 0; i < header.e_phnum; ++i) {
    Elf64_Phdr segment{};
    if (!bytes.read(header.e_phoff + i * sizeof(segment), segment)) break;
    if (segment.p_type == PT_LOAD && !has_first) {
      has_first = true;
      table.first_address_ = segment.p_vaddr - segment.p_vaddr % std::max<std::uint64_t>(1, segment.p_align);
    }
    if (segment.p_type == PT_NOTE && table.build_id_.empty()) {
      table.build_id_ = build_id_of(bytes.part(segment.p_offset, segment.p_filesz));
    }
  }
  bool has_table = false, has_dynamic_table = false;
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    Elf64_Shdr section{}, names{};
    if (!bytes.read(header.e_shoff + i * sizeof(section), section)) break;
    if (section.sh_type != SHT_SYMTAB && section.sh_type != SHT_DYNSYM) continue;
    // A valid file has one table of each type; a damaged file may claim thousands, each as large as the file itself.
    if (std::exchange(section.sh_type == SHT_SYMTAB ? has_table : has_dynamic_table, true)) continue;
    if (section.sh_size > kLargestTable) continue;
    if (!bytes.read(header.e_shoff + section.sh_link * sizeof(names), names)) continue;
    const auto strings = bytes.part(names.sh_offset, names.sh_size);
    for (std::uint64_t at = 0; at + sizeof(Elf64_Sym) <= section.sh_size; at += sizeof(Elf64_Sym)) {
      Elf64_Sym symbol{};
      if (!bytes.read(section.sh_offset + at, symbol)) break;
      const auto type = ELF64_ST_TYPE(symbol.st_info);
      if ((type != STT_FUNC && type != STT_GNU_IFUNC) || symbol.st_shndx == SHN_UNDEF) continue;
      const std::string_view name = text_at(strings, symbol.st_name);
      if (name.empty()) continue;
      table.symbols_.push_back(
          {symbol.st_value, symbol.st_size, ELF64_ST_BIND(symbol.st_info) == STB_GLOBAL, std::string(name)});
    }
  }
  std::stable_sort(table.symbols_.begin(), table.symbols_.end(), [](const Symbol& a, const Symbol& b) {
    return a.address != b.address ? a.address < b.address : a.is_global > b.is_global;
  });
  return table;
}

std::optional<std::string> SymbolTable::name_at(std::uint64_t address) const {
  const auto after =
      std::upper_bound(symbols_.begin(), symbols_.end(), address,
                       [](std::uint64_t value, const Symbol& symbol) { return value < symbol.address; });
  if (after == symbols_.begin()) return std::nullopt;
  const std::uint64_t start = std::prev(after)->address;
  const auto first =
      std::lower_bound(symbols_.begin(), after, start,
                       [](const Symbol& symbol, std::uint64_t value) { return symbol.address < value; });
  for (auto symbol = first; symbol != after; ++symbol) {
    // Functions in hand-written assembly may have size 0; only the address of their first instruction matches.
    if (address - symbol->address < std::max<std::uint64_t>(1, symbol->size)) return symbol->name;
  }
  return std::nullopt;
}

std::string demangled(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 && text ? std::string(text.get()) : symbol;
}

void FunctionModel::binary(std::int32_t process, std::uint64_t base, std::uint64_t size,
                           std::string_view path, bool is_position_independent) {
  auto& loaded = loaded_[process];
  if (const auto known = loaded.find(base); known != loaded.end()) {
    const Binary& there = binaries_[at(known->second)];
    if (there.path == path && there.size == size) return;  // the state dump repeats libraries that are
                                                           // already known
    unload(process, base);
  }
  loaded[base] = static_cast<std::int32_t>(binaries_.size());
  binaries_.push_back({base, size, std::string(path), is_position_independent, {}});
  // Functions that were called before the trace recorded their binary: the state dump follows the first calls.
  for (Function& function : rows_) {
    if (function.process == process && function.binary < 0)
      function.binary = binary_at(process, function.address);
  }
}

void FunctionModel::build_id(std::int32_t process, std::uint64_t base, std::span<const std::uint8_t> id) {
  const auto& loaded = loaded_[process];
  if (const auto found = loaded.find(base); found != loaded.end()) {
    binaries_[at(found->second)].build_id.assign(id.begin(), id.end());
  }
}

void FunctionModel::unload(std::int32_t process, std::uint64_t base) {
  auto& loaded = loaded_[process];
  const auto found = loaded.find(base);
  if (found == loaded.end()) return;
  // Another library may be loaded at the same addresses; its functions are different ones.
  const std::int32_t binary = found->second;
  std::erase_if(function_by_address_,
                [&](const auto& entry) { return rows_[at(entry.second)].binary == binary; });
  loaded.erase(found);
}

std::int32_t FunctionModel::binary_at(std::int32_t process, std::uint64_t address) const {
  const auto loaded = loaded_.find(process);
  if (loaded == loaded_.end()) return -1;
  const auto after = loaded->second.upper_bound(address);
  if (after == loaded->second.begin()) return -1;
  const std::int32_t found = std::prev(after)->second;
  const Binary& binary = binaries_[at(found)];
  return address - binary.base < binary.size ? found : -1;
}

std::int32_t FunctionModel::function_of(std::int32_t process, std::uint64_t address) {
  const auto [found, is_new] =
      function_by_address_.try_emplace(Key{process, address}, static_cast<std::int32_t>(rows_.size()));
  if (is_new) rows_.push_back({process, address, binary_at(process, address)});
  return found->second;
}

void FunctionModel::entry(std::int32_t thread, std::int32_t process, std::int64_t time_ns,
                          std::uint64_t address) {
  const auto slot = at(thread);
  if (stacks_.size() <= slot) stacks_.resize(slot + 1);
  auto& stack = stacks_[slot];
  const auto call = static_cast<std::int32_t>(calls_.thread.size());
  calls_.push(thread, function_of(process, address), time_ns, std::nullopt,
              stack.empty() ? std::nullopt : std::optional(stack.back().call));
  stack.push_back({address, call});
}

void FunctionModel::exit(std::int32_t thread, std::int32_t, std::int64_t time_ns,
                         std::optional<std::uint64_t> address) {
  const auto slot = at(thread);
  auto* const stack = slot < stacks_.size() ? &stacks_[slot] : nullptr;
  if (stack == nullptr || stack->empty()) {
    ++counts_.exits_without_entry;
    return;
  }
  auto innermost = stack->rbegin();
  if (address) {
    innermost = std::find_if(stack->rbegin(), stack->rend(),
                             [&](const Open& open) { return open.address == *address; });
    if (innermost == stack->rend()) {
      ++counts_.exits_without_entry;
      return;
    }
  }
  calls_.end_ns.set(at(innermost->call), time_ns);
  counts_.entries_without_exit += static_cast<std::uint64_t>(innermost - stack->rbegin());
  stack->erase(std::next(innermost).base(), stack->end());
}

void FunctionModel::finish() {
  for (auto& stack : stacks_) {
    counts_.entries_without_exit += stack.size();
    stack.clear();
  }
  std::unordered_map<std::string, std::optional<SymbolTable>> files;
  for (const Function& function : rows_) {
    const Binary* const binary = function.binary < 0 ? nullptr : &binaries_[at(function.binary)];
    std::optional<std::string> symbol;
    if (binary == nullptr) {
      ++counts_.functions_of_unknown_binaries;
    } else {
      const auto [file, is_new] = files.try_emplace(binary->path);
      if (is_new) file->second = SymbolTable::read(binary->path);
      symbol = symbol_of(function, *binary, file->second);
    }
    functions_.push(function.process, function.address, symbol,
                    binary == nullptr ? std::nullopt : std::optional(binary->path));
  }
}

std::optional<std::string> FunctionModel::symbol_of(const Function& function, const Binary& binary,
                                                    const std::optional<SymbolTable>& symbols) {
  if (!symbols) {
    ++counts_.functions_of_absent_files;
    return std::nullopt;
  }
  if (!binary.build_id.empty() && binary.build_id != symbols->build_id()) {
    ++counts_.functions_of_other_builds;
    return std::nullopt;
  }
  const auto name = symbols->name_at(binary.is_position_independent
                                         ? function.address - binary.base + symbols->first_address()
                                         : function.address);
  if (!name) {
    ++counts_.functions_without_symbols;
    return std::nullopt;
  }
  return demangled(*name);
}

}  // namespace perflab::traceview
