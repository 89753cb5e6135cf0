#include "message/library.h"

#include <algorithm>
#include <cerrno>
#include <mutex>
#include <set>
#include <sstream>
#include <system_error>
#include <unordered_map>
#include <utility>
#include <variant>

#include "base/descriptor.h"
#include "base/error.h"
#include "base/text.h"
#include "message/hash.h"
#include "message/literal.h"
#include "message/names.h"
#include "message/parse.h"

namespace perflab::message {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kHeader = "Header";
constexpr std::string_view kStandardHeader = "std_msgs/msg/Header";
// Number of names of a cycle shown in an error.
constexpr std::size_t kShown = 6;

std::string_view last_part(std::string_view name) { return name.substr(name.rfind('/') + 1); }

// "std_msgs/Header" for "std_msgs/msg/Header": as written in fields.
std::string written(std::string_view full) {
  const std::size_t kind = full.find("/msg/");
  if (kind == std::string_view::npos) return std::string(full);
  return std::string(full.substr(0, kind)).append(full.substr(kind + 4));
}

// The interface determined by a file's path, .../package/msg/Name.msg.
std::optional<InterfaceName> interface_at(const fs::path& file) {
  const fs::path folder = file.parent_path();
  const std::string package = folder.parent_path().filename().string();
  std::optional<InterfaceName> name =
      split_name(package + "/" + folder.filename().string() + "/" + file.stem().string());
  const bool fits = name && !package.empty() && file.extension() == "." + std::string(to_text(name->kind));
  return fits ? name : std::nullopt;
}

// Files of a folder by interface. Each folder is visited once, however many links lead to it.
std::map<std::string, std::vector<std::string>> files_below(const fs::path& folder) {
  std::error_code code;
  std::map<std::string, std::vector<std::string>> files;
  std::set<fs::path> visited;
  const auto check = [&](const fs::path& at) {
    if (code) refuse({at.string(), 0, 0}, "cannot be read: " + code.message());
  };
  std::vector<fs::path> waiting{fs::absolute(folder, code).lexically_normal()};
  check(folder);
  while (!waiting.empty()) {
    const fs::path at = std::move(waiting.back());
    waiting.pop_back();
    const fs::path real = fs::canonical(at, code);
    check(at);
    if (!visited.insert(real).second) continue;
    fs::directory_iterator entries(at, code);
    for (; !code && entries != fs::directory_iterator(); entries.increment(code)) {
      const fs::path& path = entries->path();
      std::error_code broken;  // a broken link is neither a folder nor a file
      if (entries->is_directory(broken)) {
        waiting.push_back(path);
      } else if (entries->is_regular_file(broken)) {
        if (const auto name = interface_at(path)) files[name->full()].push_back(path.string());
      }
    }
    check(at);
  }
  return files;
}

std::string text_of_file(const std::string& path) {
  std::error_code code;
  const std::uintmax_t size = fs::file_size(path, code);
  if (!code && size > kMaxTextBytes) {
    refuse({path, 0, 0},
           std::to_string(size) + " bytes; an interface file has at most " + std::to_string(kMaxTextBytes));
  }
  std::optional<std::string> text = read_file(path);
  if (!text) refuse({path, 0, 0}, "cannot be read: " + reason_of(errno));
  return *std::move(text);
}

}  // namespace

class Library::State {
 public:
  explicit State(std::span<const InterfaceText> brought) : brought_(brought) {}

  // ---- known interfaces

  void add_text(const std::string& name, std::string text, const std::string& source) {
    if (!split_name(name)) {
      refuse({source, 0, 0}, quote(name) + " is not an interface name; write PACKAGE/msg/NAME, "
                                           "PACKAGE/srv/NAME or PACKAGE/action/NAME");
    }
    add_one(name, {std::move(text), {source}});
  }

  void add_folder(const fs::path& folder) {
    std::error_code code;
    if (!fs::is_directory(folder, code)) refuse({folder.string(), 0, 0}, "no such folder");
    auto files = files_below(folder);
    if (files.empty()) {
      refuse({folder.string(), 0, 0},
             "contains no interface file; expected PACKAGE/msg/NAME.msg, PACKAGE/srv/NAME.srv or "
             "PACKAGE/action/NAME.action");
    }
    for (auto& [name, paths] : files) {
      std::ranges::sort(paths);
      add_one(name, {std::monostate(), std::move(paths)});
    }
  }

  void add_installed(const fs::path& prefix) {
    const fs::path index = prefix / "share/ament_index/resource_index/rosidl_interfaces";
    std::error_code code;
    if (!fs::is_directory(index, code)) return;
    for (fs::directory_iterator packages(index, code); !code && packages != fs::directory_iterator();
         packages.increment(code)) {
      const std::string package = packages->path().filename().string();
      if (package + "/" == kOwnPackage) continue;
      // A line each: "msg/Image.idl", "msg/Image.msg", "srv/SetCameraInfo.srv".
      std::istringstream lines(text_of_file(packages->path().string()));
      for (std::string line; std::getline(lines, line);) {
        const fs::path file = prefix / "share" / package / line;
        if (const auto name = interface_at(file)) add_one(name->full(), {std::monostate(), {file.string()}});
      }
    }
    if (code) refuse({index.string(), 0, 0}, "cannot be read: " + code.message());
  }

  bool knows(const std::string& interface_name) const { return interfaces().contains(interface_name); }

  std::vector<std::string> names() const {
    std::vector<std::string> names;
    for (const auto& [name, interface] : interfaces()) names.push_back(name);
    return names;
  }

  // The interfaces of a folder, "package/msg/", with this short name: found without scanning all others,
  // because every endpoint of a graph looks one up.
  std::vector<std::string> called(std::string_view short_name, const std::string& folder) const {
    std::vector<std::string> names;
    for (auto at = interfaces().lower_bound(folder); at != interfaces().end() && at->first.starts_with(folder); ++at) {
      if (snake_case(last_part(at->first)) == short_name) names.push_back(at->first);
    }
    return names;
  }

  std::string source_of(const std::string& interface_name) const {
    const auto found = interfaces().find(interface_name);
    return found == interfaces().end() ? "" : found->second.sources.front();
  }

  std::string text_of(const std::string& interface_name) const {
    return read(interfaces().at(interface_name));
  }

  std::string unknown(std::string_view name) const {
    std::string text = "unknown type " + quote(written(name));
    if (const std::string_view near = nearest(name); !near.empty()) {
      return text + "; did you mean '" + written(near) + "'?";
    }
    const std::optional<InterfaceName> owner = interface_of(name);
    if (!owner) return text + "; no such interface is known";
    return text + "; no file '" + owner->full() + "." + std::string(to_text(owner->kind)) + "' is known";
  }

  // ---- structs

  // The struct; checks it and everything it uses.
  const Definition& find(const std::string& name) {
    const Definition* const found = load(name);
    if (found == nullptr) throw BadInput(unknown(name));
    judge(*found);
    return *found;
  }

  // All structs nested in a checked struct, by name, without the struct itself.
  std::map<std::string_view, const Definition*> within(const Definition& type) {
    std::map<std::string_view, const Definition*> all;
    std::vector<const Definition*> waiting{&type};
    while (!waiting.empty()) {
      const Definition& next = *waiting.back();
      waiting.pop_back();
      for (const Field& field : next.fields) {
        const auto* const name = std::get_if<std::string>(&field.type.element);
        if (name == nullptr) continue;
        const Definition& inner = structs_.at(*name);
        if (all.emplace(inner.name, &inner).second) waiting.push_back(&inner);
      }
    }
    return all;
  }

 private:
  struct Interface {
    // Texts are views of built-in ones, or owned; files are read on first use.
    std::variant<std::monostate, std::string_view, std::string> text;
    std::vector<std::string> sources;  // one, or all files of a folder that have this name
  };

  // Built-in interfaces are listed on first use: most graphs come from a parser, which replaces their initial
  // library.
  std::map<std::string, Interface>& interfaces() const {
    std::call_once(listed_, [&] {
      for (const InterfaceText& of : brought_) {
        std::string name(of.package);
        name.append("/").append(of.kind).append("/").append(of.name);
        std::string source = name + "." + std::string(of.kind);
        interfaces_.insert_or_assign(std::move(name), Interface{of.text, {std::move(source)}});
      }
    });
    return interfaces_;
  }

  struct Size {
    std::uint64_t bytes = 0;
    std::size_t depth = 1;
  };

  void add_one(const std::string& name, Interface interface) {
    interfaces().insert_or_assign(name, std::move(interface));
    structs_.clear();
    loaded_.clear();
    sizes_.clear();
  }

  static std::string read(const Interface& interface) {
    if (const auto* const view = std::get_if<std::string_view>(&interface.text)) return std::string(*view);
    if (const auto* const owned = std::get_if<std::string>(&interface.text)) return *owned;
    std::string text = text_of_file(interface.sources.front());
    for (std::size_t i = 1; i < interface.sources.size(); ++i) {
      if (text_of_file(interface.sources[i]) == text) continue;
      refuse({interface.sources[i], 0, 0},
             "differs from " + interface.sources.front() +
                 ", which has the same name; give a folder with one of them");
    }
    return text;
  }

  // The message of the same name in another package, a primitive in another case, or the most similar name.
  std::string_view nearest(std::string_view name) const {
    std::vector<std::string_view> candidates;
    std::string_view same;
    for (const auto& [known, interface] : interfaces()) {
      const bool is_message = known.find("/msg/") != std::string::npos;
      if (same.empty() && is_message && last_part(known) == last_part(name)) same = known;
      candidates.push_back(known);
    }
    if (!same.empty()) return same;
    if (const auto primitive = primitive_of(lower_case(last_part(name)))) return name_of(*primitive);
    return closest(name, candidates);
  }

  // The struct of that name with fully qualified names; nullptr if there is none.
  const Definition* load(const std::string& name) {
    const std::optional<InterfaceName> owner = interface_of(name);
    if (!owner) return nullptr;
    const auto interface = interfaces().find(owner->full());
    if (interface == interfaces().end()) return nullptr;
    if (!loaded_.contains(interface->first)) {
      std::vector<Definition> structs =
          parse_interface(*owner, read(interface->second), interface->second.sources.front());
      for (Definition& part : structs) resolve(owner->package, part);
      for (Definition& part : structs) structs_.emplace(part.name, std::move(part));
      loaded_.insert(interface->first);
    }
    const auto found = structs_.find(name);
    return found == structs_.end() ? nullptr : &found->second;
  }

  void resolve(const std::string& package, Definition& type) const {
    for (Field& field : type.fields) {
      auto* const name = std::get_if<std::string>(&field.type.element);
      if (name == nullptr || name->find('/') != std::string::npos) continue;
      std::string own = package + "/msg/" + *name;
      *name = *name == kHeader && !knows(own) ? std::string(kStandardHeader) : std::move(own);
    }
  }

  // Size and depth of a struct, after everything nested in it has been checked.
  const Size& judge(const Definition& type) {
    if (const auto known = sizes_.find(type.name); known != sizes_.end()) return known->second;
    std::vector<const Definition*> path;
    return judge(type, path);
  }

  const Size& judge(const Definition& type, std::vector<const Definition*>& path) {
    if (const auto known = sizes_.find(type.name); known != sizes_.end()) return known->second;
    path.push_back(&type);
    Size size;
    for (std::size_t i = 0; i < type.fields.size(); ++i) {
      const Place& place = type.places[i];
      const Size element = size_of_element(type.fields[i].type, place, path);
      size.depth = std::max(size.depth, element.depth + 1);
      if (size.depth + path.size() - 1 > kMaxDepth) {
        refuse(place, "structs are nested more than " + std::to_string(kMaxDepth) + " deep");
      }
      add_bytes(size.bytes, type.fields[i], element.bytes, type.name, place);
    }
    path.pop_back();
    return sizes_.emplace(type.name, size).first->second;
  }

  Size size_of_element(const FieldType& type, const Place& place, std::vector<const Definition*>& path) {
    if (const auto* const primitive = std::get_if<Primitive>(&type.element)) {
      return {is_text(*primitive) ? kVariableBytes : size_of(*primitive), 0};
    }
    const std::string& name = std::get<std::string>(type.element);
    const auto above = std::ranges::find(path, name, &Definition::name);
    if (above != path.end()) refuse_cycle(place, {above, path.end()});
    const Definition* const inner = load(name);
    if (inner == nullptr) refuse(place, unknown(name));
    if (path.size() >= kMaxDepth) {
      refuse(place, "structs are nested more than " + std::to_string(kMaxDepth) + " deep");
    }
    return judge(*inner, path);
  }

  // Counts and sizes are limited, so both factors are below about 2^32: the product fits into 64 bits.
  static void add_bytes(std::uint64_t& bytes, const Field& field, std::uint64_t element,
                        const std::string& name, const Place& place) {
    static_assert(kMaxCount <= ~std::uint64_t{0} / kMaxFixedBytes - 1);
    switch (field.type.plurality) {
      case Plurality::kOne:
        bytes += element;
        break;
      case Plurality::kArray:
        bytes += element * field.type.count;
        break;
      case Plurality::kBounded:
      case Plurality::kSequence:
        bytes += kVariableBytes;
        break;
    }
    if (bytes <= kMaxFixedBytes) return;
    refuse(place, "field " + quote(field.name) + " makes " + written(name) + " larger than " +
                      std::to_string(kMaxFixedBytes) + " bytes; use a sequence (T[]) for large data");
  }

  [[noreturn]] static void refuse_cycle(const Place& place, std::vector<const Definition*> cycle) {
    std::string way;
    for (std::size_t i = 0; i < cycle.size(); ++i) {
      if (cycle.size() <= kShown || i < kShown / 2 || i >= cycle.size() - kShown / 2) {
        way += written(cycle[i]->name) + " -> ";
      } else if (i == kShown / 2) {
        way += "... -> ";
      }
    }
    const std::string first = written(cycle.front()->name);
    refuse(place, first + " contains itself: " + way + first + "; ROS 2 has no recursive types");
  }

  std::span<const InterfaceText> brought_;
  mutable std::once_flag listed_;
  mutable std::map<std::string, Interface> interfaces_;  // filled by interfaces() only
  std::unordered_map<std::string, Definition> structs_;  // of interfaces read so far
  std::set<std::string> loaded_;
  std::unordered_map<std::string, Size> sizes_;  // of checked structs
};

Library::Library(std::span<const InterfaceText> brought) : state_(std::make_unique<State>(brought)) {}

Library::Library(Library&&) noexcept = default;
Library& Library::operator=(Library&&) noexcept = default;
Library::~Library() = default;

void Library::add_folder(const std::filesystem::path& folder) { state_->add_folder(folder); }

void Library::add_installed(const std::filesystem::path& prefix) { state_->add_installed(prefix); }

void Library::add_text(const std::string& name, std::string text, const std::string& source) {
  state_->add_text(name, std::move(text), source);
}

std::optional<std::string> Library::full_name(std::string_view name) const {
  const auto refuse_several = [&](const std::vector<std::string>& meanings) {
    throw BadInput(quote(name) + " is ambiguous: " + list_of({meanings.begin(), meanings.end()}) +
                   "; use one of these");
  };
  const auto slashes = std::ranges::count(name, '/');
  std::vector<std::string> meanings;
  const auto consider = [&](std::string full) {
    const std::optional<InterfaceName> owner = interface_of(full);
    if (owner && state_->knows(owner->full())) meanings.push_back(std::move(full));
  };
  if (slashes == 0) {
    meanings = state_->called(name, std::string(kOwnPackage) + "msg/");
  } else if (slashes == 1) {
    const std::size_t slash = name.find('/');
    const std::string package(name.substr(0, slash));
    for (const auto kind : {InterfaceKind::kMessage, InterfaceKind::kService, InterfaceKind::kAction}) {
      consider(package + "/" + std::string(to_text(kind)) + std::string(name.substr(slash)));
      if (kind == InterfaceKind::kMessage && !meanings.empty()) return meanings.front();
    }
  } else {
    consider(std::string(name));
  }
  if (meanings.size() > 1) refuse_several(meanings);
  if (meanings.empty()) return std::nullopt;
  return meanings.front();
}

const Definition& Library::find(const std::string& full_name) {
  const Definition& found = state_->find(full_name);
  if (is_aggregate(full_name)) {
    std::vector<std::string_view> parts;
    for (const Field& field : found.fields) parts.push_back(std::get<std::string>(field.type.element));
    throw BadInput(quote(full_name) + " is not a message, but consists of " + list_of(parts));
  }
  return found;
}

std::vector<std::string> Library::names() const { return state_->names(); }

std::string Library::source_of(const std::string& interface_name) const {
  return state_->source_of(interface_name);
}

std::map<std::string, std::string> Library::texts_of(const std::string& full_name) {
  const std::optional<InterfaceName> owner = interface_of(full_name);
  const std::string interface_name = owner ? owner->full() : full_name;
  // A whole service or action uses all its parts.
  const Definition& whole = state_->find(interface_name);
  std::map<std::string, std::string> texts{{interface_name, state_->text_of(interface_name)}};
  for (const auto& [name, type] : state_->within(whole)) {
    const std::string part_of = interface_of(name)->full();
    if (!texts.contains(part_of)) texts.emplace(part_of, state_->text_of(part_of));
  }
  return texts;
}

std::string Library::hash(const std::string& full_name) {
  const Definition& type = state_->find(full_name);
  std::vector<const Definition*> referenced;
  for (const auto& [name, inner] : state_->within(type)) referenced.push_back(inner);
  return rihs01(type, referenced);
}

}  // namespace perflab::message
