// The message types of a graph: how each is encoded, and where in it the measurement sits.
//
//   header       a member of type perflab_msgs/msg/Header has all of it: irobot_benchmark's types, and any other with it
//   time and id  `int64 time` and behind it `uint64 id`, as performance_test's types have them: the instant of publication
//                and the sequence. When the message was due is looked up at its sender (graph/schedule.h).
//
// Example:
//   Formats formats(library);
//   const Format& cloud = formats.find("perflab_msgs/msg/PointCloud1m");   // or "point_cloud1m"
//   Encoded message = encode_filled(cloud, 0);
//   cloud.write_stamp(header, message.bytes, message.stamp_at);
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "message/codec.h"
#include "message/header.h"
#include "message/library.h"
#include "message/type.h"

namespace perflab::message {

// The largest length of a message that a publisher may ask for, and the largest message.
inline constexpr std::uint32_t kMaxPayloadBytes = 64u << 20;

enum class Stamp : std::uint8_t { kHeader, kTimeAndId, kNone };

struct Format {
  explicit Format(const Type& of, std::string called);

  std::string name;      // as graphs and results call it: "stamped10b", "sensor_msgs/msg/Image"
  const Type* type;      // its full name is that of ROS 2
  Codec codec;
  Stamp stamp = Stamp::kNone;
  std::size_t stamp_offset = 0;    // in the struct
  std::size_t stamp_bytes = 0;     // on the wire
  std::size_t stamp_position = 0;  // in every encoded message; 0 where it varies, or there is none
  bool variable = false;           // its publisher chooses how long a message is

  // Bytes of payload as perflab counts them: of all that is encoded behind the encapsulation, and of types with a header
  // without that, nor the length of what the publisher chooses, as irobot_benchmark does. `length` is that of fill().
  [[nodiscard]] std::size_t payload_bytes(std::uint32_t length) const;

  // Reads what stands in encoded bytes of either byte order. False if they are no such message. Of a type with time and
  // id, `intended_ns` is kUnknownTime.
  [[nodiscard]] bool read_stamp(std::span<const std::uint8_t> bytes, Header& header) const noexcept;
  // Puts it into an encoded message, in whose byte order it is written; `at` is where the stamp begins in it.
  void write_stamp(const Header& header, std::span<std::uint8_t> bytes, std::size_t at) const noexcept;
  // Where it begins in encoded bytes; 0 where they are no such message.
  [[nodiscard]] std::size_t stamp_at(std::span<const std::uint8_t> bytes) const noexcept;
};

// A message as it is sent, without its stamp.
struct Encoded {
  std::vector<std::uint8_t> bytes;
  std::size_t stamp_at = 0;
};

// A filled message (object.h). Throws std::bad_alloc.
[[nodiscard]] Encoded encode_filled(const Format& format, std::uint32_t length);

// The formats of all types of a library, each made when it is first asked for; they live as long as this.
class Formats {
 public:
  explicit Formats(std::shared_ptr<Library> library) : library_(std::move(library)), types_(*library_) {}

  // Of a message, by any of its names. Null where it is unknown. Throws BadInput where its definition cannot be used.
  const Format* find(std::string_view name);
  // The request or response of a service, by the name of the service: "stamped10b", "std_srvs/srv/SetBool".
  const Format* find_request(std::string_view service);
  const Format* find_response(std::string_view service);
  // What graphs call the service, or nothing where it is unknown.
  [[nodiscard]] std::optional<std::string> service_name(std::string_view service) const;
  // Its full name: "perflab_msgs/srv/Stamped10b".
  [[nodiscard]] std::optional<std::string> full_service_name(std::string_view service) const;

  [[nodiscard]] Library& library() noexcept { return *library_; }

 private:
  const Format& format_of(const std::string& full_name, const std::string& name);

  std::shared_ptr<Library> library_;
  Types types_;
  std::map<std::string, std::unique_ptr<Format>> formats_;  // by full name
};

// "Stamped10b" -> "stamped10b", "Stamped9Float32" -> "stamped9_float32", "PointCloud1m" -> "point_cloud1m".
[[nodiscard]] std::string snake_case(std::string_view camel_case);

// The short name of perflab's own types ("stamped10b"), the full name of others.
[[nodiscard]] std::string short_name(const std::string& full_name);

}  // namespace perflab::message
