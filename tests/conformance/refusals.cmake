# The requests that each plug-in refuses in every suite here, by name. Any other refusal is a failure, and each refusal has
# a message of one line (middleware/fixture.h). `reliability`: reliable delivery. `size`: messages that the plug-in's buffers
# cannot hold on this machine. `writer_limits`: resource_limits of writers. `latency_budget_match`: not matching endpoints
# whose latency budgets are incompatible in DDS.
set(perflab_refused_by_cyclonedds loan writer_limits)
set(perflab_refused_by_fastdds loan latency_budget_match) # the first without data_sharing
set(perflab_refused_by_shm filters keys loan)
set(perflab_refused_by_direct deadline filters keys liveliness)
set(perflab_refused_by_udp filters keys loan reliability durability deadline lifespan liveliness size)
set(perflab_refused_by_zenoh filters keys durability deadline lifespan liveliness)
set(perflab_refused_by_smallest_c filters keys loan reliability durability deadline lifespan liveliness)
set(perflab_refused_by_smallest_cpp filters keys loan reliability durability deadline lifespan liveliness)
set(perflab_refused_by_smallest_rust filters keys loan durability deadline lifespan liveliness)
set(perflab_refused_by_iceoryx2 filters keys deadline lifespan liveliness)

# perflab_may_refuse(VARIABLE TARGET [BUT what...]): the arguments by which a suite knows what the plug-in of the target
# refuses, without those.
function(perflab_may_refuse variable target)
  cmake_parse_arguments(R "" "" "BUT" ${ARGN})
  get_target_property(name ${target} OUTPUT_NAME)
  set(arguments)
  foreach(what IN LISTS perflab_refused_by_${name})
    if(NOT what IN_LIST R_BUT)
      list(APPEND arguments --may-refuse ${what})
    endif()
  endforeach()
  set(${variable} ${arguments} PARENT_SCOPE)
endfunction()
