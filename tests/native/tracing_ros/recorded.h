// A fake tracer: records the runtime's events as text, by thread.
#pragma once

#include <map>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "tracing/ros/tracepoints.h"

namespace perflab::tracing::testing {

struct Event {
  std::string name;
  std::vector<std::string>
      fields;  // handles and messages as letters and numbers that begin with @, see Recorded
  std::thread::id thread;

  bool operator==(const Event& other) const { return name == other.name && fields == other.fields; }
  [[nodiscard]] std::string text() const;
};

// All events since clear(). The tracepoints have no context, so there is one recorder per process.
class Recorded {
 public:
  static const perflab_ros2_tracepoints& tracepoints();
  static void clear();
  static std::vector<Event> all();
  // Events of the calling thread.
  static std::vector<Event> here();
  // Events of every other thread, ordered by its first event.
  static std::vector<std::vector<Event>> elsewhere();
};

std::vector<std::string> names(const std::vector<Event>& events);
// The events of that name.
std::vector<Event> named(const std::vector<Event>& events, const std::string& name);

}  // namespace perflab::tracing::testing
