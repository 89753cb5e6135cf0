// runtime_conformance_NAME [options of the runtime] [GoogleTest's options]
#include <gtest/gtest.h>

#include <cstdio>
#include <string>

#include "subject.h"

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  auto& subject = perflab::runtime::conformance::subject();
  for (int i = 1; i < argc; i += 2) {
    if (i + 1 < argc && subject.set(argv[i], argv[i + 1])) continue;
    std::fprintf(stderr, "unknown argument %s, or it has no value\n", argv[i]);
    return 2;
  }
  if (const std::string missing = subject.missing(); !missing.empty() && !testing::GTEST_FLAG(list_tests)) {
    std::fprintf(stderr, "%s is missing\n", missing.c_str());
    return 2;
  }
  return RUN_ALL_TESTS();
}
