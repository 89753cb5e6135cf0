// What it costs to encode a message from its struct and to decode it into one, beside Fast CDR with code such as
// fastddsgen makes. Both read and write the same bytes, and take turns, batch by batch.
//
// serialization [TYPE...]: one JSON object, with the medians over batches of each, ns per message.
#include <fastcdr/Cdr.h>
#include <fastcdr/FastBuffer.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "measure/clock.h"
#include "message/codec.h"
#include "message/definitions.h"
#include "message/object.h"

namespace {

using perflab::Nanoseconds;
namespace message = perflab::message;
using eprosima::fastcdr::Cdr;

// ---- the structs, and what fastddsgen writes for each ----

#define PERFLAB_FIELDS(TYPE, WRITE, READ)                  \
  [[gnu::noinline]] void serialize(Cdr& cdr) const { WRITE; } \
  [[gnu::noinline]] void deserialize(Cdr& cdr) { READ; }

struct Array1k {
  std::array<std::uint8_t, 1008> array;
  std::int64_t time;
  std::uint64_t id;
  PERFLAB_FIELDS(Array1k, cdr << array << time << id, cdr >> array >> time >> id)
};

// `Count` members of one type, then time and id: one call for each, as for members with names.
template <typename Part, std::size_t Count>
struct Struct {
  Part parts[Count];
  std::int64_t time;
  std::uint64_t id;
  [[gnu::noinline]] void serialize(Cdr& cdr) const {
    for (const Part& part : parts) cdr << part;
    cdr << time << id;
  }
  [[gnu::noinline]] void deserialize(Cdr& cdr) {
    for (Part& part : parts) cdr >> part;
    cdr >> time >> id;
  }
};
using Struct16 = Struct<std::uint8_t, 16>;
using Struct256 = Struct<Struct16, 16>;
using Struct4k = Struct<Struct256, 16>;
using Struct32k = Struct<Struct4k, 8>;

struct PointField {
  std::array<std::uint8_t, 256> name;
  std::uint32_t offset;
  std::uint8_t datatype;
  std::uint32_t count;
  PERFLAB_FIELDS(PointField, cdr << name << offset << datatype << count, cdr >> name >> offset >> datatype >> count)
};

struct PointCloud1m {
  std::int32_t sec;
  std::uint32_t nanosec;
  std::array<std::uint8_t, 256> frame_id;
  std::uint32_t height, width;
  std::array<PointField, 8> fields;
  bool is_bigendian;
  std::uint32_t point_step, row_step;
  std::array<std::uint8_t, 1048576> data;
  bool is_dense;
  std::int64_t time;
  std::uint64_t id;
  PERFLAB_FIELDS(PointCloud1m,
                 cdr << sec << nanosec << frame_id << height << width << fields << is_bigendian << point_step
                     << row_step << data << is_dense << time << id,
                 cdr >> sec >> nanosec >> frame_id >> height >> width >> fields >> is_bigendian >> point_step >>
                     row_step >> data >> is_dense >> time >> id)
};

struct Point32 {
  float x, y, z;
  PERFLAB_FIELDS(Point32, cdr << x << y << z, cdr >> x >> y >> z)
};
struct Vector3 {
  double x, y, z;
  PERFLAB_FIELDS(Vector3, cdr << x << y << z, cdr >> x >> y >> z)
};
struct RadarTrack {
  std::uint16_t track_id;
  std::array<Point32, 64> track_shape;
  Vector3 linear_velocity, linear_acceleration;
  std::int64_t time;
  std::uint64_t id;
  PERFLAB_FIELDS(RadarTrack, cdr << track_id << track_shape << linear_velocity << linear_acceleration << time << id,
                 cdr >> track_id >> track_shape >> linear_velocity >> linear_acceleration >> time >> id)
};

// ---- one type, both ways ----

constexpr int kBatches = 41;
constexpr Nanoseconds kBatchNs = 2'000'000;

double median(std::vector<double> values) {
  std::ranges::nth_element(values, values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2));
  return values[values.size() / 2];
}

// What the compiler must take for used.
void keep(const void* memory) { asm volatile("" : : "r"(memory) : "memory"); }

template <typename Work>
double once_ns(const perflab::measure::Clock& clock, std::size_t count, const Work& work) {
  const Nanoseconds begin = clock.now();
  for (std::size_t i = 0; i < count; ++i) work();
  return static_cast<double>(clock.now() - begin) / static_cast<double>(count);
}

// Medians of both over batches, in turn.
template <typename Ours, typename Theirs>
std::array<double, 2> compare(const Ours& ours, const Theirs& theirs) {
  const perflab::measure::MonotonicClock clock;
  const double one = std::max(once_ns(clock, 10, theirs), 1.0);
  const auto count = static_cast<std::size_t>(std::max(1.0, static_cast<double>(kBatchNs) / one));
  std::vector<double> mine, peers;
  for (int i = 0; i < kBatches; ++i) {
    if (i % 2 == 0) mine.push_back(once_ns(clock, count, ours));
    peers.push_back(once_ns(clock, count, theirs));
    if (i % 2 == 1) mine.push_back(once_ns(clock, count, ours));
  }
  return {median(mine), median(peers)};
}

void require(bool holds, const std::string& what) {
  if (holds) return;
  std::fprintf(stderr, "serialization: %s\n", what.c_str());
  std::exit(1);
}

template <typename Peer>
void measure(message::Types& types, const std::string& name, const char* separator) {
  const message::Type& type = types.find("perflab_msgs/msg/" + name);
  require(type.plain && type.size == sizeof(Peer), name + ": the structs differ");
  const message::Codec codec(type);
  message::Object object(type), copy(type);
  message::fill(object, 0);
  const auto peer = std::make_unique<Peer>(), peer_copy = std::make_unique<Peer>();
  std::memcpy(static_cast<void*>(peer.get()), object.data(), sizeof(Peer));

  std::vector<std::uint8_t> bytes(codec.fixed_size()), peer_bytes(codec.fixed_size());
  const auto cdr_of = [](std::vector<std::uint8_t>& of, auto&& use) {
    eprosima::fastcdr::FastBuffer buffer(reinterpret_cast<char*>(of.data()), of.size());
    Cdr cdr(buffer, Cdr::DEFAULT_ENDIAN, Cdr::DDS_CDR);
    use(cdr);
  };
  const auto encode = [&] { keep(bytes.data() + codec.encode(object.data(), bytes) - 1); };
  const auto peer_encode = [&] {
    cdr_of(peer_bytes, [&](Cdr& cdr) {
      cdr.serialize_encapsulation();
      cdr << *peer;
    });
    keep(peer_bytes.data());
  };
  const auto decode = [&] { require(codec.decode(bytes, copy.data()), name + ": not decoded"), keep(copy.data()); };
  const auto peer_decode = [&] {
    cdr_of(peer_bytes, [&](Cdr& cdr) {
      cdr.read_encapsulation();
      cdr >> *peer_copy;
    });
    keep(peer_copy.get());
  };
  encode(), peer_encode(), decode(), peer_decode();
  require(bytes == peer_bytes, name + ": the encodings differ");
  require(copy == object, name + ": not the same after decoding");

  const auto [encode_ns, peer_encode_ns] = compare(encode, peer_encode);
  const auto [decode_ns, peer_decode_ns] = compare(decode, peer_decode);
  std::printf(
      "%s\"%s\": {\"bytes\": %zu, \"encode_ns\": %.1f, \"peer_encode_ns\": %.1f, \"decode_ns\": %.1f, "
      "\"peer_decode_ns\": %.1f}",
      separator, name.c_str(), bytes.size(), encode_ns, peer_encode_ns, decode_ns, peer_decode_ns);
}

}  // namespace

int main() {
  message::Library library(message::brought());
  message::Types types(library);
  std::printf("{");
  measure<Array1k>(types, "Array1k", "");
  measure<Struct32k>(types, "Struct32k", ", ");
  measure<PointCloud1m>(types, "PointCloud1m", ", ");
  measure<RadarTrack>(types, "RadarTrack", ", ");
  std::printf("}\n");
}
