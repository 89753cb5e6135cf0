// How fast a trace is decoded: every field of every event, one thread, one stream after the other.
//
//   ctf_decode DIRECTORY
//   {"events":5000000,"bytes":208666624,"seconds":0.15,"events_per_s":33000000,"peak_rss_kib":215000,"checksum":...,"losses":0}
//
// Every slot of every event is read, and every byte of texts and arrays: their sum is the checksum, so that
// nothing can be left out. The time is that of opening, indexing and decoding. The peak includes the pages of
// the trace's files, which are mapped.
#include <sys/resource.h>

#include <chrono>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <vector>

#include "ctf/stream.h"
#include "ctf/trace.h"

namespace {

using namespace perflab::ctf;

// What of a class's slots are values, and where texts and arrays are.
struct Plan {
  struct Variant {
    std::uint32_t slot;
    std::vector<Plan> options;
  };
  std::vector<std::uint32_t> values;
  std::vector<const FieldLayout*> texts, bytes, others;
  std::vector<Variant> variants;
};

void plan(Plan& to, const FieldLayout& field) {
  switch (field.kind) {
    case FieldKind::integer:
    case FieldKind::floating:
    case FieldKind::enumeration:
      to.values.push_back(field.slot);
      return;
    case FieldKind::text:
      to.texts.push_back(&field);
      return;
    case FieldKind::structure:
      for (const auto& child : field.children) plan(to, child);
      return;
    case FieldKind::array:
    case FieldKind::sequence:
      (field.bytes ? to.bytes : to.others).push_back(&field);
      return;
    case FieldKind::variant:
      Plan::Variant& made = to.variants.emplace_back(Plan::Variant{field.slot, {}});
      for (const auto& option : field.children) plan(made.options.emplace_back(), option);
      return;
  }
}

std::uint64_t sum_bytes(std::uint64_t pointer, std::uint64_t count) {
  const auto* data = reinterpret_cast<const std::uint8_t*>(pointer);
  std::uint64_t sum = 0;
  // Eight at a time: what is measured is decoding, not adding.
  for (; count >= 8; count -= 8, data += 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, data, sizeof word);
    sum += word;
  }
  for (std::uint64_t i = 0; i < count; ++i) sum += data[i];
  return sum;
}

std::uint64_t sum_field(const FieldLayout& field, const std::uint64_t* slots) {
  std::uint64_t sum = 0;
  switch (field.kind) {
    case FieldKind::integer:
    case FieldKind::floating:
    case FieldKind::enumeration:
      return slots[field.slot];
    case FieldKind::text:
      return sum_bytes(slots[field.slot], slots[field.slot + 1]);
    case FieldKind::structure:
      for (const auto& child : field.children) sum += sum_field(child, slots);
      return sum;
    case FieldKind::variant:
      return sum_field(field.children[slots[field.slot]], slots);
    case FieldKind::array:
    case FieldKind::sequence:
      break;
  }
  const std::uint64_t count = slots[field.slot + 1];
  if (field.bytes) return sum_bytes(slots[field.slot], count);
  const auto* elements = reinterpret_cast<const std::uint64_t*>(slots[field.slot]);
  const FieldLayout& element = field.children.front();
  for (std::uint64_t i = 0; i < count; ++i) sum += sum_field(element, elements + i * element.width);
  return sum;
}

std::uint64_t sum_event(const Plan& plan, const std::uint64_t* slots) {
  std::uint64_t sum = 0;
  for (const auto slot : plan.values) sum += slots[slot];
  for (const auto* field : plan.texts) sum += sum_bytes(slots[field->slot], slots[field->slot + 1]);
  for (const auto* field : plan.bytes) sum += sum_bytes(slots[field->slot], slots[field->slot + 1]);
  for (const auto* field : plan.others) sum += sum_field(*field, slots);
  for (const auto& variant : plan.variants) sum += sum_event(variant.options[slots[variant.slot]], slots);
  return sum;
}

int decode(const std::filesystem::path& folder) {
  const auto begin = std::chrono::steady_clock::now();
  const TraceSet set = TraceSet::open(std::vector{folder});
  std::uint64_t events = 0, bytes = 0, checksum = 0, losses = set.ledger().size();
  for (const auto& trace : set.traces()) {
    std::vector<Plan> plans(trace->layouts.size());
    for (std::size_t i = 0; i < plans.size(); ++i) {
      const EventLayout& layout = trace->layouts[i];
      for (const auto* scope : {&layout.header, &layout.stream_context, &layout.context, &layout.payload}) {
        if (*scope) plan(plans[i], **scope);
      }
    }
    for (std::size_t i = 0; i < trace->streams.size(); ++i) {
      StreamReader reader(*trace, i);
      for (Event event; reader.next(event); ++events) {
        checksum +=
            static_cast<std::uint64_t>(event.time_ns) + sum_event(plans[event.class_index], event.slots);
      }
      bytes += trace->streams[i].bytes;
      losses += reader.ledger().size();
    }
  }
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  std::printf(
      "{\"events\":%llu,\"bytes\":%llu,\"seconds\":%.6f,\"events_per_s\":%.0f,\"peak_rss_kib\":%ld,"
      "\"checksum\":%llu,"
      "\"losses\":%llu}\n",
      static_cast<unsigned long long>(events), static_cast<unsigned long long>(bytes), seconds.count(),
      static_cast<double>(events) / seconds.count(), usage.ru_maxrss,
      static_cast<unsigned long long>(checksum), static_cast<unsigned long long>(losses));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: ctf_decode DIRECTORY\n");
    return 2;
  }
  try {
    return decode(argv[1]);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 2;
  }
}
