# perflab_program(NAME SOURCES a.cpp... [MESSAGES package/msg/Name package/srv/Name package/action/Name...]
#                 [MESSAGE_PATH folder...])
#
# An executable that is a program of perflab (docs/programs.md). Each of its messages, and all that they are made of, is there
# as a header "messages/package/msg/name.h"; `MESSAGE_PATH` are the folders of those that perflab does not bring.
function(perflab_program name)
  cmake_parse_arguments(PARSE_ARGV 1 program "" "" "SOURCES;MESSAGES;MESSAGE_PATH")
  if(program_UNPARSED_ARGUMENTS OR NOT program_SOURCES)
    message(FATAL_ERROR "perflab_program(${name}): right would be SOURCES, and then MESSAGES and MESSAGE_PATH")
  endif()
  add_executable(${name} ${program_SOURCES})
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_link_libraries(${name} PRIVATE perflab::program)
  if(NOT program_MESSAGES)
    return()
  endif()
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/${name}_messages)
  set(path "")
  set(files "")
  foreach(one IN LISTS program_MESSAGE_PATH)
    get_filename_component(one ${one} ABSOLUTE)
    list(APPEND path --message-path ${one})
    file(GLOB_RECURSE found CONFIGURE_DEPENDS ${one}/*.msg ${one}/*.srv ${one}/*.action)
    list(APPEND files ${found})
  endforeach()
  # What is written is known once it is: a header that stays as it was is not compiled again.
  add_custom_command(
    OUTPUT ${folder}/written
    COMMAND perflab::messages --output ${folder} ${path} ${program_MESSAGES}
    COMMAND ${CMAKE_COMMAND} -E touch ${folder}/written
    DEPENDS perflab::messages ${files}
    COMMENT "Writing the messages of ${name}"
    VERBATIM)
  add_custom_target(${name}_messages DEPENDS ${folder}/written)
  add_dependencies(${name} ${name}_messages)
  target_include_directories(${name} PRIVATE ${folder})
endfunction()
