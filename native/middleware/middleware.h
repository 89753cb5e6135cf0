/* The middleware plug-in interface: a versioned struct of function pointers.
 *
 * A middleware moves serialized messages between writers and readers. It knows nothing about
 * measurement: it takes no time stamp of its own (the host lends it a clock), keeps no statistics
 * and prints nothing. A plug-in is one shared object that exports `perflab_middleware_plugin`; it
 * may be written in C, C++ or Rust. docs/new-middleware.md is the tutorial.
 *
 * Every plug-in must pass the conformance suite in tests/conformance/middleware; the contracts
 * below are what that suite checks.
 *
 * Threads. Functions that create or destroy are called from one thread at a time. write(), take(),
 * return_sample() and wait() may be called from any thread, but never concurrently on one entity; the
 * matched counts and lifespan() also while others run. Listener callbacks come on threads of the plug-in, or
 * synchronously inside write(), take(), return_sample(), wait() or a create function; they never come concurrently for one entity, and never after the
 * destroy function of that entity has returned. wake() may be called from any thread, also from a
 * callback.
 *
 * Errors. Functions that return `perflab_status` fill `error->text` with one line (what, where,
 * what would be right) whenever the status is negative, and leave their outputs untouched.
 *
 * Units. Times are nanoseconds. Monotonic times are those of the host's clock
 * (`perflab_host.now_ns`); source time stamps are wall clock and serve only to match a publication
 * with its take. The host may choose them itself (stamp_next()), so that a trace can tell them before
 * the message is written.
 */
#ifndef PERFLAB_MIDDLEWARE_H
#define PERFLAB_MIDDLEWARE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The one version of everything below: raised by one whenever a plug-in built against an older header would
 * misbehave. */
#define PERFLAB_MIDDLEWARE_ABI 10u

/* "Not known": a time that this middleware cannot tell. Never 0. */
#define PERFLAB_TIME_UNKNOWN INT64_MIN
/* "No limit": for deadline, lifespan, lease duration and wait(). */
#define PERFLAB_DURATION_INFINITE INT64_MAX
/* "Every sample": for depth when history is keep_all. */
#define PERFLAB_DEPTH_UNLIMITED INT32_MAX
/* "No limit": for max_samples, max_instances and max_samples_per_instance. */
#define PERFLAB_COUNT_UNLIMITED INT32_MAX

typedef enum perflab_status {
  PERFLAB_OK = 0,
  PERFLAB_NO_DATA = 1,      /* take(): nothing there */
  PERFLAB_TIMEOUT = 2,      /* wait(): nothing became ready in time */
  PERFLAB_FAILED = -1,      /* the middleware failed; the text says how */
  PERFLAB_UNSUPPORTED = -2, /* this middleware, as installed here, cannot do what was asked */
  PERFLAB_BAD_OPTION = -3   /* an option or value is malformed or unknown */
} perflab_status;

typedef struct perflab_error {
  char text[512]; /* NUL-terminated, one line, no trailing full stop needed */
} perflab_error;

/* The identity of a writer or reader, unique among all participants of a domain; for DDS its GUID. */
typedef struct perflab_identity {
  uint8_t bytes[16];
} perflab_identity;

/* One message of one writer, as DDS-RPC names it; sequence numbers of a writer begin at 1. */
typedef struct perflab_sample_identity {
  perflab_identity writer;
  int64_t sequence; /* 0: not known */
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

/* A text with its end, at most 255 bytes. */
typedef struct perflab_text {
  char text[256];
} perflab_text;

/* DDS semantics. A plug-in declares which policies it has (perflab_middleware.policies); the host refuses the others. What it
 * declares and cannot honour as a particular value it answers with PERFLAB_UNSUPPORTED, and names it. The table of all of
 * them, with their rules, is middleware/policies.h. */
typedef struct perflab_qos {
  perflab_history history;
  int32_t depth; /* > 0, of each instance; ignored with keep_all */
  perflab_reliability reliability;
  perflab_durability durability;
  int64_t deadline_ns; /* > 0 or PERFLAB_DURATION_INFINITE; likewise below */
  int64_t lifespan_ns; /* writers only */
  perflab_liveliness liveliness;
  int64_t lease_duration_ns;
  int64_t service_cleanup_delay_ns; /* DURABILITY_SERVICE, >= 0; writers only */
  perflab_text partition; /* names joined by commas; empty: the one without a name */
  perflab_ownership ownership;
  int32_t ownership_strength;   /* >= 0; writers only */
  int64_t time_based_filter_ns; /* the minimum separation, >= 0; readers only */
  perflab_destination_order destination_order;
  int32_t transport_priority; /* >= 0; writers only */
  int64_t latency_budget_ns;  /* >= 0 */
  int32_t max_samples;        /* > 0 or PERFLAB_COUNT_UNLIMITED; likewise below */
  int32_t max_instances;
  int32_t max_samples_per_instance;
  perflab_access_scope access_scope; /* PRESENTATION, with the two below */
  bool coherent;
  bool ordered;
  perflab_text user_data; /* behind the endpoint's own user_data */
  perflab_text topic_data;
  perflab_text group_data;
} perflab_qos;

/* What a plug-in does with a policy. */
typedef enum perflab_support {
  PERFLAB_REFUSED = 0,
  PERFLAB_HINT = 1,     /* handed to the library, which may act by it; what it does is not tested */
  PERFLAB_SUPPORTED = 2 /* its effect is tested by the conformance suite */
} perflab_support;
typedef struct perflab_policy {
  const char* name; /* as DDS calls it, "partition"; or one value of it, "durability=transient" */
  perflab_support support;
  const char* note; /* a few words, or NULL */
} perflab_policy;

typedef enum perflab_event_kind {
  PERFLAB_PARTICIPANT_FOUND = 1, /* a remote participant was discovered */
  PERFLAB_PARTICIPANT_LOST,
  PERFLAB_WRITER_FOUND, /* a remote writer was discovered; topic and type are set */
  PERFLAB_READER_FOUND,
  PERFLAB_MATCHED,            /* an entity of ours and `peer` now communicate */
  PERFLAB_UNMATCHED,          /* ... no longer communicate */
  PERFLAB_INCOMPATIBLE_QOS,   /* found, but not matched; `policy` names the QoS policy */
  PERFLAB_DEADLINE_MISSED,    /* offered or requested deadline; `count` more than before */
  PERFLAB_LIVELINESS_LOST,    /* our writer failed to assert */
  PERFLAB_LIVELINESS_CHANGED, /* a matched writer became alive (count > 0) or not alive (count < 0) */
  PERFLAB_SAMPLE_LOST,        /* the middleware itself reports `count` lost samples */
  PERFLAB_WRITER_LOST,        /* a remote writer is gone; topic and type are not set */
  PERFLAB_READER_LOST
} perflab_event_kind;

typedef struct perflab_event {
  perflab_event_kind kind;
  int64_t at_ns;         /* host clock */
  perflab_identity peer; /* the remote entity; all zero where it is not known */
  const char* topic;     /* as given to create_writer/create_reader, or as found on the wire; may be NULL */
  const char* type;      /* may be NULL */
  const char* policy;    /* "durability", "deadline", "liveliness", "reliability", ...; may be NULL */
  int32_t count;
} perflab_event;

/* What the host lends to the plug-in. Valid until close() has returned. */
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
  uint32_t participants_expected; /* in the domain, this one included; for the peer range without multicast */
  /* Endpoints of this process do not match each other in this domain, whichever of its participants they
   * belong to, for the host delivers between them itself; likewise they are in no matched count. The same for
   * all participants of a process and domain. */
  bool ignore_local_endpoints;
  const perflab_option* options; /* the plug-in's own; an unknown key is PERFLAB_BAD_OPTION */
  size_t option_count;
} perflab_participant_settings;

/* Bytes of somebody else's. A message comes in pieces of them, which write() treats as one; the host never changes
 * them during write(). */
typedef struct perflab_bytes {
  const void* data;
  size_t size;
} perflab_bytes;

/* What a message comes as: itself, or the key of one by itself. */
typedef enum perflab_form { PERFLAB_MESSAGE = 0, PERFLAB_KEY = 1 } perflab_form;

/* Finds the key of a message of a topic with keys: messages with the same key are one instance (DDS 1.4, 2.2.1.2.2). Only
 * the host knows the type. The functions may be called from any thread, and take either form in either
 * byte order. All of it outlives the participant. */
typedef struct perflab_key {
  /* Writes the key as DDS sends it by itself (big-endian CDR behind an encapsulation header), and returns its size; where
   * that is above `capacity` some of it may be missing. 0: the bytes are no message of the type. */
  size_t (*extract)(const void* context, perflab_form form, const perflab_bytes* parts, size_t part_count, uint8_t* key,
                    size_t capacity);
  /* Its key hash (DDS-RTPS 2.5, 9.6.4.8). False: the bytes are no message of the type. */
  bool (*hash)(const void* context, perflab_form form, const perflab_bytes* parts, size_t part_count, uint8_t hash[16]);
  const void* context;
} perflab_key;

/* A content filter: which messages of a topic a reader wants (DDS 1.4, 2.2.2.5.3). Only the host knows the type. wants() may
 * be called from any thread, and takes either byte order; what is no message of the type it wants, so that it is received
 * and counted. What the pointers point at outlives the participant. */
typedef struct perflab_filter {
  bool (*wants)(const void* context, const perflab_bytes* parts, size_t part_count);
  const void* context;
  const char* expression; /* in SQL as DDS has it, for peers and people; two of one type that say the same are alike */
} perflab_filter;

/* One writer or reader. `topic` and `type` are wire names, already ROS 2 mangled ("rt/amazon",
 * "perflab_msgs::msg::dds_::StampedInt64_"), and not empty. */
typedef struct perflab_endpoint_settings {
  const char* topic;
  const char* type;
  size_t fixed_size; /* of every message with its encapsulation header, or 0 where it varies */
  /* Writer: its messages will be written by loan() and write_loaned(). Reader: it may read loaned messages in
   * place. PERFLAB_UNSUPPORTED where that cannot be had: nothing falls back to copies in silence. */
  bool loans;
  /* Reader: its samples tell `sequence` and `related`, which costs time in every take(). Means nothing to a
   * plug-in without capabilities.related_samples. */
  bool related_samples;
  perflab_qos qos;
  const char* user_data; /* what peers see beside the QoS (USER_DATA); text, or NULL */
  /* The topic has keys, and histories their depth for each instance; NULL: it has none. The same at all endpoints of a
   * type in this process; endpoints with and without keys do not match. NULL to a plug-in without
   * capabilities.instances. */
  const perflab_key* key;
  /* Reader: at most one, and it receives no other messages than those that this filter wants; they are not lost, nor in its
   * history. Writer: those of the readers of its topic, as far as the host knows them, so that it can leave out what a reader
   * does not want; it may leave that to the readers. The array is valid during the call. None to a plug-in without
   * capabilities.filters. */
  const perflab_filter* filters;
  size_t filter_count;
} perflab_endpoint_settings;

/* What is known of a writer or reader of another participant. */
typedef struct perflab_remote_endpoint {
  perflab_identity identity;
  bool writes;
  const char* topic;       /* as found on the wire, likewise the type */
  const char* type;
  perflab_bytes user_data; /* its USER_DATA, any bytes; likewise below */
  perflab_bytes topic_data;
  perflab_bytes group_data;
} perflab_remote_endpoint;

/* Callbacks of one writer or reader; each may be NULL. */
typedef struct perflab_listener {
  /* Readers: new data can be taken; take() is allowed here. Called at least once after each message
   * arrives; spurious calls (take() says PERFLAB_NO_DATA) are possible, as in wait(). */
  void (*on_data)(void* context);
  void (*on_event)(void* context, const perflab_event* event);
  void* context;
} perflab_listener;

/* A taken message, valid until return_sample(). */
typedef struct perflab_sample {
  const uint8_t* data; /* CDR with its 4-byte encapsulation header */
  size_t size;         /* as written, or up to 3 bytes more: RTPS pads messages to 4 bytes on the wire */
  perflab_identity writer;
  /* Both are 0 unless the reader was made with related_samples. */
  int64_t sequence;                /* the writer's number of this message, or 0 where it is not known */
  perflab_sample_identity related; /* as given to write_related(); all zero where nothing was */
  int64_t source_timestamp_ns;     /* wall clock at the writer, or PERFLAB_TIME_UNKNOWN */
  int64_t reception_ns; /* host clock when the receive thread had it all, or PERFLAB_TIME_UNKNOWN */
  void* loan;           /* for the plug-in */
} perflab_sample;

typedef struct perflab_participant perflab_participant;
typedef struct perflab_writer perflab_writer;
typedef struct perflab_reader perflab_reader;
typedef struct perflab_waitset perflab_waitset;

typedef struct perflab_capabilities {
  bool across_processes;     /* participants in different OS processes find each other */
  bool data_ready_callbacks; /* listener.on_data is called */
  bool source_timestamps;    /* perflab_sample.source_timestamp_ns is known, and stamp_next() exists */
  bool reception_timestamps; /* perflab_sample.reception_ns is known, at least between processes */
  bool reports_endpoints;    /* host.on_event tells participants and endpoints found; remote_endpoints() exists */
  bool related_samples;      /* write_related() exists, and readers can have `sequence` and `related` */
  bool loans;                /* loan() exists; whether a writer can have it depends on its type and options */
  bool instances;            /* topics may have keys */
  bool filters;              /* readers may have a content filter */
} perflab_capabilities;

typedef struct perflab_middleware {
  uint32_t abi;         /* PERFLAB_MIDDLEWARE_ABI as compiled */
  const char* name;     /* "cyclonedds"; what the user types */
  const char* summary;  /* one line for `perflab list middlewares` */

  /* The version of the library found at run time, static storage. */
  const char* (*version)(void);
  perflab_capabilities (*capabilities)(void);
  /* The QoS policies that it has, static storage; the last one has no name. One that is not among them is refused before a
   * function here sees it. */
  const perflab_policy* (*policies)(void);

  /* Joins a domain. A process may have several participants, also in one domain; those of one domain are
   * opened with the same host and settings, or refused. `host` and `settings` need not outlive the call (what `host`
   * points at through `context` must). A malformed option fails here, before any packet is sent. */
  perflab_status (*open)(const perflab_host* host, const perflab_participant_settings* settings,
                         perflab_participant** participant, perflab_error* error);
  /* Leaves it: all writers, readers and wait-sets have been destroyed before. Joins every thread and frees
   * every resource that open() made. */
  void (*close)(perflab_participant* participant);
  /* JSON object with what took effect: transport, configuration, and whatever the plug-in counts
   * beside that. Owned by the participant, valid until the next call or close(). */
  const char* (*describe)(perflab_participant* participant);

  /* Calls `each` for every writer and reader of other participants that is known at this moment, in any order,
   * whether or not it has the topic, type or QoS of an endpoint here. What `each` is given is valid until it
   * returns; it must not call the plug-in. NULL where capabilities.reports_endpoints is false. */
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
  /* Remote and local endpoints that this entity communicates with now. */
  size_t (*matched_readers)(perflab_writer* writer);
  size_t (*matched_writers)(perflab_reader* reader);
  /* For how long the messages of a writer that this reader is matched with are valid, or
   * PERFLAB_DURATION_INFINITE. May be called within on_data(). */
  int64_t (*lifespan)(perflab_reader* reader, const perflab_identity* writer);

  /* Sends one message, the parts one after the other. Parts are copied or sent before the
   * return. `error` is filled on failure only. A reliable writer may block while its
   * resources are exhausted; PERFLAB_FAILED after that wait means that the message was not sent. */
  perflab_status (*write)(perflab_writer* writer, const perflab_bytes* parts, size_t part_count,
                          perflab_error* error);

  /* The same, and says in a way that the reader sees which message this one belongs to (DDS-RPC's
   * related_sample_identity): a reply to its request. `related` may be NULL. The number of the written
   * message is put into `sequence`, which may be NULL. NULL where capabilities.related_samples is false. */
  perflab_status (*write_related)(perflab_writer* writer, const perflab_bytes* parts, size_t part_count,
                                  const perflab_sample_identity* related, int64_t* sequence,
                                  perflab_error* error);
  /* For a writer made with `loans`: room for one message of fixed_size bytes, its encapsulation header
   * included, with arbitrary content. write_loaned() sends it and discard_loan() gives it back unsent; each
   * ends the loan, also where it fails. All three are NULL where capabilities.loans is false. */
  perflab_status (*loan)(perflab_writer* writer, void** message, perflab_error* error);
  perflab_status (*write_loaned)(perflab_writer* writer, void* message, perflab_error* error);
  void (*discard_loan)(perflab_writer* writer, void* message);

  /* With which source time stamp (ns of the wall clock, > 0) the next message of this writer goes out:
   * readers find exactly this number in perflab_sample.source_timestamp_ns. Holds for whichever of the three
   * writes comes next, also if that fails, and for no message after it; again before that write, the later
   * one holds. Called like write(). Where it is not called the middleware stamps as it does by itself. NULL
   * where capabilities.source_timestamps is false. */
  void (*stamp_next)(perflab_writer* writer, int64_t source_timestamp_ns);

  /* Takes the oldest sample, of whichever instance: PERFLAB_OK, PERFLAB_NO_DATA, or an error. Each sample that was taken is given
   * back by return_sample() before the reader is destroyed. */
  perflab_status (*take)(perflab_reader* reader, perflab_sample* sample, perflab_error* error);
  void (*return_sample)(perflab_reader* reader, perflab_sample* sample);

  /* A wait-set: wait() returns when an attached reader has data, when wake() was called, or after
   * timeout_ns (0: at once). Level-triggered: a reader with data left is ready again at the next
   * wait(). `ready` receives the cookies of ready readers, at most `capacity`, in order of
   * attachment; where not all fitted, the next wait() begins (in the same circular order) with the
   * first that did not. Readiness may on occasion be spurious (a writer has left): take() then says
   * PERFLAB_NO_DATA. wake() is sticky: it ends the current wait() or else the next one, with
   * PERFLAB_OK and possibly no ready reader.
   * Readers of any participant of this process and domain can be attached, whichever the wait-set was made
   * from; they are destroyed before that one is closed.
   * A reader is attached to at most one wait-set (a second attach() fails); destroying either of the
   * two ends the attachment, while no thread is in that wait-set's wait(). */
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
