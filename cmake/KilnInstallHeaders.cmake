# Run by `cmake --install`: lays out the public headers, which are those below and what they include.
# SOURCE is the repository, INCLUDE_DIR where headers are installed.

cmake_minimum_required(VERSION 3.25)

set(left kiln/kiln.hpp kiln/fusion/stream.hpp)  # the second for operations that queue by hand
set(public "")
while(left)
  list(POP_FRONT left header)
  if(header IN_LIST public)
    continue()
  endif()
  list(APPEND public ${header})
  file(STRINGS ${SOURCE}/${header} includes REGEX "^#include \"kiln/")
  foreach(include IN LISTS includes)
    string(REGEX REPLACE "^#include \"([^\"]+)\".*" "\\1" include "${include}")
    list(APPEND left ${include})
  endforeach()
endwhile()

foreach(header IN LISTS public)
  cmake_path(GET header PARENT_PATH folder)
  file(INSTALL ${SOURCE}/${header} DESTINATION ${INCLUDE_DIR}/${folder})
endforeach()
