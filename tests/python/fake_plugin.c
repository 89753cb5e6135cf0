/* The head of a middleware plug-in, enough to be asked what it is. Compiled by conftest.py. */
#include "middleware/middleware.h"

static const char* version(void) { return "0.0.1"; }

static perflab_capabilities capabilities(void) {
  perflab_capabilities all = {FAKE_ACROSS_PROCESSES, true, true, true, true, false, false};
  return all;
}

static const perflab_policy* policies(void) {
  static const perflab_policy all[] = {
      {"history", PERFLAB_SUPPORTED, NULL}, {"latency_budget", PERFLAB_HINT, "a note"}, {NULL, PERFLAB_REFUSED, NULL}};
  return all;
}

const perflab_middleware* perflab_middleware_plugin(void) {
  static perflab_middleware plugin;
  plugin.abi = FAKE_ABI;
  plugin.name = FAKE_NAME;
  plugin.summary = "a test double";
  plugin.version = version;
  plugin.capabilities = capabilities;
  plugin.policies = policies;
  return &plugin;
}
