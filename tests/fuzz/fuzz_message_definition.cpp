// Interface files: pieces of the text, apart by lines of ===, are messages A, B, ... of one package that may
// contain each other; the last one is read as a service and as an action, too.
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "message/library.h"
#include "message/parse.h"
#include "require.h"

namespace {

using perflab::fuzz::require;
using perflab::message::Definition;
using perflab::message::Library;

constexpr std::size_t kMostPieces = 26;

std::vector<std::string> pieces_of(std::string_view text) {
  constexpr std::string_view kBetween = "===\n";
  std::vector<std::string> pieces;
  while (pieces.size() + 1 < kMostPieces) {
    const std::size_t end = text.find(kBetween);
    if (end == std::string_view::npos) break;
    pieces.emplace_back(text.substr(0, end));
    text.remove_prefix(end + kBetween.size());
  }
  pieces.emplace_back(text);
  return pieces;
}

void check(Library& library, const std::string& name) {
  std::string hash;
  try {
    hash = library.hash(name);
  } catch (const perflab::BadInput& error) {
    perflab::fuzz::require_one_line(error.what());
    require(std::string_view(error.what()).find(": ") != std::string_view::npos, "a rejection has a place");
    return;
  }
  require(hash.size() == 71, "a hash has 71 characters");
  // A library that has only the texts of an accepted type accepts it too, with the same hash.
  Library other;
  for (const auto& [each, text] : library.texts_of(name)) other.add_text(each, text, each);
  require(other.hash(name) == hash, "the texts are all that is needed");
  const Definition* const found = perflab::message::is_aggregate(name) ? nullptr : &library.find(name);
  if (found == nullptr) return;
  require(!found->fields.empty(), "a struct has a field");
  require(found->fields.size() == found->places.size(), "each field has a place");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::vector<std::string> pieces = pieces_of({reinterpret_cast<const char*>(data), size});
  Library library;
  library.add_text("std_msgs/msg/Header", "string frame_id\n", "Header.msg");
  library.add_text("builtin_interfaces/msg/Time", "int32 sec\nuint32 nanosec\n", "Time.msg");
  library.add_text("service_msgs/msg/ServiceEventInfo", "char[16] client_gid\n", "ServiceEventInfo.msg");
  library.add_text("unique_identifier_msgs/msg/UUID", "uint8[16] uuid\n", "UUID.msg");
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const std::string name(1, static_cast<char>('A' + i));
    library.add_text("pkg/msg/" + name, pieces[i], name + ".msg");
  }
  library.add_text("pkg/srv/Do", pieces.back(), "Do.srv");
  library.add_text("pkg/action/Go", pieces.back(), "Go.action");
  for (const std::string& name : library.names()) check(library, name);
  return 0;
}
