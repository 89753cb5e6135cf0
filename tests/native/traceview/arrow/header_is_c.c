// perflab_trace.h is read by C programs as well.
#include "perflab_trace.h"

const char* perflab_trace_facts_in_c(const perflab_trace* trace) { return perflab_trace_facts(trace); }
