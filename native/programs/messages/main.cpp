// perflab-messages: C++ headers of interface definitions, for programs (native/program/program.h).
//
//   perflab-messages --output DIR [--message-path DIR]... (--all | package/msg/Name package/srv/Name package/action/Name ...)
//
// Writes DIR/messages/package/msg/name.h for each and for all that it is made of, where that differs from what is there; with
// --all also DIR/messages/all.h, which includes them.
// Exit codes: 0 done, 1 a file could not be written, 2 usage or bad input.

#include <cstdio>
#include <exception>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "base/options.h"
#include "message/definitions.h"
#include "message/library.h"
#include "programs/messages/generate.h"

namespace {

// A file that is as it should be stays as old as it is, and nothing is compiled again.
void write(const std::filesystem::path& path, const std::string& text) {
  std::ostringstream there;
  there << std::ifstream(path).rdbuf();
  if (there.str() == text) return;
  std::filesystem::create_directories(path.parent_path());
  std::ofstream file(path);
  file << text;
  if (!file.flush()) throw perflab::Failed(path.string() + ": cannot be written");
}

}  // namespace

int main(int argc, char** argv) {
  using namespace perflab;
  std::string output;
  std::vector<std::string> folders;
  bool all = false;
  Options options("perflab-messages --output DIR [--message-path DIR]... (--all | INTERFACE...)");
  options.text("output", output).flag("all", all).value("message-path", [&](std::string_view folder) {
    folders.emplace_back(folder);
  });
  try {
    std::vector<std::string> interfaces = options.parse(argc, argv);
    options.require(!output.empty() && all == interfaces.empty());
    message::Library library(message::brought());
    for (const std::string& folder : folders) library.add_folder(folder);
    if (all) interfaces = library.names();
    const std::map<std::string, std::string> headers = messages::headers_of(interfaces, library);
    for (const auto& [path, text] : headers) write(std::filesystem::path(output) / path, text);
    if (all) write(std::filesystem::path(output) / "messages/all.h", messages::header_of_all(headers));
    return 0;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "perflab-messages: %s\n", error.what());
    return exit_code(kind_of(error));
  }
}
