// The message types of a graph: their encoding, and where measurement data are in a message.
//
//   header       a member of type perflab_msgs/msg/Header with all data: irobot_benchmark's types, and any other that
//                has it
//   time and id  `int64 time` followed by `uint64 id`, as in performance_test's types: publication instant and sequence
//                number. The due time is looked up at the sender (graph/schedule.h).
//   neither      the message gets a unique source time stamp, by which all data are looked up there.
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

// The largest payload and message length that a publisher may have.
inline constexpr std::uint32_t kMaxPayloadBytes = 64u << 20;

// The length of requests and replies of variable size, which graphs cannot choose.
inline constexpr std::uint32_t kServiceLength = 3;

enum class Stamp : std::uint8_t { kHeader, kTimeAndId, kNone };

struct Format {
  explicit Format(const Type& of, std::string called);

  std::string name;      // name in graphs and results: "stamped10b", "sensor_msgs/msg/Image"
  const Type* type;      // its name is the full ROS 2 name
  Codec codec;
  Stamp stamp = Stamp::kNone;
  std::size_t stamp_offset = 0;    // in the struct
  std::size_t stamp_bytes = 0;     // on the wire
  std::size_t stamp_position = 0;  // in every encoded message; 0 if it varies or there is none
  bool variable = false;           // its publisher chooses the message length
  std::uint64_t longest = 0;       // the largest length allowed; 0: no bound of its own
  std::optional<Key> key;          // if the type declares keys

  // Payload bytes as perflab counts them: everything after the encapsulation; for types with a header without
  // that header, and without the length of the part that the publisher sizes, as in irobot_benchmark.
  // `length` is that of fill().
  [[nodiscard]] std::size_t payload_bytes(std::uint32_t length) const;

  // A lower bound of the size of a message of this length; does not create one.
  [[nodiscard]] std::uint64_t largest_bytes(std::uint32_t length) const;
  // The unit of `length`: "byte", "character", "element".
  [[nodiscard]] std::string_view unit() const noexcept;

  // True if the bytes are a complete encoded message of either byte order; contents are only inspected if
  // they determine the length.
  [[nodiscard]] bool is_message(std::span<const std::uint8_t> bytes) const noexcept;
  // True if a filter depends on the publication instant, which is stamped last.
  [[nodiscard]] bool stamps_last(const Filter& filter) const noexcept;
  // Reads the stamp from encoded bytes of either byte order. False if they are not such a message. For types
  // with time and id, `intended_ns` is kUnknownTime.
  [[nodiscard]] bool read_stamp(std::span<const std::uint8_t> bytes, Header& header) const noexcept {
    // The common case: all messages that perflab sends to itself, of types with a header.
    const bool is_usual = stamp == Stamp::kHeader && stamp_position > 0 && bytes.size() >= stamp_position + kHeaderBytes &&
                          bytes[0] == 0 && bytes[1] == kNativeEncapsulation;
    if (!is_usual) return read_any_stamp(bytes, header);
    std::memcpy(&header, bytes.data() + stamp_position, kHeaderBytes);
    return true;
  }
  // Writes a stamp of stamp_bytes; `swapped`: in the other byte order than this machine's.
  void write_stamp(const Header& header, bool swapped, std::uint8_t* to) const noexcept {
    if (stamp == Stamp::kHeader && !swapped) {
      std::memcpy(to, &header, kHeaderBytes);
    } else {
      write_any_stamp(header, swapped, to);
    }
  }
  // The same for a struct.
  [[nodiscard]] Header stamp_in(const void* object) const noexcept;
  void stamp_object(const Header& header, void* object) const noexcept;
  // Position of the stamp in encoded bytes; 0 if they are not such a message.
  [[nodiscard]] std::size_t stamp_at(std::span<const std::uint8_t> bytes) const noexcept;

 private:
  [[nodiscard]] bool read_any_stamp(std::span<const std::uint8_t> bytes, Header& header) const noexcept;
  void write_any_stamp(const Header& header, bool swapped, std::uint8_t* to) const noexcept;
};

// True if the bytes start like CDR of either byte order.
[[nodiscard]] inline bool is_cdr(std::span<const std::uint8_t> bytes) noexcept {
  return bytes.size() >= kEncapsulationBytes && bytes[0] == 0 && bytes[1] <= 1;
}

// True if an encoded message, of which the first two bytes suffice, has the other byte order.
[[nodiscard]] inline bool is_swapped(std::span<const std::uint8_t> bytes) noexcept {
  return bytes[1] != kNativeEncapsulation;
}

// An encoded message ready to be sent, except for its stamp.
struct Encoded {
  std::vector<std::uint8_t> bytes;
  std::size_t stamp_at = 0;
};

// A filled message (object.h). Throws std::bad_alloc.
[[nodiscard]] Encoded encode_filled(const Format& format, std::uint32_t length);

// The formats of all types of a library, created on first use; they live as long as this object.
class Formats {
 public:
  explicit Formats(std::shared_ptr<Library> library) : library_(std::move(library)), types_(*library_) {}
  // Built-in types (definitions.h), and those in these texts, by full interface name.
  explicit Formats(const std::map<std::string, std::string>& texts = {});

  // The format of a message, by any of its names. Null if unknown. Throws BadInput if its definition is
  // unusable.
  const Format* find(std::string_view name);
  // The request or response of a service, by the service's name: "stamped10b", "std_srvs/srv/SetBool".
  const Format* find_request(std::string_view service);
  const Format* find_response(std::string_view service);
  // The service's name in graphs; empty if unknown.
  [[nodiscard]] std::optional<std::string> service_name(std::string_view service) const;
  // Its full name: "perflab_msgs/srv/Stamped10b".
  [[nodiscard]] std::optional<std::string> full_service_name(std::string_view service) const;

  // The messages of an action, by its name: "stamped", "control_msgs/action/FollowJointTrajectory". Null if
  // unknown. Throws BadInput like action_types().
  const ActionTypes* find_action(std::string_view action);
  // The action's name in graphs (empty if unknown), and its full name.
  [[nodiscard]] std::optional<std::string> action_name(std::string_view action) const;
  [[nodiscard]] std::optional<std::string> full_action_name(std::string_view action) const;
  // The format of an action's goal, feedback or result.
  const Format& format_of_part(const Type& part) { return format_of(part.name, short_name(part.name)); }

  [[nodiscard]] Library& library() noexcept { return *library_; }

  // The family of a type, for lists: "Stamped", "Array", "PointCloud" for perflab's own, otherwise the
  // package.
  [[nodiscard]] static std::string family_of(std::string_view full_name);
  // A content filter for a type, created on first use. Throws BadInput like Filter().
  const Filter& filter(const Format& format, const std::string& expression);

  // The user-visible names of messages, services or actions ("msg", "srv", "action"); short names first.
  [[nodiscard]] std::vector<std::string> names(std::string_view kind = "msg") const;
  // The texts of an interface and of all interfaces it uses, by full name; without those whose structs equal
  // perflab's built-in ones, regardless of comments.
  [[nodiscard]] std::map<std::string, std::string> texts_of(const std::string& full_interface_name);

 private:
  const Format& format_of(const std::string& full_name, const std::string& name);

  std::shared_ptr<Library> library_;
  Types types_;
  std::map<std::string, std::unique_ptr<Format>> formats_;  // by full name; likewise below
  std::map<std::string, std::unique_ptr<ActionTypes>> actions_;
  std::map<std::pair<const Type*, std::string>, std::unique_ptr<Filter>> filters_;
};

}  // namespace perflab::message
