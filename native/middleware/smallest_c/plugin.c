/* The smallest middleware in C: one queue per reader, within one process. docs/new-middleware.md explains
 * it. One mutex guards everything, and there is no thread: a writer puts a copy of the message into the
 * queue of each matching reader, and wakes waiting threads. */
#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "middleware/middleware.h"

/* ---- step 1: what it is ---- */

static const char* version(void) { return "1"; }

/* Declare what is true; the conformance suite checks it. */
static perflab_capabilities capabilities(void) { return (perflab_capabilities){.across_processes = false}; }

/* The host refuses undeclared policies. The suite tests the declared ones. */
static const perflab_policy* policies(void) {
  static const perflab_policy all[] = {{"history", PERFLAB_SUPPORTED, NULL}, {NULL, PERFLAB_REFUSED, NULL}};
  return all;
}

/* One line: what, where, and what would be right. */
static perflab_status fail(perflab_error* error, perflab_status status, const char* format, ...) {
  va_list list;
  va_start(list, format);
  vsnprintf(error->text, sizeof error->text, format, list);
  va_end(list);
  return status;
}

/* ---- step 2: the path of a message ---- */

struct perflab_participant {
  perflab_host host;
  uint32_t domain;
  bool ignores_local;
};

typedef struct Message {
  struct Message* next;
  perflab_identity writer;
  size_t size;
  uint8_t data[];
} Message;

typedef struct Endpoint {
  struct Endpoint* next;
  perflab_participant* participant;
  bool writes;
  perflab_identity identity;
  perflab_listener listener;
  perflab_qos qos;
  char* topic;
  char* type;
  /* of a reader */
  Message *oldest, **newest;
  int32_t waiting;
  perflab_waitset* waitset;
  uint64_t cookie;
} Endpoint;

struct perflab_writer {
  Endpoint endpoint;
};
struct perflab_reader {
  Endpoint endpoint;
};
struct perflab_waitset {
  pthread_cond_t changed;
  bool woken;
  Endpoint** readers; /* in order of attachment */
  size_t count, first;
};

static pthread_mutex_t everything = PTHREAD_MUTEX_INITIALIZER;
static Endpoint* endpoints;
static uint32_t made;

static bool belong_together(const Endpoint* a, const Endpoint* b) {
  return a->writes != b->writes && a->participant->domain == b->participant->domain && !a->participant->ignores_local &&
         strcmp(a->topic, b->topic) == 0 && strcmp(a->type, b->type) == 0;
}

static Message* pop(Endpoint* reader) {
  Message* message = reader->oldest;
  if (message == NULL) return NULL;
  reader->oldest = message->next;
  if (reader->oldest == NULL) reader->newest = &reader->oldest;
  --reader->waiting;
  return message;
}

static perflab_status write_message(perflab_writer* writer, const perflab_bytes* parts, size_t count,
                                    perflab_error* error) {
  const Endpoint* own = &writer->endpoint;
  perflab_status status = PERFLAB_OK;
  size_t size = 0;
  for (size_t i = 0; i < count; ++i) size += parts[i].size;
  pthread_mutex_lock(&everything);
  for (Endpoint* reader = endpoints; reader != NULL; reader = reader->next) {
    if (!belong_together(own, reader)) continue;
    Message* message = malloc(sizeof *message + size);
    if (message == NULL) {
      status = fail(error, PERFLAB_FAILED, "smallest_c: not sent on '%s': no memory", own->topic);
      break;
    }
    *message = (Message){.writer = own->identity, .size = size};
    uint8_t* to = message->data;
    for (size_t i = 0; i < count; ++i) {
      if (parts[i].size > 0) memcpy(to, parts[i].data, parts[i].size);
      to += parts[i].size;
    }
    *reader->newest = message;
    reader->newest = &message->next;
    ++reader->waiting;
    /* Drop the oldest. */
    if (reader->qos.history == PERFLAB_KEEP_LAST && reader->waiting > reader->qos.depth) free(pop(reader));
    if (reader->waitset != NULL) pthread_cond_signal(&reader->waitset->changed);
  }
  pthread_mutex_unlock(&everything);
  return status;
}

static perflab_status take(perflab_reader* reader, perflab_sample* sample, perflab_error* error) {
  (void)error;
  pthread_mutex_lock(&everything);
  Message* message = pop(&reader->endpoint);
  pthread_mutex_unlock(&everything);
  if (message == NULL) return PERFLAB_NO_DATA;
  *sample = (perflab_sample){.data = message->data,
                             .size = message->size,
                             .writer = message->writer,
                             .source_timestamp_ns = PERFLAB_TIME_UNKNOWN,
                             .reception_ns = PERFLAB_TIME_UNKNOWN,
                             .loan = message};
  return PERFLAB_OK;
}

static void return_sample(perflab_reader* reader, perflab_sample* sample) {
  (void)reader;
  free(sample->loan);
}

/* ---- step 3: matching, and waiting ---- */

static void tell(const Endpoint* one, perflab_event_kind kind, const Endpoint* other) {
  if (one->listener.on_event == NULL) return;
  const perflab_host* host = &one->participant->host;
  const perflab_event event = {.kind = kind,
                               .at_ns = host->now_ns(host->context),
                               .peer = other->identity,
                               .topic = one->topic,
                               .type = one->type,
                               .count = 1};
  one->listener.on_event(one->listener.context, &event);
}

static void tell_all(const Endpoint* own, perflab_event_kind kind) {
  for (Endpoint* other = endpoints; other != NULL; other = other->next) {
    if (!belong_together(own, other)) continue;
    tell(other, kind, own);
    if (kind == PERFLAB_MATCHED) tell(own, kind, other);
  }
}

static size_t matched(const Endpoint* own) {
  size_t count = 0;
  pthread_mutex_lock(&everything);
  for (const Endpoint* other = endpoints; other != NULL; other = other->next) count += belong_together(own, other);
  pthread_mutex_unlock(&everything);
  return count;
}

static perflab_status enter(perflab_participant* participant, const perflab_endpoint_settings* settings, bool writes,
                            const perflab_listener* listener, Endpoint** made_one, perflab_error* error) {
  const perflab_qos* qos = &settings->qos;
  if (settings->topic[0] == '\0' || settings->type[0] == '\0')
    return fail(error, PERFLAB_BAD_OPTION, "smallest_c: topic or type is empty; right would be e.g. rt/amazon");
  if (qos->history == PERFLAB_KEEP_LAST && qos->depth <= 0)
    return fail(error, PERFLAB_BAD_OPTION, "smallest_c: history depth %d; right would be at least 1", qos->depth);
  if (qos->deadline_ns <= 0)
    return fail(error, PERFLAB_BAD_OPTION, "smallest_c: a deadline that is not above 0; right would be infinite");
  if (settings->loans) {
    return fail(error, PERFLAB_UNSUPPORTED,
                "smallest_c: topic '%s' shall pass loaned messages; right would be unique or shared", settings->topic);
  }
  Endpoint* own = calloc(1, sizeof *own);
  if (own == NULL) return fail(error, PERFLAB_FAILED, "smallest_c: no memory");
  own->participant = participant;
  own->writes = writes;
  own->qos = *qos;
  own->topic = strdup(settings->topic);
  own->type = strdup(settings->type);
  own->newest = &own->oldest;
  if (listener != NULL) own->listener = *listener;
  pthread_mutex_lock(&everything);
  const uint32_t number = ++made;
  memcpy(own->identity.bytes, &number, sizeof number);
  own->next = endpoints;
  endpoints = own;
  tell_all(own, PERFLAB_MATCHED);
  pthread_mutex_unlock(&everything);
  *made_one = own;
  return PERFLAB_OK;
}

static void detach(Endpoint* reader) {
  perflab_waitset* set = reader->waitset;
  if (set == NULL) return;
  size_t kept = 0;
  for (size_t i = 0; i < set->count; ++i)
    if (set->readers[i] != reader) set->readers[kept++] = set->readers[i];
  set->count = kept;
  set->first = 0;
  reader->waitset = NULL;
}

static void leave(Endpoint* own) {
  pthread_mutex_lock(&everything);
  Endpoint** place = &endpoints;
  while (*place != own) place = &(*place)->next;
  *place = own->next;
  tell_all(own, PERFLAB_UNMATCHED);
  detach(own);
  pthread_mutex_unlock(&everything);
  for (Message* message; (message = pop(own)) != NULL;) free(message);
  free(own->topic);
  free(own->type);
  free(own);
}

/* A handle is its endpoint. */
static perflab_status create_writer(perflab_participant* participant, const perflab_endpoint_settings* settings,
                                    const perflab_listener* listener, perflab_writer** writer, perflab_error* error) {
  return enter(participant, settings, true, listener, (Endpoint**)writer, error);
}
static perflab_status create_reader(perflab_participant* participant, const perflab_endpoint_settings* settings,
                                    const perflab_listener* listener, perflab_reader** reader, perflab_error* error) {
  return enter(participant, settings, false, listener, (Endpoint**)reader, error);
}
static void destroy_writer(perflab_writer* writer) { leave(&writer->endpoint); }
static void destroy_reader(perflab_reader* reader) { leave(&reader->endpoint); }
static perflab_identity writer_identity(const perflab_writer* writer) { return writer->endpoint.identity; }
static perflab_identity reader_identity(const perflab_reader* reader) { return reader->endpoint.identity; }
static size_t matched_readers(perflab_writer* writer) { return matched(&writer->endpoint); }
static size_t matched_writers(perflab_reader* reader) { return matched(&reader->endpoint); }
static int64_t lifespan(perflab_reader* reader, const perflab_identity* writer) {
  (void)reader, (void)writer;
  return PERFLAB_DURATION_INFINITE;
}

static perflab_status create_waitset(perflab_participant* participant, perflab_waitset** waitset, perflab_error* error) {
  (void)participant;
  perflab_waitset* set = calloc(1, sizeof *set);
  if (set == NULL) return fail(error, PERFLAB_FAILED, "smallest_c: no memory");
  pthread_condattr_t monotonic;
  pthread_condattr_init(&monotonic);
  pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
  pthread_cond_init(&set->changed, &monotonic);
  pthread_condattr_destroy(&monotonic);
  *waitset = set;
  return PERFLAB_OK;
}

static void destroy_waitset(perflab_waitset* set) {
  pthread_mutex_lock(&everything);
  while (set->count > 0) detach(set->readers[0]);
  pthread_mutex_unlock(&everything);
  pthread_cond_destroy(&set->changed);
  free(set->readers);
  free(set);
}

static perflab_status attach(perflab_waitset* set, perflab_reader* reader, uint64_t cookie, perflab_error* error) {
  Endpoint* own = &reader->endpoint;
  if (own->waitset != NULL) return fail(error, PERFLAB_FAILED, "smallest_c: the reader is attached to a wait-set already");
  Endpoint** readers = realloc(set->readers, (set->count + 1) * sizeof *readers);
  if (readers == NULL) return fail(error, PERFLAB_FAILED, "smallest_c: no memory");
  pthread_mutex_lock(&everything);
  set->readers = readers;
  set->readers[set->count++] = own;
  own->waitset = set;
  own->cookie = cookie;
  pthread_mutex_unlock(&everything);
  return PERFLAB_OK;
}

/* Start, circularly, with the first that did not fit last time. */
static size_t collect(perflab_waitset* set, uint64_t* ready, size_t capacity) {
  size_t count = 0;
  for (size_t i = 0; i < set->count; ++i) {
    const size_t at = (set->first + i) % set->count;
    if (set->readers[at]->waiting == 0) continue;
    if (count == capacity) {
      set->first = at;
      return count;
    }
    ready[count++] = set->readers[at]->cookie;
  }
  set->first = 0;
  return count;
}

static perflab_status wait_for(perflab_waitset* set, int64_t timeout_ns, uint64_t* ready, size_t capacity, size_t* count,
                               perflab_error* error) {
  (void)error;
  struct timespec until;
  clock_gettime(CLOCK_MONOTONIC, &until);
  const int64_t second = 1000000000;
  if (timeout_ns < INT64_MAX / 2) {
    const int64_t ns = until.tv_nsec + timeout_ns;
    until.tv_sec += ns / second;
    until.tv_nsec = ns % second;
  } else {
    until.tv_sec += INT32_MAX; /* no limit */
  }
  perflab_status status = PERFLAB_OK;
  pthread_mutex_lock(&everything);
  while ((*count = collect(set, ready, capacity)) == 0 && !set->woken) {
    if (timeout_ns > 0 && pthread_cond_timedwait(&set->changed, &everything, &until) == 0) continue;
    status = PERFLAB_TIMEOUT;
    break;
  }
  if (status == PERFLAB_OK) set->woken = false;
  pthread_mutex_unlock(&everything);
  return status;
}

static void wake(perflab_waitset* set) {
  pthread_mutex_lock(&everything);
  set->woken = true;
  pthread_cond_signal(&set->changed);
  pthread_mutex_unlock(&everything);
}

/* ---- step 1 again: a participant, and the table ---- */

static perflab_status open_participant(const perflab_host* host, const perflab_participant_settings* settings,
                                       perflab_participant** participant, perflab_error* error) {
  if (settings->domain > 232)
    return fail(error, PERFLAB_BAD_OPTION, "smallest_c: domain %u; right would be 0 to 232", settings->domain);
  if (strcmp(settings->network, "lo") != 0) {
    return fail(error, PERFLAB_UNSUPPORTED, "smallest_c: network '%s'; it leaves no process, right would be 'lo'",
                settings->network);
  }
  if (settings->option_count > 0)
    return fail(error, PERFLAB_BAD_OPTION, "smallest_c: unknown option %s; known are none", settings->options[0].key);
  perflab_participant* own = calloc(1, sizeof *own);
  if (own == NULL) return fail(error, PERFLAB_FAILED, "smallest_c: no memory");
  *own = (perflab_participant){*host, settings->domain, settings->ignore_local_endpoints};
  *participant = own;
  return PERFLAB_OK;
}
static void close_participant(perflab_participant* participant) { free(participant); }
static const char* describe(perflab_participant* participant) {
  (void)participant;
  return "{\"transport\": \"queues\"}";
}

static const perflab_middleware middleware = {.abi = PERFLAB_MIDDLEWARE_ABI,
                                              .name = "smallest_c",
                                              .summary = "queues within one process: an example",
                                              .version = version,
                                              .capabilities = capabilities,
                                              .policies = policies,
                                              .open = open_participant,
                                              .close = close_participant,
                                              .describe = describe,
                                              .create_writer = create_writer,
                                              .destroy_writer = destroy_writer,
                                              .create_reader = create_reader,
                                              .destroy_reader = destroy_reader,
                                              .writer_identity = writer_identity,
                                              .reader_identity = reader_identity,
                                              .matched_readers = matched_readers,
                                              .matched_writers = matched_writers,
                                              .lifespan = lifespan,
                                              .write = write_message,
                                              .take = take,
                                              .return_sample = return_sample,
                                              .create_waitset = create_waitset,
                                              .destroy_waitset = destroy_waitset,
                                              .attach = attach,
                                              .wait = wait_for,
                                              .wake = wake};

const perflab_middleware* perflab_middleware_plugin(void);
const perflab_middleware* perflab_middleware_plugin(void) { return &middleware; }
