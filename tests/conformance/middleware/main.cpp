// middleware_conformance --plugin FILE [--roudi PROGRAM] [--may-refuse WHAT]... [--option KEY=VALUE]... [--short-lease
// KEY=VALUE]
//     [GoogleTest's options]
#include <cstdio>
#include <string_view>

#include "fixture.h"
#include "roudi.h"

namespace perflab::conformance {

Subject& subject() {
  static Subject instance;
  return instance;
}

}  // namespace perflab::conformance

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  auto& subject = perflab::conformance::subject();
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    const std::string value = argv[i + 1];
    if (name == "--plugin") {
      subject.plugin = value;
    } else if (name == "--other-plugin") {
      subject.other_plugin = value;
    } else if (name == "--roudi") {
      subject.roudi = value;
    } else if (name == "--may-refuse") {
      subject.may_refuse.push_back(value);
    } else if ((name == "--short-lease" || name == "--option") && value.find('=') != std::string::npos) {
      const std::size_t split = value.find('=');
      auto& options = name == "--option" ? subject.options : subject.short_lease;
      options.emplace_back(value.substr(0, split), value.substr(split + 1));
    } else {
      std::fprintf(stderr,
                   "unknown argument %s; known are --plugin FILE, --other-plugin FILE, --roudi PROGRAM, --may-refuse WHAT, "
                   "--option KEY=VALUE and --short-lease KEY=VALUE\n",
                   argv[i]);
      return 2;
    }
  }
  if (subject.plugin.empty() && !testing::GTEST_FLAG(list_tests)) {
    std::fprintf(stderr, "--plugin FILE is missing\n");
    return 2;
  }
  if (subject.roudi.empty() || testing::GTEST_FLAG(list_tests)) return RUN_ALL_TESTS();
  // When it ends, it signals the processes that map its memory; so the tests run in another process.
  perflab::conformance::RouDi roudi(subject.roudi);
  perflab::conformance::eventually(perflab::conformance::RouDi::ready);
  const pid_t tests = fork();
  if (tests == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    std::exit(RUN_ALL_TESTS());
  }
  int status = 0;
  waitpid(tests, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 1;
}
