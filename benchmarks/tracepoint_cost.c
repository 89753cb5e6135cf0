/* What one event of perflab's runtime costs the thread that emits it, beside a bare lttng_ust_tracepoint()
 * with the same fields: tracepoint_cost LIBRARY (that of the tracepoints). Whether the events are recorded is
 * decided by the session that there is; tracepoint_cost.py makes one.
 *
 * Prints one JSON object: medians over batches, ns per event, of perflab's (through the pointer, as the
 * runtime calls it), of the bare one, and of the look at a null pointer. The three take turns, batch by
 * batch. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tracepoint_cost_events.h"
#include "tracing/ros/tracepoints.h"

enum { kWarming = 20, kBatches = 301, kEvents = 5000 };

/* The compiler does not know which of them is null. */
static const perflab_ros2_tracepoints* volatile loaded;
static const perflab_ros2_tracepoints* volatile not_loaded;

static double now_ns(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec * 1e9 + (double)now.tv_nsec;
}

static int by_value(const void* a, const void* b) {
  const double x = *(const double*)a;
  const double y = *(const double*)b;
  return (x > y) - (x < y);
}

static double median(double* values) {
  qsort(values, kBatches, sizeof *values, by_value);
  return values[kBatches / 2];
}

static const char kMessage[] = "any address";

/* Two loops for each kind of event: perflab's and the bare one. `message` stands for whatever address there
 * is. */
#define KIND(event, own_statement, bare_statement)                                 \
  static void own_##event(const perflab_ros2_tracepoints* const volatile* where) { \
    const void* const message = kMessage;                                          \
    for (int64_t i = 0; i < kEvents; ++i) {                                        \
      const perflab_ros2_tracepoints* const trace = *where;                        \
      if (trace != NULL) own_statement;                                            \
      (void)message;                                                               \
    }                                                                              \
  }                                                                                \
  static void bare_##event(void) {                                                 \
    const void* const message = kMessage;                                          \
    for (int64_t i = 0; i < kEvents; ++i) {                                        \
      bare_statement;                                                              \
      (void)message;                                                               \
    }                                                                              \
  }

KIND(get_next_ready, trace->rclcpp_executor_get_next_ready(), lttng_ust_tracepoint(tracepoint_cost, bytes_0))
KIND(callback_end, trace->callback_end(message), lttng_ust_tracepoint(tracepoint_cost, bytes_8, message))
KIND(callback_start, trace->callback_start(message, 0),
     lttng_ust_tracepoint(tracepoint_cost, bytes_12, message, 0))
KIND(rmw_publish, trace->rmw_publish(message, message, i),
     lttng_ust_tracepoint(tracepoint_cost, bytes_24, message, message, i))
KIND(rmw_take, trace->rmw_take(message, message, i, 1),
     lttng_ust_tracepoint(tracepoint_cost, bytes_28, message, message, i, 1))

static const struct {
  const char* name;
  int bytes;
  void (*own)(const perflab_ros2_tracepoints* const volatile*);
  void (*bare)(void);
} kKinds[] = {{"rclcpp_executor_get_next_ready", 0, own_get_next_ready, bare_get_next_ready},
              {"callback_end", 8, own_callback_end, bare_callback_end},
              {"callback_start", 12, own_callback_start, bare_callback_start},
              {"rmw_publish", 24, own_rmw_publish, bare_rmw_publish},
              {"rmw_take", 28, own_rmw_take, bare_rmw_take}};

int main(int argc, char** argv) {
  static double own[kBatches], bare[kBatches], look[kBatches];
  void* const library = argc == 2 ? dlopen(argv[1], RTLD_NOW) : NULL;
  perflab_ros2_tracepoints_entry entry = NULL;
  if (library != NULL) *(void**)&entry = dlsym(library, PERFLAB_ROS2_TRACEPOINTS_ENTRY_NAME);
  if (entry == NULL) {
    fprintf(stderr, "usage: tracepoint_cost LIBRARY; %s\n", argc == 2 ? dlerror() : "there is none");
    return 2;
  }
  loaded = entry();
  printf("{\"recorded\": %s, \"batches\": %d, \"events_per_batch\": %d, \"kinds\": [",
         loaded->recorded() ? "true" : "false", kBatches, kEvents);
  for (size_t kind = 0; kind < sizeof kKinds / sizeof kKinds[0]; ++kind) {
    for (int turn = -kWarming; turn < kBatches; ++turn) {
      const int batch = turn < 0 ? 0 : turn;
      const double begin = now_ns();
      kKinds[kind].own(&loaded);
      const double middle = now_ns();
      kKinds[kind].bare();
      const double late = now_ns();
      kKinds[kind].own(&not_loaded);
      const double end = now_ns();
      own[batch] = (middle - begin) / kEvents;
      bare[batch] = (late - middle) / kEvents;
      look[batch] = (end - late) / kEvents;
    }
    printf(
        "%s{\"event\": \"%s\", \"bytes\": %d, \"own_ns\": %.2f, \"bare_ns\": %.2f, \"not_loaded_ns\": %.2f}",
        kind == 0 ? "" : ", ", kKinds[kind].name, kKinds[kind].bytes, median(own), median(bare),
        median(look));
  }
  printf("]}\n");
  return 0;
}
