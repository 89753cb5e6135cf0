/* The middleware plug-in interface: a versioned struct of function pointers.
 *
 * A middleware moves serialized messages between writers and readers. It does not measure: it takes no time
 * stamps of its own (the host provides the clock), keeps no statistics and prints nothing. A plug-in is one
 * shared object that exports `perflab_middleware_plugin`, written in C, C++ or Rust. docs/new-middleware.md is
 * the tutorial.
 *
 * Every plug-in must pass the conformance suite in tests/conformance/middleware, which checks the contracts
 * below.
 *
 * Threads. Functions that create or destroy are called from one thread at a time. write(), take(),
 * return_sample() and wait() may be called from any thread, but never concurrently on one entity; matched counts
 * and lifespan() may also be called while these run. Listener callbacks run in threads of the plug-in, or
 * synchronously inside write(), take(), return_sample(), wait() or a create function. They never run
 * concurrently for one entity, and never after the destroy function of that entity has returned. wake() may be
 * called from any thread, also from a callback.
 *
 * Errors. Functions that return `perflab_status` fill `error->text` with one line (what, where, what would be
 * right) if the status is negative, and then leave their outputs untouched.
 *
 * Units. Times are nanoseconds. Monotonic times are those of the host's clock (`perflab_host.now_ns`). Source
 * time stamps are wall-clock times; they only serve to match a publication with its take. The host may choose
 * them (stamp_next()), so that a trace can record them before the message is written.
 */
#ifndef PERFLAB_MIDDLEWARE_H
#define PERFLAB_MIDDLEWARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The single version of this interface: raised by one whenever a plug-in built against an older header
 * would misbehave. */
#define PERFLAB_MIDDLEWARE_ABI 10u

/* A time that this middleware does not know. Never 0. */
#define PERFLAB_TIME_UNKNOWN INT64_MIN
/* No limit: for deadline, lifespan, lease duration and wait(). */
#define PERFLAB_DURATION_INFINITE INT64_MAX
/* Every sample: for depth when history is keep_all. */
#define PERFLAB_DEPTH_UNLIMITED INT32_MAX
/* No limit: for max_samples, max_instances and max_samples_per_instance. */
#define PERFLAB_COUNT_UNLIMITED INT32_MAX

typedef enum perflab_status {
  PERFLAB_OK = 0,
  PERFLAB_NO_DATA = 1,      /* take(): no sample available */
  PERFLAB_TIMEOUT = 2,      /* wait(): nothing became ready in time */
  PERFLAB_FAILED = -1,      /* the middleware failed; the text has the reason */
  PERFLAB_UNSUPPORTED = -2, /* the installed middleware does not support the request */
  PERFLAB_BAD_OPTION = -3   /* an option or value is malformed or unknown */
} perflab_status;

typedef struct perflab_error {
  char text[512]; /* NUL-terminated, one line, no trailing full stop needed */
} perflab_error;

/* The identity of a writer or reader, unique among all participants of a domain; in DDS its GUID. */
typedef struct perflab_identity {
  uint8_t bytes[16];
} perflab_identity;

/* Identifies one message of one writer, as in DDS-RPC; a writer's sequence numbers start at 1. */
typedef struct perflab_sample_identity {
  perflab_identity writer;
  int64_t sequence; /* 0: unknown */
} perflab_sample_identity;

typedef enum perflab_history { PERFLAB_KEEP_LAST = 0, PERFLAB_KEEP_ALL = 1 } perflab_history;
typedef enum perflab_reliability { PERFLAB_BEST_EFFORT = 0, PERFLAB_RELIABLE = 1 } perflab_reliability;
typedef enum perflab_durability {
  PERFLAB_VOLATILE = 0,
  PERFLAB_TRANSIENT_LOCAL = 1,
  PERFLAB_TRANSIENT = 2,
  PERFLAB_PERSISTENT = 3
} perflab_durability;
typedef enum perflab_liveliness { PERFLAB_AUTOMATIC = 0, PERFLAB_MANUAL_BY_TOPIC = 1 } perflab_liveliness;

typedef enum perflab_ownership { PERFLAB_SHARED = 0, PERFLAB_EXCLUSIVE = 1 } perflab_ownership;
typedef enum perflab_destination_order { PERFLAB_BY_RECEPTION = 0, PERFLAB_BY_SOURCE = 1 } perflab_destination_order;
typedef enum perflab_access_scope {
  PERFLAB_SCOPE_INSTANCE = 0,
  PERFLAB_SCOPE_TOPIC = 1,
  PERFLAB_SCOPE_GROUP = 2
} perflab_access_scope;

/* A NUL-terminated text of at most 255 bytes. */
typedef struct perflab_text {
  char text[256];
} perflab_text;

/* QoS policies with DDS semantics. A plug-in declares the policies that it supports
 * (perflab_middleware.policies); the host refuses all others. If a plug-in cannot honour a particular
 * value of a declared policy, it returns PERFLAB_UNSUPPORTED with an error text that names the policy.
 * middleware/policies.h has the table of all policies and their rules. */
typedef struct perflab_qos {
  perflab_history history;
  int32_t depth; /* > 0, per instance; ignored with keep_all */
  perflab_reliability reliability;
  perflab_durability durability;
  int64_t deadline_ns; /* > 0 or PERFLAB_DURATION_INFINITE; likewise below */
  int64_t lifespan_ns; /* writers only */
  perflab_liveliness liveliness;
  int64_t lease_duration_ns;
  int64_t service_cleanup_delay_ns; /* DURABILITY_SERVICE, >= 0; writers only */
  perflab_text partition; /* names separated by commas; empty: the default partition, whose name is empty */
  perflab_ownership ownership;
  int32_t ownership_strength;   /* >= 0; writers only */
  int64_t time_based_filter_ns; /* minimum separation, >= 0; readers only */
  perflab_destination_order destination_order;
  int32_t transport_priority; /* >= 0; writers only */
  int64_t latency_budget_ns;  /* >= 0 */
  int32_t max_samples;        /* > 0 or PERFLAB_COUNT_UNLIMITED; likewise below */
  int32_t max_instances;
  int32_t max_samples_per_instance;
  perflab_access_scope access_scope; /* PRESENTATION, with the two below */
  bool coherent;
  bool ordered;
  perflab_text user_data; /* appended to the endpoint's own user_data */
  perflab_text topic_data;
  perflab_text group_data;
} perflab_qos;

/* How a plug-in treats a policy. */
typedef enum perflab_support {
  PERFLAB_REFUSED = 0,
  PERFLAB_HINT = 1,     /* passed to the library, which may act on it; its effect is not tested */
  PERFLAB_SUPPORTED = 2 /* the conformance suite tests its effect */
} perflab_support;
typedef struct perflab_policy {
  const char* name; /* DDS name, e.g. "partition", or one value, e.g. "durability=transient" */
  perflab_support support;
  const char* note; /* a few words, or NULL */
} perflab_policy;

typedef enum perflab_event_kind {
  PERFLAB_PARTICIPANT_FOUND = 1, /* a remote participant was discovered */
  PERFLAB_PARTICIPANT_LOST,
  PERFLAB_WRITER_FOUND, /* a remote writer was discovered; topic and type are set */
  PERFLAB_READER_FOUND,
  PERFLAB_MATCHED,            /* a local entity and `peer` now communicate */
  PERFLAB_UNMATCHED,          /* ... no longer communicate */
  PERFLAB_INCOMPATIBLE_QOS,   /* discovered, but not matched; `policy` names the QoS policy */
  PERFLAB_DEADLINE_MISSED,    /* offered or requested deadline; `count` misses since the last event */
  PERFLAB_LIVELINESS_LOST,    /* a local writer failed to assert its liveliness */
  PERFLAB_LIVELINESS_CHANGED, /* a matched writer became alive (count > 0) or not alive (count < 0) */
  PERFLAB_SAMPLE_LOST,        /* the middleware itself reports `count` lost samples */
  PERFLAB_WRITER_LOST,        /* a remote writer has gone; topic and type are not set */
  PERFLAB_READER_LOST
} perflab_event_kind;

typedef struct perflab_event {
  perflab_event_kind kind;
  int64_t at_ns;         /* host clock */
  perflab_identity peer; /* the remote entity; all zero if unknown */
  const char* topic;     /* as passed to create_writer/create_reader, or as discovered on the wire; may be
                          * NULL */
  const char* type;      /* may be NULL */
  const char* policy;    /* "durability", "deadline", "liveliness", "reliability", ...; may be NULL */
  int32_t count;
} perflab_event;

/* Callbacks that the host provides to the plug-in. Valid until close() has returned. */
typedef struct perflab_host {
  int64_t (*now_ns)(void* context); /* monotonic; callable from any thread, no side effects */
  /* Discovery of remote participants and endpoints; may be NULL. */
  void (*on_event)(void* context, const perflab_event* event);
  void* context;
} perflab_host;

typedef struct perflab_option {
  const char* key;
  const char* value;
} perflab_option;

typedef struct perflab_participant_settings {
  uint32_t domain;                /* 0..232 */
  const char* network;            /* interface name; "lo" keeps every packet on this machine */
  uint32_t participants_expected; /* in the domain, including this one; sizes the peer range without
                                   * multicast */
  /* Endpoints of this process in this domain do not match each other, not even across its participants,
   * and do not appear in matched counts: the host delivers between them itself. All participants of a
   * process and domain have the same value. */
  bool ignore_local_endpoints;
  const perflab_option* options; /* plug-in specific; an unknown key is PERFLAB_BAD_OPTION */
  size_t option_count;
} perflab_participant_settings;

/* Borrowed bytes. A message consists of one or more such pieces, which write() sends as one; the host does
 * not change them during write(). */
typedef struct perflab_bytes {
  const void* data;
  size_t size;
} perflab_bytes;

/* How a message is encoded: complete, or only its key. */
typedef enum perflab_form { PERFLAB_MESSAGE = 0, PERFLAB_KEY = 1 } perflab_form;

/* Extracts the key of a message of a keyed topic; messages with the same key form one instance (DDS 1.4,
 * 2.2.1.2.2). Only the host knows the type. Both functions may be called from any thread and accept either
 * form in either byte order. Everything here outlives the participant. */
typedef struct perflab_key {
  /* Writes the key as DDS sends it (big-endian CDR after an encapsulation header) and returns its size; if
   * that exceeds `capacity`, the key may be incomplete. 0: the bytes are not a message of the type. */
  size_t (*extract)(const void* context, perflab_form form, const perflab_bytes* parts, size_t part_count, uint8_t* key,
                    size_t capacity);
  /* The key hash (DDS-RTPS 2.5, 9.6.4.8). False: the bytes are not a message of the type. */
  bool (*hash)(const void* context, perflab_form form, const perflab_bytes* parts, size_t part_count, uint8_t hash[16]);
  const void* context;
} perflab_key;

/* A content filter: selects the messages of a topic that a reader wants (DDS 1.4, 2.2.2.5.3). Only the
 * host knows the type. wants() may be called from any thread and accepts either byte order; it returns
 * true for bytes that are not a message of the type, so that they are received and counted. What the
 * pointers refer to outlives the participant. */
typedef struct perflab_filter {
  bool (*wants)(const void* context, const perflab_bytes* parts, size_t part_count);
  const void* context;
  const char* expression; /* DDS SQL, for peers and people; two filters of one type with the same
                           * expression are equivalent */
} perflab_filter;

/* Settings of one writer or reader. `topic` and `type` are wire names, mangled as in ROS 2 ("rt/amazon",
 * "perflab_msgs::msg::dds_::StampedInt64_"), and not empty. */
typedef struct perflab_endpoint_settings {
  const char* topic;
  const char* type;
  size_t fixed_size; /* of every message, including its encapsulation header; 0: sizes vary */
  /* Writer: all messages will be written by loan() and write_loaned(). Reader: it may read loaned messages
   * in place. PERFLAB_UNSUPPORTED if that is impossible: there is no silent fallback to copies. */
  bool loans;
  /* Reader: its samples have `sequence` and `related`, which costs time in every take(). Ignored by
   * plug-ins without capabilities.related_samples. */
  bool related_samples;
  perflab_qos qos;
  const char* user_data; /* visible to peers besides the QoS (USER_DATA); text, or NULL */
  /* The topic is keyed, and history depth applies to each instance; NULL: no key. The same for all
   * endpoints of a type in this process; keyed endpoints do not match unkeyed ones. NULL for plug-ins
   * without capabilities.instances. */
  const perflab_key* key;
  /* Reader: at most one filter; the reader receives only messages that it accepts, and the others neither
   * count as lost nor take space in its history. Writer: the filters of its topic's readers, as far as the
   * host knows them, so that it can omit messages that a reader does not want; it may leave filtering to
   * the readers. The array is valid during the call. Empty for plug-ins without capabilities.filters. */
  const perflab_filter* filters;
  size_t filter_count;
} perflab_endpoint_settings;

/* A discovered writer or reader of another participant. */
typedef struct perflab_remote_endpoint {
  perflab_identity identity;
  bool writes;
  const char* topic;       /* as discovered on the wire, like the type */
  const char* type;
  perflab_bytes user_data; /* its USER_DATA, arbitrary bytes; topic_data and group_data likewise */
  perflab_bytes topic_data;
  perflab_bytes group_data;
} perflab_remote_endpoint;

/* Callbacks of one writer or reader; each may be NULL. */
typedef struct perflab_listener {
  /* Readers: new data can be taken; take() may be called here. Called at least once after each message
   * arrives; spurious calls (take() returns PERFLAB_NO_DATA) are possible, as in wait(). */
  void (*on_data)(void* context);
  void (*on_event)(void* context, const perflab_event* event);
  void* context;
} perflab_listener;

/* A taken message, valid until return_sample(). */
typedef struct perflab_sample {
  const uint8_t* data; /* CDR with its 4-byte encapsulation header */
  size_t size;         /* as written, or up to 3 bytes more: RTPS pads messages to 4 bytes on the wire */
  perflab_identity writer;
  /* Both are 0 unless the reader was created with related_samples. */
  int64_t sequence;                /* the writer's sequence number of this message; 0: unknown */
  perflab_sample_identity related; /* as passed to write_related(); all zero if nothing was */
  int64_t source_timestamp_ns;     /* wall clock at the writer, or PERFLAB_TIME_UNKNOWN */
  int64_t reception_ns; /* host clock when the receive thread had the complete message, or
                         * PERFLAB_TIME_UNKNOWN */
  void* loan;           /* for the plug-in's own use */
} perflab_sample;

typedef struct perflab_participant perflab_participant;
typedef struct perflab_writer perflab_writer;
typedef struct perflab_reader perflab_reader;
typedef struct perflab_waitset perflab_waitset;

typedef struct perflab_capabilities {
  bool across_processes;     /* participants in different OS processes find each other */
  bool data_ready_callbacks; /* the plug-in calls listener.on_data */
  bool source_timestamps;    /* perflab_sample.source_timestamp_ns is set, and stamp_next() exists */
  bool reception_timestamps; /* perflab_sample.reception_ns is set, at least between processes */
  bool reports_endpoints;    /* host.on_event reports discovered participants and endpoints;
                              * remote_endpoints() exists */
  bool related_samples;      /* write_related() exists, and readers can have `sequence` and `related` */
  bool loans;                /* loan() exists; whether a writer can use it depends on its type and options */
  bool instances;            /* topics may have keys */
  bool filters;              /* readers may have a content filter */
} perflab_capabilities;

typedef struct perflab_middleware {
  uint32_t abi;         /* PERFLAB_MIDDLEWARE_ABI at compile time */
  const char* name;     /* the name that users type, e.g. "cyclonedds" */
  const char* summary;  /* one line for `perflab list middlewares` */

  /* The version of the library loaded at run time, static storage. */
  const char* (*version)(void);
  perflab_capabilities (*capabilities)(void);
  /* The supported QoS policies, static storage; the last entry has no name. The host refuses any other
   * policy before it calls a function below. */
  const perflab_policy* (*policies)(void);

  /* Joins a domain. A process may have several participants, also in one domain; those of one domain must
   * be opened with the same host and settings, otherwise they are refused. `host` and `settings` need not
   * outlive the call (but what `host->context` points to must). A malformed option fails here, before any
   * packet is sent. */
  perflab_status (*open)(const perflab_host* host, const perflab_participant_settings* settings,
                         perflab_participant** participant, perflab_error* error);
  /* Leaves the domain; all writers, readers and wait-sets have been destroyed before. Joins every thread
   * and frees every resource created by open(). */
  void (*close)(perflab_participant* participant);
  /* A JSON object with the effective configuration: transport, settings, and the plug-in's own counters.
   * Owned by the participant, valid until the next call or close(). */
  const char* (*describe)(perflab_participant* participant);

  /* Calls `each` for every writer and reader of other participants known at this moment, in any order,
   * regardless of topic, type and QoS. The argument of `each` is valid until it returns; `each` must not
   * call the plug-in. NULL if capabilities.reports_endpoints is false. */
  perflab_status (*remote_endpoints)(perflab_participant* participant,
                                     void (*each)(void* context, const perflab_remote_endpoint* endpoint),
                                     void* context, perflab_error* error);

  perflab_status (*create_writer)(perflab_participant* participant, const perflab_endpoint_settings* settings,
                                  const perflab_listener* listener, perflab_writer** writer,
                                  perflab_error* error);
  void (*destroy_writer)(perflab_writer* writer);
  perflab_status (*create_reader)(perflab_participant* participant, const perflab_endpoint_settings* settings,
                                  const perflab_listener* listener, perflab_reader** reader,
                                  perflab_error* error);
  void (*destroy_reader)(perflab_reader* reader);

  perflab_identity (*writer_identity)(const perflab_writer* writer);
  perflab_identity (*reader_identity)(const perflab_reader* reader);
  /* The number of remote and local endpoints that this entity is matched with now. */
  size_t (*matched_readers)(perflab_writer* writer);
  size_t (*matched_writers)(perflab_reader* reader);
  /* How long messages of a writer matched with this reader stay valid, or PERFLAB_DURATION_INFINITE. May
   * be called within on_data(). */
  int64_t (*lifespan)(perflab_reader* reader, const perflab_identity* writer);

  /* Sends one message made of `parts` in order. The parts are copied or sent before write() returns.
   * `error` is set only on failure. A reliable writer may block while its resources are exhausted;
   * PERFLAB_FAILED after such a wait means that the message was not sent. */
  perflab_status (*write)(perflab_writer* writer, const perflab_bytes* parts, size_t part_count,
                          perflab_error* error);

  /* Like write(), and marks which message this one belongs to, visible to the reader
   * (related_sample_identity of DDS-RPC), e.g. the request that a reply answers. `related` may be NULL.
   * Stores the sequence number of the written message in `sequence`, which may be NULL. The function is
   * NULL if capabilities.related_samples is false. */
  perflab_status (*write_related)(perflab_writer* writer, const perflab_bytes* parts, size_t part_count,
                                  const perflab_sample_identity* related, int64_t* sequence,
                                  perflab_error* error);
  /* For a writer created with `loans`: lends memory for one message of fixed_size bytes, including its
   * encapsulation header, with arbitrary content. write_loaned() sends it, discard_loan() returns it
   * unsent; both end the loan, even on failure. All three are NULL if capabilities.loans is false. */
  perflab_status (*loan)(perflab_writer* writer, void** message, perflab_error* error);
  perflab_status (*write_loaned)(perflab_writer* writer, void* message, perflab_error* error);
  void (*discard_loan)(perflab_writer* writer, void* message);

  /* Sets the source time stamp (wall clock, ns, > 0) of this writer's next message: readers find exactly
   * this number in perflab_sample.source_timestamp_ns. It applies to the next call of any of the three
   * write functions, even if that fails, and to no later message; if called twice before a write, the
   * later value applies. Threading as for write(). Without this call the middleware sets its own time
   * stamp. NULL if capabilities.source_timestamps is false. */
  void (*stamp_next)(perflab_writer* writer, int64_t source_timestamp_ns);

  /* Takes the oldest sample of any instance: PERFLAB_OK, PERFLAB_NO_DATA, or an error. Every taken sample
   * is returned by return_sample() before the reader is destroyed. */
  perflab_status (*take)(perflab_reader* reader, perflab_sample* sample, perflab_error* error);
  void (*return_sample)(perflab_reader* reader, perflab_sample* sample);

  /* A wait-set: wait() returns when an attached reader has data, when wake() was called, or after
   * timeout_ns (0: immediately). Level-triggered: a reader with data left is ready again at the next
   * wait(). `ready` receives the cookies of ready readers, at most `capacity`, in order of attachment; if
   * not all fit, the next wait() starts (in the same circular order) with the first that did not fit.
   * Readiness may be spurious (e.g. a writer has left): take() then returns PERFLAB_NO_DATA. wake() is
   * sticky: it ends the current wait(), or else the next one, with PERFLAB_OK and possibly no ready
   * reader. Readers of any participant of this process and domain can be attached, no matter which
   * participant created the wait-set; they are destroyed before that participant is closed. A reader is
   * attached to at most one wait-set (a second attach() fails); destroying either ends the attachment,
   * while no thread is in that wait-set's wait(). */
  perflab_status (*create_waitset)(perflab_participant* participant, perflab_waitset** waitset,
                                   perflab_error* error);
  void (*destroy_waitset)(perflab_waitset* waitset);
  perflab_status (*attach)(perflab_waitset* waitset, perflab_reader* reader, uint64_t cookie,
                           perflab_error* error);
  perflab_status (*wait)(perflab_waitset* waitset, int64_t timeout_ns, uint64_t* ready, size_t capacity,
                         size_t* ready_count, perflab_error* error);
  void (*wake)(perflab_waitset* waitset);
} perflab_middleware;

/* The one symbol that a plug-in exports (name below); returns static storage. */
typedef const perflab_middleware* (*perflab_middleware_entry)(void);
#define PERFLAB_MIDDLEWARE_ENTRY_NAME "perflab_middleware_plugin"

#ifdef __cplusplus
} /* extern "C" */
#endif

#endif /* PERFLAB_MIDDLEWARE_H */
