# find_package(perflab): an installed perflab, for programs (docs/programs.md). Defines perflab_program().
include(CMakeFindDependencyMacro)
find_dependency(nlohmann_json)
get_filename_component(perflab_prefix "${CMAKE_CURRENT_LIST_DIR}/../../.." ABSOLUTE)

add_library(perflab::program SHARED IMPORTED)
set_target_properties(
  perflab::program
  PROPERTIES IMPORTED_LOCATION ${perflab_prefix}/lib/perflab/libperflab-program.so
             IMPORTED_NO_SONAME ON
             INTERFACE_INCLUDE_DIRECTORIES ${perflab_prefix}/include/perflab
             INTERFACE_LINK_LIBRARIES nlohmann_json::nlohmann_json)
add_executable(perflab::messages IMPORTED)
set_target_properties(perflab::messages PROPERTIES IMPORTED_LOCATION ${perflab_prefix}/lib/perflab/perflab-messages)
include(${CMAKE_CURRENT_LIST_DIR}/perflab_program.cmake)
