// perflab-messages: generates C++ headers from interface definitions, for programs
// (native/program/program.h).
//
//   perflab-messages --output DIR [--message-path DIR]... (--all | package/msg/Name package/srv/Name
//   package/action/Name ...)
//
// Writes DIR/messages/package/msg/name.h for each interface and all it uses, unless the file is up to date;
// with --all also DIR/messages/all.h, which includes them. Exit codes: 0 success, 1 a file could not be
// written, 2 usage error or bad input.

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

// An unchanged file keeps its time stamp, so that nothing is recompiled.
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
