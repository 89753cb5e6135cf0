/* Plug-ins that must be refused, one per value of BAD_PLUGIN: 0 no entry, 1 another version. */
#include "middleware/middleware.h"

#if BAD_PLUGIN > 0
const perflab_middleware* perflab_middleware_plugin(void);

const perflab_middleware* perflab_middleware_plugin(void) {
  static perflab_middleware middleware = {
      .abi = 999,
  };
  return &middleware;
}
#else
int not_a_plugin(void);
int not_a_plugin(void) { return 0; }
#endif
