// Options of a program: valid values, and the error for invalid ones.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "program/program.h"

namespace perflab::program {
namespace {

using nlohmann::json;

template <typename Read>
std::string refused(const json& object, Read read) {
  Options options(object, "options");
  try {
    read(options);
    options.finish();
  } catch (const BadInput& error) {
    return error.what();
  }
  return "";
}

TEST(Options, AreReadAsTheirKinds) {
  Options options({{"number", 1.5},
                   {"whole", 3},
                   {"flag", true},
                   {"word", "b"},
                   {"text", "any"},
                   {"duration", "10ms"},
                   {"numbers", {1, 2.5}},
                   {"texts", {"x", "y"}},
                   {"inner", {{"deep", 1}}},
                   {"list", {{{"at", 1}}, {{"at", 2}}}},
                   {"anything", {1, {{"a", nullptr}}}},
                   {"nothing", nullptr}},
                  "options");
  EXPECT_EQ(options.number("number"), 1.5);
  EXPECT_EQ(options.integer("whole"), 3);
  EXPECT_EQ(options.number("whole"), 3);
  EXPECT_TRUE(options.flag("flag"));
  EXPECT_EQ(options.word("word", {"a", "b"}), "b");
  EXPECT_EQ(options.text("text"), "any");
  EXPECT_EQ(options.duration("duration"), 10'000'000);
  EXPECT_EQ(options.numbers("numbers", 2), (std::vector<double>{1, 2.5}));
  EXPECT_EQ(options.texts("texts"), (std::vector<std::string>{"x", "y"}));
  EXPECT_EQ(options.object("inner").integer("deep"), 1);
  ASSERT_EQ(options.objects("list").size(), 2u);
  EXPECT_EQ(options.objects("list")[1]->integer("at"), 2);
  EXPECT_EQ(options.any("anything").size(), 2u);
  EXPECT_EQ(options.integer("nothing", 7), 7);
  EXPECT_EQ(options.integer("absent", 8), 8);
  EXPECT_FALSE(options.has("absent"));
  EXPECT_THROW(options.finish(), BadInput);  // the first of the list was not read
  options.objects("list")[0]->integer("at");
  EXPECT_NO_THROW(options.finish());
}

TEST(Options, ThatAreWrongHaveALine) {
  const json none = json::object();
  EXPECT_EQ(refused(none, [](Options& o) { o.integer("a", {}, 1, 5); }),
            "options: lacks the key 'a'; right would be a whole number from 1 to 5");
  EXPECT_EQ(refused({{"a", 6}}, [](Options& o) { o.integer("a", {}, 1, 5); }),
            "options.a: is 6; right would be a whole number from 1 to 5");
  EXPECT_EQ(refused({{"a", 1.5}}, [](Options& o) { o.integer("a"); }), "options.a: is 1.5; right would be a whole number");
  EXPECT_EQ(refused({{"a", "x"}}, [](Options& o) { o.number("a", {}, 0); }),
            "options.a: is \"x\"; right would be a number of at least 0");
  EXPECT_EQ(refused({{"a", "x"}}, [](Options& o) { o.word("a", {"b", "c"}); }), "options.a: is \"x\"; right would be b or c");
  EXPECT_EQ(refused({{"a", "5"}}, [](Options& o) { o.duration("a"); }).substr(0, 10), "options.a:");
  EXPECT_EQ(refused({{"a", {1}}}, [](Options& o) { o.numbers("a", 2, {}, 0, 1); }),
            "options.a: is [1]; right would be a list of 2 numbers from 0 to 1");
  EXPECT_EQ(refused({{"a", 1}}, [](Options& o) { o.object("a"); }), "options.a: is 1; right would be a mapping");
  EXPECT_EQ(refused({{"a", {{"b", 1}}}}, [](Options& o) { o.object("a").flag("c", false); }),
            "options.a: has no key 'b'; it may have c");
  EXPECT_EQ(refused({{"l", {{{"b", "x"}}}}}, [](Options& o) { o.objects("l")[0]->integer("b"); }),
            "options.l[0].b: is \"x\"; right would be a whole number");
  EXPECT_EQ(refused({{"aa", 1}}, [](Options&) {}), "options: has no key 'aa'; there are no options");
  EXPECT_EQ(refused({{"a", 1}}, [](Options& o) { o.refuse("a", "is too small for the scene"); }),
            "options.a: is too small for the scene");
}

}  // namespace
}  // namespace perflab::program
