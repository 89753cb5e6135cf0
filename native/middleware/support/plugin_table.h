// Builds the C interface of a plug-in from four C++ classes.
//
// The interface declares perflab_participant, perflab_writer, perflab_reader and perflab_waitset and never
// looks inside. A plug-in derives each from its own class, so that handle and object are the same without a
// cast, and has the function table generated here:
//
//   PERFLAB_MIDDLEWARE_CLASSES(mine::Participant, mine::Writer, mine::Reader, mine::WaitSet)
//   constexpr perflab_middleware kMiddleware = plugin_table<mine::read_settings>(
//       {.name = "mine", .summary = "...", .version = version, .capabilities = capabilities, .policies = policies});
//   PERFLAB_MIDDLEWARE_PLUGIN(kMiddleware)
//
// read_settings(perflab_participant_settings) checks the arguments of open() and throws if something is
// wrong.
//
// Members required of the classes (middleware.h has their semantics):
//   Participant  Participant(const perflab_host&, <result of read_settings>), describe(); if endpoints are
//                reported also remote_endpoints(each), which calls each(const perflab_remote_endpoint&)
//   Writer       Writer(Participant&, const perflab_endpoint_settings&, const perflab_listener*), identity(),
//                matched(), stamp_next(ns), and write(parts, count, error) or, if messages can be related,
//                write(parts, count, related, sequence, error); if messages can be loaned also
//                loan(message, error), write_loaned(message, error), discard_loan(message)
//   Reader       the same constructor, identity(), matched(), lifespan(writer), take(sample, error),
//                return_sample(sample)
//   WaitSet      WaitSet(Participant&), attach(reader, cookie), wake(),
//                wait(timeout_ns, ready, capacity, ready_count, error); waitset.h makes one from the reader
//
// No exception crosses the C interface: constructors, attach(), take() and functions that write or loan may
// throw, which becomes a status and a line of text; a library may run out of memory at any time. Destructors
// of writers and readers return only when no callback of the entity runs or will run. write() and take() are
// what is measured: once warm they must not allocate, nor do work that could be done at creation.
#pragma once

#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "middleware/middleware.h"
#include "middleware/support/status.h"

namespace perflab::middleware::support {

// A plug-in's declarations of QoS policies, and of single values of them; kLastPolicy ends the table.
constexpr perflab_policy supported(const char* name, const char* note = nullptr) {
  return {name, PERFLAB_SUPPORTED, note};
}
constexpr perflab_policy hint(const char* name) { return {name, PERFLAB_HINT, nullptr}; }
constexpr perflab_policy refused(const char* name, const char* why) { return {name, PERFLAB_REFUSED, why}; }
// Messages that outlive their writer need a durability service.
inline constexpr perflab_policy kNoTransient = refused("durability=transient", "there is no durability service");
inline constexpr perflab_policy kNoPersistent = refused("durability=persistent", "there is no durability service");
inline constexpr perflab_policy kNoDurabilityService = refused("durability_service", "there is none");
inline constexpr perflab_policy kLastPolicy = refused(nullptr, nullptr);

struct PluginDescription {
  const char* name;
  const char* summary;  // one line
  const char* (*version)();
  perflab_capabilities (*capabilities)();
  const perflab_policy* (*policies)();
};

template <typename Class>
struct Handle : Class {
  using Class::Class;
};

template <typename Participant>
concept ListsEndpoints =
    requires(Participant& participant, void (*each)(const perflab_remote_endpoint&)) {
      participant.remote_endpoints(each);
    };

template <typename Writer>
concept WritesRelated = requires(Writer& writer, const perflab_bytes* parts, std::size_t count,
                                 const perflab_sample_identity* related, std::int64_t* sequence,
                                 perflab_error* error) {
  writer.write(parts, count, related, sequence, error);
};

template <typename Writer>
concept Lends = requires(Writer& writer, void** message, perflab_error* error) {
  writer.loan(message, error);
};

// `read_settings` is null if participants are opened in another way.
template <auto read_settings, typename Participant = perflab_participant, typename Writer = perflab_writer,
          typename Reader = perflab_reader, typename WaitSet = perflab_waitset>
constexpr perflab_middleware plugin_table(const PluginDescription& plugin) {
  perflab_middleware table = {
      .abi = PERFLAB_MIDDLEWARE_ABI,
      .name = plugin.name,
      .summary = plugin.summary,
      .version = plugin.version,
      .capabilities = plugin.capabilities,
      .policies = plugin.policies,
      .open = nullptr,
      .close = [](Participant* participant) { delete participant; },
      .describe = [](Participant* participant) { return participant->describe(); },
      .remote_endpoints = nullptr,
      .create_writer =
          [](Participant* participant, const perflab_endpoint_settings* settings,
             const perflab_listener* listener, Writer** writer, perflab_error* error) {
            return guarded(error, [&] {
              *writer = new Writer(*participant, *settings, listener);
              return PERFLAB_OK;
            });
          },
      .destroy_writer = [](Writer* writer) { delete writer; },
      .create_reader =
          [](Participant* participant, const perflab_endpoint_settings* settings,
             const perflab_listener* listener, Reader** reader, perflab_error* error) {
            return guarded(error, [&] {
              *reader = new Reader(*participant, *settings, listener);
              return PERFLAB_OK;
            });
          },
      .destroy_reader = [](Reader* reader) { delete reader; },
      .writer_identity = [](const Writer* writer) -> perflab_identity { return writer->identity(); },
      .reader_identity = [](const Reader* reader) -> perflab_identity { return reader->identity(); },
      .matched_readers = [](Writer* writer) { return writer->matched(); },
      .matched_writers = [](Reader* reader) { return reader->matched(); },
      .lifespan = [](Reader* reader, const perflab_identity* writer) { return reader->lifespan(*writer); },
      .write =
          [](Writer* writer, const perflab_bytes* parts, std::size_t count, perflab_error* error) {
            return guarded(error, [&] {
              if constexpr (WritesRelated<Writer>) {
                return writer->write(parts, count, nullptr, nullptr, error);
              } else {
                return writer->write(parts, count, error);
              }
            });
          },
      .write_related = nullptr,
      .loan = nullptr,
      .write_loaned = nullptr,
      .discard_loan = nullptr,
      .stamp_next = [](Writer* writer,
                       std::int64_t source_timestamp_ns) { writer->stamp_next(source_timestamp_ns); },
      .take =
          [](Reader* reader, perflab_sample* sample, perflab_error* error) {
            return guarded(error, [&] { return reader->take(sample, error); });
          },
      .return_sample = [](Reader* reader, perflab_sample* sample) { reader->return_sample(sample); },
      .create_waitset =
          [](Participant* participant, WaitSet** waitset, perflab_error* error) {
            return guarded(error, [&] {
              *waitset = new WaitSet(*participant);
              return PERFLAB_OK;
            });
          },
      .destroy_waitset = [](WaitSet* waitset) { delete waitset; },
      .attach =
          [](WaitSet* waitset, Reader* reader, std::uint64_t cookie, perflab_error* error) {
            return guarded(error, [&] {
              waitset->attach(*reader, cookie);
              return PERFLAB_OK;
            });
          },
      .wait =
          [](WaitSet* waitset, std::int64_t timeout_ns, std::uint64_t* ready, std::size_t capacity,
             std::size_t* ready_count,
             perflab_error* error) { return waitset->wait(timeout_ns, ready, capacity, ready_count, error); },
      .wake = [](WaitSet* waitset) { waitset->wake(); },
  };
  if constexpr (!std::is_null_pointer_v<decltype(read_settings)>) {
    table.open = [](const perflab_host* host, const perflab_participant_settings* settings,
                    Participant** participant, perflab_error* error) {
      return guarded(error, [&] {
        *participant = new Participant(*host, read_settings(*settings));
        return PERFLAB_OK;
      });
    };
  }
  if constexpr (ListsEndpoints<Participant>) {
    table.remote_endpoints = [](Participant* participant,
                                void (*each)(void* context, const perflab_remote_endpoint* endpoint), void* context,
                                perflab_error* error) {
      return guarded(error, [&] {
        participant->remote_endpoints(
            [&](const perflab_remote_endpoint& endpoint) { each(context, &endpoint); });
        return PERFLAB_OK;
      });
    };
  }
  if constexpr (WritesRelated<Writer>) {
    table.write_related = [](Writer* writer, const perflab_bytes* parts, std::size_t count,
                             const perflab_sample_identity* related, std::int64_t* sequence,
                             perflab_error* error) {
      return guarded(error, [&] { return writer->write(parts, count, related, sequence, error); });
    };
  }
  if constexpr (Lends<Writer>) {
    table.loan = [](Writer* writer, void** message, perflab_error* error) {
      return guarded(error, [&] { return writer->loan(message, error); });
    };
    table.write_loaned = [](Writer* writer, void* message, perflab_error* error) {
      return guarded(error, [&] { return writer->write_loaned(message, error); });
    };
    table.discard_loan = [](Writer* writer, void* message) { writer->discard_loan(message); };
  }
  return table;
}

}  // namespace perflab::middleware::support

// The types behind the handles of the C interface.
#define PERFLAB_MIDDLEWARE_CLASSES(Participant, Writer, Reader, WaitSet)                 \
  struct perflab_participant final : perflab::middleware::support::Handle<Participant> { \
    using Handle::Handle;                                                                \
  };                                                                                     \
  struct perflab_writer final : perflab::middleware::support::Handle<Writer> {           \
    using Handle::Handle;                                                                \
  };                                                                                     \
  struct perflab_reader final : perflab::middleware::support::Handle<Reader> {           \
    using Handle::Handle;                                                                \
  };                                                                                     \
  struct perflab_waitset final : perflab::middleware::support::Handle<WaitSet> {         \
    using Handle::Handle;                                                                \
  };

// The only exported symbol. The build hides everything else, so that two plug-ins in one process do not bind
// to each other's functions.
#define PERFLAB_MIDDLEWARE_PLUGIN(table)                                                                    \
  extern "C" __attribute__((visibility("default"))) const perflab_middleware* perflab_middleware_plugin() { \
    return &(table);                                                                                        \
  }
