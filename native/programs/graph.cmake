# perflab-graph: turns user files into resolved graphs. The published schema is embedded, so that the program
# and the file used by editors cannot differ.
find_package(CLI11 REQUIRED)
find_package(fmt REQUIRED)

set(perflab_schema_file ${PROJECT_SOURCE_DIR}/docs/schema/graph.schema.json)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${perflab_schema_file})
file(READ ${perflab_schema_file} PERFLAB_GRAPH_SCHEMA)
configure_file(${CMAKE_CURRENT_LIST_DIR}/graph_schema.h.in ${CMAKE_CURRENT_BINARY_DIR}/generated/graph_schema.h @ONLY)

add_executable(perflab-graph ${CMAKE_CURRENT_LIST_DIR}/graph_main.cpp)
target_include_directories(perflab-graph PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/generated)
target_link_libraries(perflab-graph PRIVATE perflab_graph_parser CLI11::CLI11 fmt::fmt)
set_target_properties(perflab-graph PROPERTIES RUNTIME_OUTPUT_DIRECTORY ${PERFLAB_OUTPUT})
install(TARGETS perflab-graph RUNTIME DESTINATION ${PERFLAB_INSTALL})
