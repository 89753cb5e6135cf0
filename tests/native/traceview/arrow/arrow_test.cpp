#include "traceview/arrow.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <memory>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

#include "traceview/scheduler.h"
#include "traceview/tables.h"

namespace perflab::traceview {
namespace {

enum class Colour : std::uint8_t { red, blue };
constexpr std::array<const char*, 2> names(Colour) { return {"red", "light blue"}; }

// One column of each kind.
struct Sample {
  Int32 int32;
  Int64 int64;
  UInt8 flag;
  UInt32 uint32;
  UInt64 uint64;
  Column<double> real;
  TextColumn text;
  EnumColumn<Colour> colour;
  template <typename F>
  void columns(F&& f) const {
    f("int32", int32), f("int64", int64), f("flag", flag), f("uint32", uint32), f("uint64", uint64),
        f("real", real);
    f("text", text), f("colour", colour);
  }
};
constexpr std::size_t kColumns = 8;
enum Place : std::size_t { kInt32, kInt64, kFlag, kUint32, kUint64, kReal, kText, kColour };

void push(Sample& sample, int value) {
  sample.int32.push(value), sample.int64.push(value), sample.flag.push(static_cast<std::uint8_t>(value % 2));
  sample.uint32.push(static_cast<std::uint32_t>(value)),
      sample.uint64.push(static_cast<std::uint64_t>(value));
  sample.real.push(value), sample.text.push(std::string_view(std::to_string(value)));
  sample.colour.push(static_cast<Colour>(value % 2));
}

void push_null(Sample& sample) {
  sample.int32.push_null(), sample.int64.push_null(), sample.flag.push_null(), sample.uint32.push_null();
  sample.uint64.push_null(), sample.real.push_null(), sample.text.push_null(), sample.colour.push_null();
}

// Releases what it holds at the end, like a well-behaved consumer.
template <typename T>
struct Held {
  T c{};
  Held() = default;
  Held(const Held&) = delete;
  Held& operator=(const Held&) = delete;
  ~Held() { release(); }
  void release() {
    if (c.release != nullptr) c.release(&c);
  }
};

struct Read {
  Held<ArrowArrayStream> stream;
  Held<ArrowSchema> schema;
  Held<ArrowArray> batch;

  void all() {
    ASSERT_EQ(stream.c.get_schema(&stream.c, &schema.c), 0);
    ASSERT_EQ(stream.c.get_next(&stream.c, &batch.c), 0);
    ASSERT_NE(batch.c.release, nullptr);
  }
  [[nodiscard]] const ArrowSchema& field(std::size_t i) const { return *schema.c.children[i]; }
  [[nodiscard]] const ArrowArray& column(std::size_t i) const { return *batch.c.children[i]; }
};

std::shared_ptr<Sample> sample_of(int rows, bool with_nulls = false) {
  auto sample = std::make_shared<Sample>();
  for (int i = 0; i < rows; ++i) with_nulls&& i % 3 == 1 ? push_null(*sample) : push(*sample, i);
  return sample;
}

template <typename T>
T at(const ArrowArray& array, std::size_t buffer, std::size_t i) {
  return static_cast<const T*>(array.buffers[buffer])[i];
}

bool bit(const ArrowArray& array, std::size_t buffer, std::size_t i) {
  return ((at<std::uint8_t>(array, buffer, i / 8) >> (i % 8)) & 1) != 0;
}

TEST(Arrow, BuffersAreThoseOfTheColumns) {
  const auto sample = sample_of(20, true);
  Read read;
  export_table(*sample, sample, &read.stream.c);
  read.all();
  EXPECT_EQ(read.column(kInt32).buffers[1], sample->int32.data());
  EXPECT_EQ(read.column(kInt64).buffers[1], sample->int64.data());
  EXPECT_EQ(read.column(kUint32).buffers[1], sample->uint32.data());
  EXPECT_EQ(read.column(kUint64).buffers[1], sample->uint64.data());
  EXPECT_EQ(read.column(kReal).buffers[1], sample->real.data());
  EXPECT_EQ(read.column(kText).buffers[1], sample->text.offsets());
  EXPECT_EQ(read.column(kText).buffers[2], sample->text.data());
  EXPECT_EQ(read.column(kColour).buffers[1], sample->colour.codes().data());
  EXPECT_EQ(read.column(kInt64).buffers[0], sample->int64.validity());
  EXPECT_EQ(read.column(kFlag).buffers[0], sample->flag.validity());
  EXPECT_EQ(read.column(kText).buffers[0], sample->text.validity());
}

TEST(Arrow, TheSchemaNamesColumnsAndTypes) {
  const auto sample = sample_of(1);
  Read read;
  export_table(*sample, sample, &read.stream.c);
  read.all();
  EXPECT_STREQ(read.schema.c.format, "+s");
  ASSERT_EQ(read.schema.c.n_children, static_cast<std::int64_t>(kColumns));
  const std::vector<std::pair<std::string, std::string>> expected = {
      {"int32", "i"},  {"int64", "l"}, {"flag", "b"}, {"uint32", "I"},
      {"uint64", "L"}, {"real", "g"},  {"text", "U"}, {"colour", "C"}};
  for (std::size_t i = 0; i < kColumns; ++i) {
    EXPECT_EQ(read.field(i).name, expected[i].first);
    EXPECT_EQ(read.field(i).format, expected[i].second);
    EXPECT_NE(read.field(i).flags & ARROW_FLAG_NULLABLE, 0);
  }
}

TEST(Arrow, NullsAreBitsThatAreZero) {
  const auto sample = sample_of(20, true);
  Read read;
  export_table(*sample, sample, &read.stream.c);
  read.all();
  for (std::size_t column = 0; column < kColumns; ++column) {
    EXPECT_EQ(read.column(column).null_count, 7);
    EXPECT_EQ(read.column(column).length, 20);
    for (std::size_t row = 0; row < 20; ++row) EXPECT_EQ(bit(read.column(column), 0, row), row % 3 != 1);
  }
  EXPECT_EQ(read.batch.c.null_count, 0);
}

TEST(Arrow, ColumnsWithoutNullsHaveNoBits) {
  const auto sample = sample_of(5);
  Read read;
  export_table(*sample, sample, &read.stream.c);
  read.all();
  for (std::size_t column = 0; column < kColumns; ++column) {
    EXPECT_EQ(read.column(column).buffers[0], nullptr);
    EXPECT_EQ(read.column(column).null_count, 0);
  }
}

TEST(Arrow, FlagsAreBits) {
  const auto sample = sample_of(19);
  Read read;
  export_table(*sample, sample, &read.stream.c);
  read.all();
  for (std::size_t row = 0; row < 19; ++row) EXPECT_EQ(bit(read.column(kFlag), 1, row), row % 2 == 1);
}

TEST(Arrow, EnumerationsAreDictionariesThatPolarsKnowsAsEnumerations) {
  const auto sample = sample_of(3);
  Read read;
  export_table(*sample, sample, &read.stream.c);
  read.all();
  const ArrowSchema& field = read.field(kColour);
  EXPECT_NE(field.flags & ARROW_FLAG_DICTIONARY_ORDERED, 0);
  ASSERT_NE(field.dictionary, nullptr);
  EXPECT_STREQ(field.dictionary->format, "U");
  const std::string_view metadata(field.metadata, 4 + 4 + 16 + 4 + 18);
  EXPECT_EQ(metadata.substr(8, 16), "_PL_ENUM_VALUES2");
  EXPECT_EQ(metadata.substr(28), "3;red10;light blue");
  const ArrowArray& names = *read.column(kColour).dictionary;
  EXPECT_EQ(names.length, 2);
  EXPECT_EQ(at<std::int64_t>(names, 1, 2), 13);
  EXPECT_EQ(std::string_view(static_cast<const char*>(names.buffers[2]), 13), "redlight blue");
  EXPECT_EQ(at<std::uint8_t>(read.column(kColour), 1, 1), 1);
}

// A table that reads one of its columns again.
struct Rows : Table<Rows> {
  Int32 read_again, wanted, unwanted;
  Int64 ended_ns;
  PERFLAB_COLUMNS(read_again, wanted, unwanted, ended_ns)
  PERFLAB_ONLY_WRITTEN(wanted, unwanted)
  PERFLAB_ONLY_NULLS_READ(ended_ns)
};

TEST(Arrow, ColumnsThatNobodyWantsAreCountedAndNotHandedOut) {
  const auto rows = std::make_shared<Rows>();
  rows->keep([](std::string_view column) { return column == "wanted" ? Kept::values : Kept::rows; });
  for (int i = 0; i < 9; ++i) rows->push(i, i, i, std::nullopt);
  rows->settle();
  rows->ended_ns.set(3, 5);
  rows->ended_ns.set(3, 6);
  rows->ended_ns.set(4, 7);
  rows->ended_ns.set_null(4);
  EXPECT_EQ(rows->unwanted.size(), 9U);
  EXPECT_EQ(rows->ended_ns.size(), 9U);
  EXPECT_EQ(rows->ended_ns.null_count(), 8U);
  EXPECT_TRUE(rows->ended_ns.valid(3));
  EXPECT_FALSE(rows->ended_ns.valid(4));
  Read read;
  export_table(*rows, rows, &read.stream.c);
  read.all();
  ASSERT_EQ(read.batch.c.n_children, 2);
  EXPECT_EQ(at<std::int32_t>(read.column(0), 1, 8), 8);
  EXPECT_EQ(at<std::int32_t>(read.column(1), 1, 8), 8);
}

TEST(Arrow, AnEmptyTableIsABatchWithoutRowsWhoseBuffersExist) {
  const auto sample = std::make_shared<Sample>();
  Read read;
  export_table(*sample, sample, &read.stream.c);
  read.all();
  EXPECT_EQ(read.batch.c.length, 0);
  for (std::size_t column = 0; column < kColumns; ++column) {
    EXPECT_EQ(read.column(column).length, 0);
    EXPECT_NE(read.column(column).buffers[1], nullptr);
  }
}

TEST(Arrow, TextsThatAreNotUtf8AreRepairedInACopy) {
  struct Texts {
    TextColumn text;
    void columns(const std::function<void(const char*, const TextColumn&)>& f) const { f("text", text); }
  };
  // Input, expected. Each byte that is not part of a character becomes one U+FFFD.
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"plain", "plain"},
      {"gr\xc3\xb6\xc3\x9f"
       "e \xe2\x82\xac \xf0\x9f\x90\xa2",
       "gr\xc3\xb6\xc3\x9f"
       "e \xe2\x82\xac \xf0\x9f\x90\xa2"},
      {"cut \xc3", "cut \xef\xbf\xbd"},
      {"cut \xe2\x82", "cut \xef\xbf\xbd\xef\xbf\xbd"},
      {"\xc0\xafx", "\xef\xbf\xbd\xef\xbf\xbdx"},                                // overlong
      {"\xed\xa0\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},                  // a surrogate
      {"\xf4\x90\x80\x80", "\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbd"},  // beyond U+10FFFF
      {"\xf4\x8f\xbf\xbf\xee\x80\x80\xed\x9f\xbf", "\xf4\x8f\xbf\xbf\xee\x80\x80\xed\x9f\xbf"},
      {"\x80\xff", "\xef\xbf\xbd\xef\xbf\xbd"},
      {"", ""},
  };
  auto texts = std::make_shared<Texts>();
  for (const auto& [given, expected] : cases) texts->text.push(std::string_view(given));
  texts->text.push_null();
  Read read;
  export_table(*texts, texts, &read.stream.c);
  texts.reset();
  read.all();
  read.stream.release();
  const ArrowArray& column = read.column(0);
  ASSERT_EQ(column.length, static_cast<std::int64_t>(cases.size()) + 1);
  EXPECT_EQ(column.null_count, 1);
  EXPECT_FALSE(bit(column, 0, cases.size()));
  for (std::size_t row = 0; row < cases.size(); ++row) {
    const auto begin = static_cast<std::size_t>(at<std::int64_t>(column, 1, row));
    const auto end = static_cast<std::size_t>(at<std::int64_t>(column, 1, row + 1));
    EXPECT_EQ(std::string(static_cast<const char*>(column.buffers[2]) + begin, end - begin),
              cases[row].second);
  }
}

TEST(Arrow, AStreamHasOneBatch) {
  const auto sample = sample_of(2);
  Read read;
  export_table(*sample, sample, &read.stream.c);
  read.all();
  ArrowArray next{};
  next.release = [](ArrowArray*) {};
  EXPECT_EQ(read.stream.c.get_next(&read.stream.c, &next), 0);
  EXPECT_EQ(next.release, nullptr);
  EXPECT_EQ(read.stream.c.get_last_error(&read.stream.c), nullptr);
}

TEST(Arrow, TheOwnerLivesUntilTheLastPieceIsReleased) {
  auto sample = sample_of(10, true);
  const std::weak_ptr<Sample> life = sample;
  Read read;
  export_table(*sample, sample, &read.stream.c);
  sample.reset();
  read.all();
  read.stream.release();
  EXPECT_FALSE(life.expired());
  EXPECT_EQ(at<std::int64_t>(read.column(kInt64), 1, 9), 9);
  read.batch.release();
  EXPECT_TRUE(life.expired());
  EXPECT_STREQ(read.field(kInt64).name, "int64");  // a schema is independent of the stream
}

TEST(Arrow, TheStreamMayOutliveItsBatch) {
  auto sample = sample_of(10);
  const std::weak_ptr<Sample> life = sample;
  Read read;
  export_table(*sample, sample, &read.stream.c);
  sample.reset();
  read.all();
  read.batch.release();
  EXPECT_FALSE(life.expired());
  read.stream.release();
  EXPECT_TRUE(life.expired());
}

TEST(Arrow, AStreamThatNobodyReadsLetsGoOfItsOwner) {
  auto sample = sample_of(10);
  const std::weak_ptr<Sample> life = sample;
  Held<ArrowArrayStream> stream;
  export_table(*sample, sample, &stream.c);
  sample.reset();
  EXPECT_FALSE(life.expired());
  stream.release();
  EXPECT_TRUE(life.expired());
  stream.release();  // released already: nothing is left to call
  EXPECT_EQ(stream.c.release, nullptr);
}

TEST(Arrow, ColumnsMayBeMovedOutAndReleasedAfterTheirTable) {
  auto sample = sample_of(10, true);
  const std::weak_ptr<Sample> life = sample;
  Held<ArrowArray> colour;
  Held<ArrowArray> flag;
  Held<ArrowSchema> field;
  {
    Read read;
    export_table(*sample, sample, &read.stream.c);
    sample.reset();
    read.all();
    for (auto& [held, place] : {std::pair{&colour, kColour}, std::pair{&flag, kFlag}}) {
      held->c = *read.batch.c.children[place];
      read.batch.c.children[place]->release = nullptr;
    }
    field.c = *read.schema.c.children[kColour];
    read.schema.c.children[kColour]->release = nullptr;
  }
  EXPECT_FALSE(life.expired());
  EXPECT_EQ(at<std::uint8_t>(colour.c, 1, 3), 1);
  EXPECT_EQ(std::string_view(static_cast<const char*>(colour.c.dictionary->buffers[2]), 3), "red");
  EXPECT_TRUE(bit(flag.c, 1, 3));
  EXPECT_STREQ(field.c.name, "colour");
  EXPECT_STREQ(field.c.dictionary->format, "U");
  colour.release();
  EXPECT_FALSE(life.expired());
  flag.release();
  EXPECT_TRUE(life.expired());
}

TEST(Arrow, SeveralTablesOfOneOwnerAreIndependent) {
  struct Trace {
    Sample one, two;
  };
  auto trace = std::make_shared<Trace>();
  push(trace->one, 1), push(trace->two, 2);
  const std::weak_ptr<Trace> life = trace;
  Read one;
  Read two;
  Read one_again;
  export_table(trace->one, trace, &one.stream.c);
  export_table(trace->two, trace, &two.stream.c);
  export_table(trace->one, trace, &one_again.stream.c);
  trace.reset();
  one.all(), two.all(), one_again.all();
  EXPECT_EQ(one.column(kInt64).buffers[1], one_again.column(kInt64).buffers[1]);
  one.stream.release(), one.batch.release(), one_again.stream.release(), one_again.batch.release();
  EXPECT_EQ(at<std::int32_t>(two.column(kInt32), 1, 0), 2);
  two.batch.release();
  EXPECT_FALSE(life.expired());
  two.stream.release();
  EXPECT_TRUE(life.expired());
}

TEST(Arrow, ColumnsOfDifferentLengthAreRefused) {
  const auto sample = sample_of(3);
  sample->uint64.push(1);
  ArrowArrayStream stream{};
  try {
    export_table(*sample, sample, &stream);
    FAIL() << "it was exported";
  } catch (const std::logic_error& error) {
    EXPECT_STREQ(error.what(), "column uint64 has 4 rows, int32 has 3");
  }
  EXPECT_EQ(stream.release, nullptr);
}

template <typename Table>
class ArrowTables : public testing::Test {};
using AllTables =
    testing::Types<Hosts, Processes, Threads, Nodes, Endpoints, ServiceEndpoints, Timers, Callbacks,
                   CallbackInstances, Publications, Takes, IntraDeliveries, ServiceCalls, Phases,
                   FunctionCalls, Functions, ThreadStates, WakeUps, Migrations, Holds, Scheduler::HoldsOf>;
TYPED_TEST_SUITE(ArrowTables, AllTables);

TYPED_TEST(ArrowTables, EveryColumnIsExportedUnderItsName) {
  const auto table = std::make_shared<TypeParam>();
  Read read;
  export_table(*table, table, &read.stream.c);
  read.all();
  std::size_t i = 0;
  table->columns([&](const char* name, const auto&) {
    ASSERT_LT(static_cast<std::int64_t>(i), read.schema.c.n_children);
    EXPECT_STREQ(read.field(i++).name, name);
  });
  EXPECT_EQ(static_cast<std::int64_t>(i), read.schema.c.n_children);
  EXPECT_EQ(read.batch.c.n_children, read.schema.c.n_children);
}

}  // namespace
}  // namespace perflab::traceview
