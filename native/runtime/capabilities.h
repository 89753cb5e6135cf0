// What a runtime can do, known before it is created, so that unsupported requests are refused before anything
// has started.
#pragma once

namespace perflab::runtime {

struct Capabilities {
  // Callbacks run in threads of this process on the machine's clock, and peers must be discovered. Otherwise
  // time is virtual: there are no threads to schedule, no memory to lock and no clock to share with a tracer;
  // nothing has to wait, and an unthrottled timer would stop time.
  bool real_time = true;
  // One process can hold all processes of a graph.
  bool several_processes = false;
  // Supports delivery within the process, without the middleware.
  bool intra_process = true;
  // Emits `ros2:*` tracepoints itself; perflab's are not loaded.
  bool own_tracepoints = false;
  // Messages may be passed as structs, which the runtime encodes and decodes at the process boundary.
  bool structs = false;
  // Structs are the default, as in applications.
  bool structs_unless_asked = false;
  // Reports how long encoding and decoding of a message took.
  bool times_encoding = true;
  // Endpoints may be known_by_stamp (EndpointSettings). Otherwise source time stamps are set while messages
  // are sent; within the process they are those of the sender.
  bool source_timestamps = true;
  // Delivery::writer is always known.
  bool tells_writers = true;
  // Replies carry the number of their request, and that number is known before the request is sent
  // (Client::next_number()).
  bool request_numbers = true;
  // Topics may be keyed, if the middleware supports instances.
  bool keys = false;
  // Subscriptions may have a content filter, if the middleware supports them.
  bool filters = false;
  // Provided by a loadable library, runtime/plugin.h.
  bool loaded = false;
};

}  // namespace perflab::runtime
