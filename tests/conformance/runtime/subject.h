// The runtime under test: how it is made, and what it can do. Each program of this suite has one; what
// differs between runtimes is said here and not in the tests.
//
// Example:
//   Subject& subject() {
//     static VirtualSubject instance;
//     return instance;
//   }
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "measure/clock.h"
#include "runtime/runtime.h"

namespace perflab::runtime::conformance {

struct Abilities {
  // Handlers run on a virtual clock, one after the other in one thread, and cannot wait for each other.
  bool virtual_time = false;
  // Missed ticks are made up for unless the timer skips them, and due times are base + k * period. Otherwise
  // every timer skips, and counts from an instant of its own.
  bool makes_up_for_ticks = true;
  bool intra_process = true;
  bool tells_writers = true;  // Delivery::writer; otherwise it may be all zero
  bool tells_arrivals = true;  // Delivery::arrived_ns of what did not leave the process
  bool checks_types = false;  // a type that does not exist is refused
  bool types_of_users = true;  // otherwise those that perflab brings
  bool known_by_stamp = true;  // of messages that say nothing of themselves (EndpointSettings)
  bool tells_events = true;   // the EventSink hears of matches and of incompatible QoS
  bool schedules_threads = true;
  bool loans = false;                      // for some types at least
  bool loans_by_type = false;              // the library below says for which; for array1k in any case
  bool reliable = true;  // otherwise what is asked for is best effort, and a burst is as large as a socket
  bool durable = true;   // there are histories for those who come later
  std::size_t participants = 1;            // that a process may have
  std::vector<ServiceFraming> framings{};  // what can be asked for
};

struct Asked {
  bool intra_process = false;
  std::optional<ServiceFraming> framing{};
  std::uint32_t participants = 1;
};

class Subject {
 public:
  virtual ~Subject() = default;

  // Every kind that it has.
  [[nodiscard]] virtual std::vector<ExecutorKind> executors() const = 0;
  // Of those, what some versions do not have.
  [[nodiscard]] virtual bool may_lack(ExecutorKind) const { return false; }

  // One option of the command line; false if there is none of that name.
  virtual bool set(const std::string& name, const std::string& value) = 0;
  // The options that are missing, or empty.
  [[nodiscard]] virtual std::string missing() const { return {}; }

  // All that the subject may have; called before the command line is read, to decide which tests exist.
  [[nodiscard]] virtual Abilities abilities() = 0;
  // In that DDS domain. Throws Error. Clock and sink outlive the runtime.
  virtual std::unique_ptr<Runtime> open(const Asked& asked, std::uint32_t domain, const measure::Clock& clock,
                                        EventSink& sink) = 0;
};

// Defined by each program.
Subject& subject();

}  // namespace perflab::runtime::conformance
