// Files of events: the first byte chooses the metadata, the rest are the packets. Whatever they hold, reading
// ends, stays inside of them, and passes over as many events as it hands out.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "ctf/packet_index.h"
#include "ctf/stream.h"
#include "require.h"

namespace {

using namespace perflab::ctf;
using perflab::fuzz::require;

const std::string kIntegers = R"(/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := u8;
typealias integer { size = 16; align = 8; signed = false; } := u16;
typealias integer { size = 32; align = 8; signed = false; } := u32;
typealias integer { size = 64; align = 8; signed = false; } := u64;
typealias integer { size = 8; align = 8; signed = false; encoding = UTF8; } := letter;
)";

const std::string kClock = R"(
clock { name = mono; freq = 1000000000; };
typealias integer { size = 27; align = 1; signed = false; map = clock.mono.value; } := t27;
typealias integer { size = 32; align = 8; signed = false; map = clock.mono.value; } := t32;
typealias integer { size = 64; align = 8; signed = false; map = clock.mono.value; } := t64;
)";

const std::string kPacket =
    R"(packet.context := struct { t64 timestamp_begin; t64 timestamp_end; u64 content_size;
  u64 packet_size; u64 packet_seq_num; u64 events_discarded; u32 cpu_id; };
)";

const std::string kTrace =
    R"(trace { major = 1; minor = 8; byte_order = le; packet.header := struct { u32 magic; u32 stream_id; }; };
)";

const std::string kEvents = R"(
event { name = "a"; id = 0; stream_id = 0; fields := struct { u32 x; }; };
event { name = "b"; id = 1; stream_id = 0; fields := struct { string s; u64 y; u8 gid[16]; }; };
event { name = "c"; id = 2; stream_id = 0; fields := struct { u8 n; u64 v[n]; u16 m; u8 raw[m]; }; };
event { name = "d"; id = 70000; stream_id = 0; fields := struct { }; };
)";

const std::array<std::string, 4> kMetadata{
    // LTTng's large event header
    kIntegers + kTrace + kClock + "stream { id = 0; " + kPacket + R"(
  event.header := struct { enum : u16 { compact = 0 ... 65534, extended = 65535 } id;
    variant <id> { struct { t32 timestamp; } compact; struct { u32 id; t64 timestamp; } extended; } v; } align(8);
  event.context := struct { u32 vpid; u32 vtid; letter procname[17]; }; };)" +
        kEvents,
    // and its compact one
    kIntegers + kTrace + kClock + "stream { id = 0; " + kPacket + R"(
  event.header := struct { enum : integer { size = 5; align = 1; signed = false; } { compact = 0 ... 30, extended = 31 } id;
    variant <id> { struct { t27 timestamp; } compact; struct { u32 id; t64 timestamp; } extended; } v; } align(8); };)" +
        kEvents,
    // bit fields, variants, sequences of structures, in big-endian order and without sizes of packets
    R"(/* CTF 1.8 */
typealias integer { size = 8; align = 8; signed = false; } := u8;
trace { major = 1; minor = 8; byte_order = be; };
stream { packet.context := struct { u8 k; }; event.header := struct { integer { size = 3; align = 1; signed = false; } id; }; };
event { name = "bits"; id = 0; fields := struct { integer { size = 5; align = 1; signed = true; } a;
  integer { size = 61; align = 1; signed = false; } b; integer { size = 7; align = 4; signed = true; } c; }; };
event { name = "variant"; id = 1; fields := struct { enum : integer { size = 2; align = 1; signed = false; }
  { none = 0, text = 1, list = 2 } kind; integer { size = 4; align = 1; signed = false; } n;
  variant <kind> { struct { } none; string text; u8 list[n]; } value; }; };
event { name = "structures"; id = 2; fields := struct { integer { size = 16; align = 1; signed = false; } n;
  struct { integer { size = 3; align = 1; signed = false; } x; string s; struct { integer { size = 12; align = 16; signed = true; } y; } inner[2]; } all[n]; }; };
event { name = "of_packet"; id = 3; fields := struct { u8 v[stream.packet.context.k]; floating_point { exp_dig = 8; mant_dig = 24; align = 1; } f; }; };
event { name = "without_room"; id = 4; fields := struct { u8 n; struct { } nothing[n]; integer { size = 1; align = 64; signed = false; } far; }; };
)",
    // no packets and no header at all
    "/* CTF 1.8 */\ntrace { major = 1; minor = 8; byte_order = le; };\nstream { };\n"
    "event { name = \"e\"; fields := struct { string s; floating_point { exp_dig = 11; mant_dig = 53; align "
    "= 8; } f; }; };\n"};

// What does not depend on the input.
struct Prepared {
  Trace trace;
  Decoders decoders;
  explicit Prepared(const std::string& text) {
    trace.metadata = parse_metadata(text, "metadata");
    for (const auto& [id, stream] : trace.metadata.streams) {
      for (const auto& [event_id, event] : stream.events)
        trace.layouts.push_back(make_layout(stream, *event));
    }
    const auto& [id, stream] = *trace.metadata.streams.begin();
    decoders[id] =
        std::make_shared<const Decoder>(trace.metadata, stream, trace.layouts, 0, Decoder::clock_of(stream));
  }
};

// Every byte that the event points to.
std::uint64_t touch(const FieldLayout& field, const std::uint64_t* slots) {
  std::uint64_t sum = 0;
  switch (field.kind) {
    case FieldKind::structure:
      for (const auto& child : field.children) sum += touch(child, slots);
      break;
    case FieldKind::variant:
      require(slots[field.slot] < field.children.size(), "an option is one of the variant's");
      sum += touch(field.children[slots[field.slot]], slots);
      break;
    case FieldKind::text:
      sum += Event::text_at(slots[field.slot], slots[field.slot + 1]).size();
      break;
    case FieldKind::array:
    case FieldKind::sequence: {
      const std::uint64_t count = slots[field.slot + 1];
      const FieldLayout& element = field.children.front();
      for (std::uint64_t i = 0; i < count; ++i) {
        sum += field.bytes ? reinterpret_cast<const std::uint8_t*>(slots[field.slot])[i]
                           : touch(element, reinterpret_cast<const std::uint64_t*>(slots[field.slot]) +
                                                i * element.width);
      }
      break;
    }
    default:
      sum += slots[field.slot];
  }
  return sum;
}

void check(const Ledger& ledger) {
  for (const auto& entry : ledger) perflab::fuzz::require_one_line(entry.message);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static std::array<Prepared, 4> all{Prepared(kMetadata[0]), Prepared(kMetadata[1]), Prepared(kMetadata[2]),
                                     Prepared(kMetadata[3])};
  if (size == 0) return 0;
  Prepared& prepared = all[data[0] % all.size()];
  Trace& trace = prepared.trace;
  const auto file = MappedFile::of_bytes({data + 1, size - 1});
  Ledger ledger;
  const auto to_ns = [&](std::uint64_t cycles) { return trace.to_ns(cycles); };
  auto index = index_packets(trace.metadata, prepared.decoders, *file, "stream", to_ns, ledger);
  check(ledger);
  if (!index) return 0;

  Stream stream;
  stream.packets = std::move(index->packets);
  stream.files = {"stream"};
  stream.mapped = {0};
  for (const auto& packet : stream.packets) {
    require(packet.data >= file->data() && packet.content_bits / 8 <= file->size() - packet.file_offset,
            "packets lie in their file");
  }
  note_losses(stream, to_ns, ledger);
  check(ledger);
  trace.streams = {std::move(stream)};
  trace.decoders = {prepared.decoders.begin()->second};
  trace.files = {file};

  StreamReader reader(trace, 0);
  std::uint64_t sum = 0;
  for (Event event; reader.next(event);) {
    const EventLayout& layout = trace.layouts[event.class_index];
    for (const auto* scope : {&layout.header, &layout.stream_context, &layout.context, &layout.payload}) {
      if (*scope) sum += touch(**scope, event.slots);
    }
  }
  [[maybe_unused]] static volatile std::uint64_t sink;
  sink = sum;
  check(reader.ledger());

  StreamReader passing(trace, 0, std::vector<bool>(trace.layouts.size(), false));
  Event none;
  require(!passing.next(none), "nothing is handed out that is not wanted");
  require(passing.counts() == reader.counts(), "as many events are passed over as are handed out");
  require(passing.last_ns() == reader.last_ns(), "time passes with them");
  return 0;
}
