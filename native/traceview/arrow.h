// Exports tables to Python as Apache Arrow C streams, without copying.
//
// A stream has one batch, a struct with one child per column. The batch uses the columns' own buffers. An owner
// keeps them alive until the consumer has released every part, in any order and on any thread.
//
//   Column<T>      the fixed-width type
//   UInt8          a flag, 0 or 1: bool. Copied, since Arrow's booleans are bits
//   TextColumn     large_utf8; if a text is not UTF-8, a copy with U+FFFD (the kernel truncates names at any byte)
//   EnumColumn<E>  dictionary<uint8, large_utf8, ordered> of the names, marked as a polars pl.Enum
//
// The structures are defined in https://arrow.apache.org/docs/format/CDataInterface.html and
// CStreamInterface.html.
//
// Example:
//   auto view = View::open(...);
//   export_table(view->takes(), view, &stream);  // `view` lives until the consumer releases the stream
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traceview/column.h"

extern "C" {

#ifndef ARROW_C_DATA_INTERFACE
#define ARROW_C_DATA_INTERFACE

#define ARROW_FLAG_DICTIONARY_ORDERED 1
#define ARROW_FLAG_NULLABLE 2
#define ARROW_FLAG_MAP_KEYS_SORTED 4

struct ArrowSchema {
  const char* format;
  const char* name;
  const char* metadata;
  std::int64_t flags;
  std::int64_t n_children;
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);
  void* private_data;
};

struct ArrowArray {
  std::int64_t length;
  std::int64_t null_count;
  std::int64_t offset;
  std::int64_t n_buffers;
  std::int64_t n_children;
  const void** buffers;
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);
  void* private_data;
};

#endif  // ARROW_C_DATA_INTERFACE

#ifndef ARROW_C_STREAM_INTERFACE
#define ARROW_C_STREAM_INTERFACE

struct ArrowArrayStream {
  int (*get_schema)(struct ArrowArrayStream*, struct ArrowSchema* out);
  int (*get_next)(struct ArrowArrayStream*, struct ArrowArray* out);
  const char* (*get_last_error)(struct ArrowArrayStream*);
  void (*release)(struct ArrowArrayStream*);
  void* private_data;
};

#endif  // ARROW_C_STREAM_INTERFACE

}  // extern "C"

namespace perflab::traceview {

// Invalid bytes are replaced by U+FFFD.
[[nodiscard]] std::string as_utf8(std::string_view text);

// A column's exported parts. The pointers are valid while the table's owner and `copied` live.
struct ArrowColumn {
  std::string name;
  const char* format = "";
  std::size_t rows = 0;
  std::size_t null_count = 0;
  std::vector<const void*> buffers{};  // validity (null if no row is null), then the buffers of the format
  std::shared_ptr<const TextColumn> dictionary{};  // names of an enumeration
  std::shared_ptr<const void> copied{};            // data that had to be copied
};

// Buffer of an empty column: consumers may refuse null pointers even if they have nothing to read.
alignas(64) inline constexpr std::uint8_t kNothing[64] = {};
[[nodiscard]] inline const void* or_nothing(const void* buffer) {
  return buffer != nullptr ? buffer : kNothing;
}

template <typename T>
[[nodiscard]] ArrowColumn fixed_width(std::string name, const char* format, const Column<T>& column) {
  return {.name = std::move(name),
          .format = format,
          .rows = column.size(),
          .null_count = column.null_count(),
          .buffers = {column.validity(), or_nothing(column.data())}};
}

constexpr const char* arrow_format(std::int32_t) { return "i"; }
constexpr const char* arrow_format(std::int64_t) { return "l"; }
constexpr const char* arrow_format(std::uint32_t) { return "I"; }
constexpr const char* arrow_format(std::uint64_t) { return "L"; }
constexpr const char* arrow_format(double) { return "g"; }

template <typename T>
[[nodiscard]] ArrowColumn describe(std::string name, const Column<T>& column) {
  return fixed_width(std::move(name), arrow_format(T{}), column);
}
[[nodiscard]] ArrowColumn describe(std::string name, const Column<std::uint8_t>& flags);
[[nodiscard]] ArrowColumn describe(std::string name, const TextColumn& column);
[[nodiscard]] ArrowColumn describe_enum(std::string name, const UInt8& codes,
                                        std::span<const char* const> names);

template <typename E>
[[nodiscard]] ArrowColumn describe(std::string name, const EnumColumn<E>& column) {
  return describe_enum(std::move(name), column.codes(), names(E{}));
}

// Makes the stream; the consumer must call its `release`. Throws std::logic_error if columns differ in
// length, and then leaves `out` unchanged.
void export_columns(std::vector<ArrowColumn> columns, std::shared_ptr<const void> owner,
                    ArrowArrayStream* out);

// Exports the columns of `table` whose values are kept. `owner` keeps them alive; they must not change any more.
template <typename Table>
void export_table(const Table& table, std::shared_ptr<const void> owner, ArrowArrayStream* out) {
  std::vector<ArrowColumn> columns;
  table.columns([&](const char* name, const auto& column) {
    if (column.kept()) columns.push_back(describe(name, column));
  });
  export_columns(std::move(columns), std::move(owner), out);
}

}  // namespace perflab::traceview
