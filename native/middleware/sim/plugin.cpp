// The middleware "sim": real messages between threads and processes of one machine, with a programmed
// disturbance. It proves the instrument: what perflab measures must equal what was injected here.
//
// It is also the tutorial for a new plug-in. Read in this order:
//
//   1. middleware/middleware.h   the interface and its contracts, which this plug-in fulfils
//   2. this file                 how C++ stands behind the C interface; the table of functions at the end
//   3. program.h                 options, read with errors that name what is wrong
//   4. endpoint.h                what a writer and a reader must be able to do
//   5. waitset.h                 waiting that is level-triggered, and wake() that is sticky
//   6. participant.h, edge.h     who is there, who matches, and the way of a message
//   7. the simulator's own parts, which another plug-in leaves to its library: disturbance.h (what happens
//      to a message), scheduler.h (when), wire.h (how it reaches another process), packet.h (where it is)
//   8. tests/conformance/middleware   what every plug-in must pass; add one line for a new one
//
// Options (applied by the participant that receives; durations need a unit):
//   delay              every message arrives that much after it was sent (0ns)
//   jitter             and a uniform extra of 0..jitter later, without overtaking (0ns)
//   loss               probability with which a message is lost (0)
//   loss_every         every n-th message of a writer to a reader is lost
//   reorder_every      every n-th message (n >= 2) arrives right after its successor, or 50 ms late if
//                      none follows
//   duplicate_every    every n-th message arrives twice
//   seed               of jitter and loss (1)
//   match_delay        a writer and a reader match only that long after they know each other (0ns)
//   max_blocking_time  how long a reliable writer may wait for room before write() fails (1s)
//   topic              disturb this topic only, e.g. rt/amazon; match_delay concerns every topic
//
// Limits. `network` can only be "lo". A reliable writer waits when 16384 messages or 512 MiB are under way to
// one reader (with keep_all: or have not been taken by it); a best effort message beyond that is dropped,
// counted as `overflowed` and reported as PERFLAB_SAMPLE_LOST. At most 256 participants per domain and user.
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>

#include "middleware/middleware.h"
#include "middleware/sim/endpoint.h"
#include "middleware/sim/participant.h"
#include "middleware/sim/program.h"
#include "middleware/sim/qos.h"
#include "middleware/sim/waitset.h"
#include "middleware/support/status.h"

namespace sim = perflab::middleware::sim;
using perflab::middleware::support::guarded;
using perflab::middleware::support::set_error;
using perflab::middleware::support::StatusError;

// The interface declares these four and never looks inside. Deriving from the C++ classes makes a handle and
// an object the same thing, without a cast.
struct perflab_participant final : sim::Participant {
  using Participant::Participant;
};
struct perflab_writer final : sim::Writer {
  using Writer::Writer;
};
struct perflab_reader final : sim::Reader {
  using Reader::Reader;
};
struct perflab_waitset final : sim::WaitSet {
  using WaitSet::WaitSet;
};

namespace {

const char* version() { return "1"; }

// Say here what is true; the conformance suite holds a plug-in to it.
perflab_capabilities capabilities() {
  return {.across_processes = true,
          .data_ready_callbacks = true,
          .source_timestamps = true,
          .reception_timestamps = true,
          .reports_endpoints = true,
          .related_samples = false,
          .loans = false};
}

// No exception may leave through the C interface: guarded() turns one into a status and a line of text. Check
// everything that can be wrong before anything is begun; what cannot be done is refused, never ignored.
perflab_status open(const perflab_host* host, const perflab_participant_settings* settings,
                    perflab_participant** participant, perflab_error* error) {
  return guarded(error, [&] {
    sim::Program program = sim::read_program(*settings);
    if (settings->network != nullptr && std::strcmp(settings->network, "lo") != 0) {
      throw StatusError(PERFLAB_UNSUPPORTED,
                        std::string("sim: network '") + settings->network +
                            "'; it connects processes of one machine, right would be 'lo'");
    }
    *participant = new perflab_participant(*host, std::move(program), settings->domain,
                                           settings->ignore_local_endpoints);
    return PERFLAB_OK;
  });
}

// Whatever was allocated by one side of the interface is freed by the same side: handles are made by the
// plug-in and given back to it.
void close(perflab_participant* participant) { delete participant; }

const char* describe(perflab_participant* participant) { return participant->describe(); }

// What peers learn of a writer or reader; `user_data` has no meaning here.
sim::Announcement announcement(const perflab_endpoint_settings& settings) {
  sim::check_names(settings.topic, settings.type);
  if (settings.loans) {
    throw StatusError(PERFLAB_UNSUPPORTED,
                      std::string("sim: topic '") + settings.topic +
                          "' shall pass loaned messages; right would be unique or shared");
  }
  return {settings.qos, settings.topic, settings.type};
}

perflab_status create_writer(perflab_participant* participant, const perflab_endpoint_settings* settings,
                             const perflab_listener* listener, perflab_writer** writer,
                             perflab_error* error) {
  return guarded(error, [&] {
    *writer = new perflab_writer(*participant, announcement(*settings), listener);
    return PERFLAB_OK;
  });
}

// The destructor returns only when no callback of this entity runs and none will come.
void destroy_writer(perflab_writer* writer) { delete writer; }

perflab_status create_reader(perflab_participant* participant, const perflab_endpoint_settings* settings,
                             const perflab_listener* listener, perflab_reader** reader,
                             perflab_error* error) {
  return guarded(error, [&] {
    *reader = new perflab_reader(*participant, announcement(*settings), listener);
    return PERFLAB_OK;
  });
}

void destroy_reader(perflab_reader* reader) { delete reader; }

perflab_identity writer_identity(const perflab_writer* writer) { return writer->identity(); }
perflab_identity reader_identity(const perflab_reader* reader) { return reader->identity(); }
size_t matched_readers(perflab_writer* writer) { return writer->matched(); }
size_t matched_writers(perflab_reader* reader) { return reader->matched(); }

// The two that are measured. They must not allocate once they are warm, and must not do work that could be
// done when the entity is created.
perflab_status write(perflab_writer* writer, const perflab_bytes* parts, size_t part_count,
                     perflab_error* error) {
  return writer->write(parts, part_count, error);
}

// What the next write() takes from here it also takes away.
void stamp_next(perflab_writer* writer, int64_t source_timestamp_ns) {
  writer->stamp_next(source_timestamp_ns);
}

perflab_status take(perflab_reader* reader, perflab_sample* sample, perflab_error* error) {
  return guarded(error, [&] { return reader->take(sample); });
}

void return_sample(perflab_reader*, perflab_sample* sample) { sim::Reader::return_sample(sample); }

perflab_status create_waitset(perflab_participant*, perflab_waitset** waitset, perflab_error* error) {
  return guarded(error, [&] {
    *waitset = new perflab_waitset();
    return PERFLAB_OK;
  });
}

void destroy_waitset(perflab_waitset* waitset) { delete waitset; }

perflab_status attach(perflab_waitset* waitset, perflab_reader* reader, uint64_t cookie,
                      perflab_error* error) {
  return guarded(error, [&] {
    waitset->attach(*reader, cookie);
    return PERFLAB_OK;
  });
}

perflab_status wait(perflab_waitset* waitset, int64_t timeout_ns, uint64_t* ready, size_t capacity,
                    size_t* ready_count, perflab_error*) {
  return waitset->wait(timeout_ns, ready, capacity, ready_count);
}

void wake(perflab_waitset* waitset) { waitset->wake(); }

// Named members: a function that is forgotten is a null pointer, and one in the wrong place does not compile.
constexpr perflab_middleware kMiddleware = {
    .abi = PERFLAB_MIDDLEWARE_ABI,
    .struct_size = sizeof(perflab_middleware),
    .name = "sim",
    .summary = "simulated transport in real time, with programmed delay, loss, reordering and duplication",
    .version = version,
    .capabilities = capabilities,
    .open = open,
    .close = close,
    .describe = describe,
    .create_writer = create_writer,
    .destroy_writer = destroy_writer,
    .create_reader = create_reader,
    .destroy_reader = destroy_reader,
    .writer_identity = writer_identity,
    .reader_identity = reader_identity,
    .matched_readers = matched_readers,
    .matched_writers = matched_writers,
    .write = write,
    .write_related = nullptr,  // capabilities() says so
    .loan = nullptr,
    .write_loaned = nullptr,
    .discard_loan = nullptr,
    .stamp_next = stamp_next,
    .take = take,
    .return_sample = return_sample,
    .create_waitset = create_waitset,
    .destroy_waitset = destroy_waitset,
    .attach = attach,
    .wait = wait,
    .wake = wake,
};

}  // namespace

// The one symbol that is visible. Everything else is hidden by the build, so that two plug-ins in one process
// cannot take each other's functions.
extern "C" __attribute__((visibility("default"))) const perflab_middleware* perflab_middleware_plugin() {
  return &kMiddleware;
}
