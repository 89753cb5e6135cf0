#include "base/error.h"

#include <gtest/gtest.h>

#include <new>

namespace perflab {
namespace {

TEST(Error, ItsKindDecidesTheExitCodeAndTheWord) {
  EXPECT_EQ(exit_code(kind_of(BadInput("x"))), 2);
  EXPECT_EQ(exit_code(kind_of(Unsupported("x"))), 3);
  EXPECT_EQ(exit_code(kind_of(Failed("x"))), 1);
  EXPECT_STREQ(to_text(Error::Kind::kBadInput), "bad_input");
  EXPECT_STREQ(to_text(Error::Kind::kUnsupported), "unsupported");
  EXPECT_STREQ(to_text(Error::Kind::kFailed), "failed");
}

TEST(Error, WhatLibrariesThrowIsAFailure) {
  EXPECT_EQ(kind_of(std::bad_alloc()), Error::Kind::kFailed);
  EXPECT_EQ(kind_of(std::invalid_argument("x")), Error::Kind::kFailed);
}

}  // namespace
}  // namespace perflab
