// The message types of a graph: how each is encoded, and where in it the measurement sits.
//
//   header       a member of type perflab_msgs/msg/Header has all of it: irobot_benchmark's types, and any other with it
//   time and id  `int64 time` and behind it `uint64 id`, as performance_test's types have them: the instant of publication
//                and the sequence. When the message was due is looked up at its sender (graph/schedule.h).
//   neither      the message goes out with a source time stamp of its own, by which all of it is looked up there.
//
// Example:
//   Formats formats(library);
//   const Format& cloud = formats.find("perflab_msgs/msg/PointCloud1m");   // or "point_cloud1m"
//   Encoded message = encode_filled(cloud, 0);
//   cloud.write_stamp(header, false, message.bytes.data() + message.stamp_at);
#pragma once

#include <cstdint>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "message/action.h"
#include "message/codec.h"
#include "message/filter.h"
#include "message/header.h"
#include "message/key.h"
#include "message/library.h"
#include "message/names.h"
#include "message/type.h"

namespace perflab::message {

// The largest length of a message that a publisher may ask for, and the largest message.
inline constexpr std::uint32_t kMaxPayloadBytes = 64u << 20;

// The length of requests and replies of variable size, which no graph chooses.
inline constexpr std::uint32_t kServiceLength = 3;

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
  std::uint64_t longest = 0;       // the most that it may choose; 0: no bound of its own
  std::optional<Key> key;          // of a type that declares keys

  // Bytes of payload as perflab counts them: of all that is encoded behind the encapsulation, and of types with a header
  // without that, nor the length of what the publisher chooses, as irobot_benchmark does. `length` is that of fill().
  [[nodiscard]] std::size_t payload_bytes(std::uint32_t length) const;

  // About how many bytes a message of that length has, at least; without making one.
  [[nodiscard]] std::uint64_t largest_bytes(std::uint32_t length) const;
  // What `length` counts: "byte", "character", "element".
  [[nodiscard]] std::string_view unit() const noexcept;

  // Whether encoded bytes are a whole message, of either byte order; what stands in it is looked at only where its length
  // depends on that.
  [[nodiscard]] bool is_message(std::span<const std::uint8_t> bytes) const noexcept;
  // Whether a filter depends on the instant of publication, which is the last that is stamped.
  [[nodiscard]] bool stamps_last(const Filter& filter) const noexcept;
  // Reads what stands in encoded bytes of either byte order. False if they are no such message. Of a type with time and
  // id, `intended_ns` is kUnknownTime.
  [[nodiscard]] bool read_stamp(std::span<const std::uint8_t> bytes, Header& header) const noexcept {
    // What every message has that perflab sends to itself, of types with a header.
    const bool is_usual = stamp == Stamp::kHeader && stamp_position > 0 && bytes.size() >= stamp_position + kHeaderBytes &&
                          bytes[0] == 0 && bytes[1] == kNativeEncapsulation;
    if (!is_usual) return read_any_stamp(bytes, header);
    std::memcpy(&header, bytes.data() + stamp_position, kHeaderBytes);
    return true;
  }
  // Writes a stamp, stamp_bytes long; `swapped`: not in the byte order of this machine.
  void write_stamp(const Header& header, bool swapped, std::uint8_t* to) const noexcept {
    if (stamp == Stamp::kHeader && !swapped) {
      std::memcpy(to, &header, kHeaderBytes);
    } else {
      write_any_stamp(header, swapped, to);
    }
  }
  // The same of a struct.
  [[nodiscard]] Header stamp_in(const void* object) const noexcept;
  void stamp_object(const Header& header, void* object) const noexcept;
  // Where it begins in encoded bytes; 0 where they are no such message.
  [[nodiscard]] std::size_t stamp_at(std::span<const std::uint8_t> bytes) const noexcept;

 private:
  [[nodiscard]] bool read_any_stamp(std::span<const std::uint8_t> bytes, Header& header) const noexcept;
  void write_any_stamp(const Header& header, bool swapped, std::uint8_t* to) const noexcept;
};

// Whether bytes begin as CDR of either byte order does.
[[nodiscard]] inline bool is_cdr(std::span<const std::uint8_t> bytes) noexcept {
  return bytes.size() >= kEncapsulationBytes && bytes[0] == 0 && bytes[1] <= 1;
}

// True if an encoded message, at least its first two bytes, has not the byte order of this machine.
[[nodiscard]] inline bool is_swapped(std::span<const std::uint8_t> bytes) noexcept {
  return bytes[1] != kNativeEncapsulation;
}

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
  // Of what perflab brings (definitions.h), and of these texts, by full name of the interface.
  explicit Formats(const std::map<std::string, std::string>& texts = {});

  // Of a message, by any of its names. Null where it is unknown. Throws BadInput where its definition cannot be used.
  const Format* find(std::string_view name);
  // The request or response of a service, by the name of the service: "stamped10b", "std_srvs/srv/SetBool".
  const Format* find_request(std::string_view service);
  const Format* find_response(std::string_view service);
  // What graphs call the service, or nothing where it is unknown.
  [[nodiscard]] std::optional<std::string> service_name(std::string_view service) const;
  // Its full name: "perflab_msgs/srv/Stamped10b".
  [[nodiscard]] std::optional<std::string> full_service_name(std::string_view service) const;

  // The messages of an action, by its name: "stamped", "control_msgs/action/FollowJointTrajectory". Null where it is unknown.
  // Throws BadInput as action_types() does.
  const ActionTypes* find_action(std::string_view action);
  // What graphs call it, or nothing where it is unknown; and its full name.
  [[nodiscard]] std::optional<std::string> action_name(std::string_view action) const;
  [[nodiscard]] std::optional<std::string> full_action_name(std::string_view action) const;
  // What an action sends: its goal, its feedback or its result, of those three.
  const Format& format_of_part(const Type& part) { return format_of(part.name, short_name(part.name)); }

  [[nodiscard]] Library& library() noexcept { return *library_; }

  // The family of a type, for lists: of perflab's own "Stamped", "Array", "PointCloud", of others their package.
  [[nodiscard]] static std::string family_of(std::string_view full_name);
  // A content filter of a type, made when it is first asked for. Throws BadInput as Filter() does.
  const Filter& filter(const Format& format, const std::string& expression);

  // What a user calls each message, service or action ("msg", "srv", "action"); short names first.
  [[nodiscard]] std::vector<std::string> names(std::string_view kind = "msg") const;
  // The texts of an interface and of all that it is made of, by full name; those left out that say what the ones that
  // perflab brings say, whatever their comments.
  [[nodiscard]] std::map<std::string, std::string> texts_of(const std::string& full_interface_name);

 private:
  const Format& format_of(const std::string& full_name, const std::string& name);

  std::shared_ptr<Library> library_;
  Types types_;
  std::map<std::string, std::unique_ptr<Format>> formats_;  // by full name, likewise below
  std::map<std::string, std::unique_ptr<ActionTypes>> actions_;
  std::map<std::pair<const Type*, std::string>, std::unique_ptr<Filter>> filters_;
};

}  // namespace perflab::message
