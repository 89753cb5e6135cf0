// What a runtime can do, known before it is made: what it cannot is refused before anything has started.
#pragma once

namespace perflab::runtime {

struct Capabilities {
  // Callbacks run in threads of this process on the machine's clock, and peers have to be found. Otherwise time
  // is virtual: there are no threads to schedule, no memory to lock and no clock that a tracer could share,
  // nothing has to be waited for, and unthrottled timers would not let time pass.
  bool real_time = true;
  // All processes of a graph in one.
  bool several_processes = false;
  // Delivery within the process, without the middleware.
  bool intra_process = true;
  // Tracepoints `ros2:*` of its own; those of perflab are not loaded.
  bool own_tracepoints = false;
  // Messages may be given and taken as structs, which the runtime encodes and decodes where they leave the process.
  bool structs = false;
  // They are where nothing is asked for: that is how applications have them.
  bool structs_unless_asked = false;
  // Says how long a message took to be encoded and decoded.
  bool times_encoding = true;
  // Endpoints may be known_by_stamp (EndpointSettings). Otherwise messages have source time stamps that are made while they
  // are sent; within the process those that they are given.
  bool source_timestamps = true;
  // Delivery::writer is never unknown.
  bool tells_writers = true;
  // Replies name the request that they answer by a number that is known before it is sent (Client::next_number()).
  bool request_numbers = true;
  // Topics may have keys, where the middleware has instances.
  bool keys = false;
  // Subscriptions may have a content filter, where the middleware has them.
  bool filters = false;
  // A library brings it, runtime/plugin.h.
  bool loaded = false;
};

}  // namespace perflab::runtime
