#include "traceview/arrow.h"

#include <cerrno>
#include <cstring>
#include <exception>
#include <new>
#include <stdexcept>
#include <string_view>

namespace perflab::traceview {
namespace {

ArrowColumn as_it_is(std::string name, const TextColumn& column) {
  return {.name = std::move(name),
          .format = "U",
          .rows = column.size(),
          .null_count = column.null_count(),
          .buffers = {column.validity(), column.offsets(), column.data()}};
}

// Length in bytes of the UTF-8 character at the start of `text`; 0 if the bytes are invalid. Overlong forms and
// surrogates are invalid (Unicode, table 3-7).
std::size_t character_bytes(std::string_view text) {
  const auto byte = [&](std::size_t i) { return i < text.size() ? static_cast<unsigned char>(text[i]) : 0u; };
  const auto continues = [&](std::size_t i, unsigned low = 0x80, unsigned high = 0xbf) {
    return byte(i) >= low && byte(i) <= high;
  };
  const unsigned first = byte(0);
  if (first < 0x80) return text.empty() ? 0 : 1;
  if (first >= 0xc2 && first <= 0xdf) return continues(1) ? 2 : 0;
  if (first >= 0xe0 && first <= 0xef) {
    const bool second = continues(1, first == 0xe0 ? 0xa0 : 0x80, first == 0xed ? 0x9f : 0xbf);
    return second && continues(2) ? 3 : 0;
  }
  if (first >= 0xf0 && first <= 0xf4) {
    const bool second = continues(1, first == 0xf0 ? 0x90 : 0x80, first == 0xf4 ? 0x8f : 0xbf);
    return second && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

bool is_utf8(std::string_view text) {
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    if (bytes == 0) return false;
    text.remove_prefix(bytes);
  }
  return true;
}

// Metadata of a field with one key, encoded for the C data interface: an int32 count, then key and value, each
// preceded by its int32 length.
std::string encode_metadata(std::string_view key, std::string_view value) {
  std::string encoded;
  const auto number = [&](std::size_t n) {
    const auto value32 = static_cast<std::int32_t>(n);
    encoded.append(reinterpret_cast<const char*>(&value32), sizeof value32);
  };
  number(1);
  number(key.size());
  encoded += key;
  number(value.size());
  encoded += value;
  return encoded;
}

// Metadata that makes polars read a dictionary as its Enum: each name, preceded by its length in bytes. Other
// consumers read an ordinary dictionary.
std::string polars_enum_mark(const TextColumn& names) {
  std::string value;
  for (std::size_t i = 0; i < names.size(); ++i) {
    value += std::to_string(names[i].size());
    value += ';';
    value += names[i];
  }
  return encode_metadata("_PL_ENUM_VALUES2", value);
}

// A table being exported; shared by the stream and all of its arrays.
struct Exported {
  std::vector<ArrowColumn> columns;
  std::shared_ptr<const void> owner;
  std::int64_t rows = 0;
};

template <typename Struct>
void release_rest(Struct& node) {
  if (node.release != nullptr) node.release(&node);
}

// Memory of one ArrowSchema or ArrowArray. A consumer may move a child out (its `release` is then null) and
// release it after its parent, so every node owns the memory that it points to.
template <typename Struct, typename Own>
struct Node {
  Own own;
  std::vector<Struct> children;
  std::vector<Struct*> child_pointers;
  std::unique_ptr<Struct> dictionary;

  ~Node() {
    for (Struct& child : children) release_rest(child);
    if (dictionary) release_rest(*dictionary);
  }

  static void release(Struct* out) {
    delete static_cast<Node*>(out->private_data);
    out->release = nullptr;
  }

  // `value` takes ownership of the node.
  static void hand_over(std::unique_ptr<Node> node, Struct value, Struct* out) {
    for (Struct& child : node->children) node->child_pointers.push_back(&child);
    value.n_children = static_cast<std::int64_t>(node->children.size());
    value.children = node->child_pointers.data();
    value.dictionary = node->dictionary.get();
    value.release = release;
    value.private_data = node.release();
    *out = value;
  }
};

struct SchemaTexts {
  std::string name, metadata;
};
using SchemaNode = Node<ArrowSchema, SchemaTexts>;

void set_schema(std::unique_ptr<SchemaNode> node, const char* format, std::int64_t flags, ArrowSchema* out) {
  ArrowSchema value{};
  value.format = format;
  value.name = node->own.name.c_str();
  value.metadata = node->own.metadata.empty() ? nullptr : node->own.metadata.data();
  value.flags = flags;
  SchemaNode::hand_over(std::move(node), value, out);
}

void make_schema(const ArrowColumn& column, ArrowSchema* out) {
  auto node = std::make_unique<SchemaNode>();
  node->own.name = column.name;
  std::int64_t flags = ARROW_FLAG_NULLABLE;
  if (column.dictionary) {
    flags |= ARROW_FLAG_DICTIONARY_ORDERED;
    node->own.metadata = polars_enum_mark(*column.dictionary);
    node->dictionary = std::make_unique<ArrowSchema>();
    set_schema(std::make_unique<SchemaNode>(), "U", 0, node->dictionary.get());
  }
  set_schema(std::move(node), column.format, flags, out);
}

void make_schema(const Exported& table, ArrowSchema* out) {
  auto node = std::make_unique<SchemaNode>();
  node->children.resize(table.columns.size());
  for (std::size_t i = 0; i < table.columns.size(); ++i) make_schema(table.columns[i], &node->children[i]);
  set_schema(std::move(node), "+s", 0, out);
}

struct ArrayBuffers {
  std::shared_ptr<const Exported> table;
  std::vector<const void*> buffers;
};
using ArrayNode = Node<ArrowArray, ArrayBuffers>;

void set_array(std::unique_ptr<ArrayNode> node, std::size_t rows, std::size_t null_count, ArrowArray* out) {
  ArrowArray value{};
  value.length = static_cast<std::int64_t>(rows);
  value.null_count = static_cast<std::int64_t>(null_count);
  value.n_buffers = static_cast<std::int64_t>(node->own.buffers.size());
  value.buffers = node->own.buffers.data();
  ArrayNode::hand_over(std::move(node), value, out);
}

std::unique_ptr<ArrayNode> array_node(const std::shared_ptr<const Exported>& table,
                                      std::vector<const void*> buffers) {
  auto node = std::make_unique<ArrayNode>();
  node->own = {table, std::move(buffers)};
  return node;
}

void make_array(const std::shared_ptr<const Exported>& table, const ArrowColumn& column, ArrowArray* out) {
  auto node = array_node(table, column.buffers);
  if (column.dictionary) {
    const ArrowColumn names = describe("", *column.dictionary);
    node->dictionary = std::make_unique<ArrowArray>();
    set_array(array_node(table, names.buffers), names.rows, 0, node->dictionary.get());
  }
  set_array(std::move(node), column.rows, column.null_count, out);
}

void make_array(const std::shared_ptr<const Exported>& table, ArrowArray* out) {
  auto node = array_node(table, {nullptr});  // a table has no null rows
  node->children.resize(table->columns.size());
  for (std::size_t i = 0; i < table->columns.size(); ++i) {
    make_array(table, table->columns[i], &node->children[i]);
  }
  set_array(std::move(node), static_cast<std::size_t>(table->rows), 0, out);
}

struct Stream {
  std::shared_ptr<const Exported> table;
  bool taken = false;
  std::string error;
};

Stream& state_of(ArrowArrayStream* stream) { return *static_cast<Stream*>(stream->private_data); }

// C callers must not receive exceptions.
template <typename F>
int guarded(ArrowArrayStream* stream, F&& f) noexcept {
  try {
    f();
    return 0;
  } catch (const std::bad_alloc&) {
    return ENOMEM;
  } catch (const std::exception& error) {
    try {
      state_of(stream).error = error.what();
    } catch (const std::exception&) {  // no memory for the message either
    }
    return EIO;
  }
}

int get_schema(ArrowArrayStream* stream, ArrowSchema* out) {
  return guarded(stream, [&] { make_schema(*state_of(stream).table, out); });
}

int get_next(ArrowArrayStream* stream, ArrowArray* out) {
  return guarded(stream, [&] {
    Stream& state = state_of(stream);
    if (state.taken) {
      *out = {};  // released: end of the stream
      return;
    }
    make_array(state.table, out);
    state.taken = true;
  });
}

const char* get_last_error(ArrowArrayStream* stream) {
  const Stream& state = state_of(stream);
  return state.error.empty() ? nullptr : state.error.c_str();
}

void release_stream(ArrowArrayStream* stream) {
  delete static_cast<Stream*>(stream->private_data);
  stream->private_data = nullptr;
  stream->release = nullptr;
}

}  // namespace

std::string as_utf8(std::string_view text) {
  std::string repaired;
  while (!text.empty()) {
    const std::size_t bytes = character_bytes(text);
    repaired += bytes == 0 ? std::string_view("\xef\xbf\xbd") : text.substr(0, bytes);
    text.remove_prefix(bytes == 0 ? 1 : bytes);
  }
  return repaired;
}

ArrowColumn describe(std::string name, const Column<std::uint8_t>& flags) {
  auto bits = std::make_shared<std::vector<std::uint8_t>>((flags.size() + 7) / 8);
  for (std::size_t row = 0; row < flags.size(); ++row) {
    if (flags[row] != 0) (*bits)[row / 8] = static_cast<std::uint8_t>((*bits)[row / 8] | (1u << (row % 8)));
  }
  const void* const data = or_nothing(bits->data());
  return {.name = std::move(name),
          .format = "b",
          .rows = flags.size(),
          .null_count = flags.null_count(),
          .buffers = {flags.validity(), data},
          .copied = std::move(bits)};
}

ArrowColumn describe(std::string name, const TextColumn& column) {
  bool well_formed = true;
  for (std::size_t row = 0; row < column.size() && well_formed; ++row) well_formed = is_utf8(column[row]);
  if (well_formed) return as_it_is(std::move(name), column);
  const auto repaired = std::make_shared<TextColumn>();
  for (std::size_t row = 0; row < column.size(); ++row) {
    column.valid(row) ? repaired->push(std::string_view(as_utf8(column[row]))) : repaired->push_null();
  }
  ArrowColumn described = as_it_is(std::move(name), *repaired);
  described.copied = repaired;
  return described;
}

ArrowColumn describe_enum(std::string name, const UInt8& codes, std::span<const char* const> names) {
  ArrowColumn column = fixed_width(std::move(name), "C", codes);
  auto dictionary = std::make_shared<TextColumn>();
  for (const char* one : names) dictionary->push(std::string_view(one));
  column.dictionary = std::move(dictionary);
  return column;
}

void export_columns(std::vector<ArrowColumn> columns, std::shared_ptr<const void> owner,
                    ArrowArrayStream* out) {
  const std::size_t rows = columns.empty() ? 0 : columns.front().rows;
  for (const ArrowColumn& column : columns) {
    if (column.rows != rows) {
      throw std::logic_error("column " + column.name + " has " + std::to_string(column.rows) + " rows, " +
                             columns.front().name + " has " + std::to_string(rows));
    }
  }
  auto table = std::make_shared<Exported>();
  table->columns = std::move(columns);
  table->owner = std::move(owner);
  table->rows = static_cast<std::int64_t>(rows);
  auto state = std::make_unique<Stream>();
  state->table = std::move(table);
  *out = {.get_schema = get_schema,
          .get_next = get_next,
          .get_last_error = get_last_error,
          .release = release_stream,
          .private_data = state.release()};
}

}  // namespace perflab::traceview
