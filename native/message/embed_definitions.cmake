# Writes interface files as the elements of an array of InterfaceText, one raw string each, which costs the compiler
# next to nothing.
#
#   cmake -DLIST=FILE -DOUTPUT=FILE -P embed_definitions.cmake
#
# LIST has a path .../package/kind/Name.kind on each line.
file(STRINGS ${LIST} paths)
set(elements "")
foreach(path IN LISTS paths)
  if(NOT path MATCHES "/([a-z0-9_]+)/(msg|srv|action)/([A-Za-z0-9]+)\\.(msg|srv|action)$" OR
     NOT CMAKE_MATCH_2 STREQUAL CMAKE_MATCH_4)
    message(FATAL_ERROR "${path} is no interface file: package/msg/Name.msg, package/srv/Name.srv or \
package/action/Name.action is")
  endif()
  set(names "\"${CMAKE_MATCH_1}\"sv, \"${CMAKE_MATCH_2}\"sv, \"${CMAKE_MATCH_3}\"sv")
  file(READ ${path} text)
  string(FIND "${text}" ")text\"" end)
  if(NOT end EQUAL -1)
    message(FATAL_ERROR "${path} has )text\" in it, which ends a string of the generated file")
  endif()
  string(APPEND elements "{${names}, R\"text(${text})text\"sv},\n")
endforeach()
file(WRITE ${OUTPUT} "${elements}")
