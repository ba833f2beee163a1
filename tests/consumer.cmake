# Builds and runs tests/<WAY>/ as somebody else's project would. WAY: install or add_subdirectory.

function(step)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "failed: ${ARGN}")
  endif()
endfunction()

set(work ${BUILD}/consumer/${WAY})
file(REMOVE_RECURSE ${work}/prefix ${work}/moved ${work}/build)

if(WAY STREQUAL "install")
  step(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/prefix)
  file(RENAME ${work}/prefix ${work}/moved)  # an installation must not know where it was made
  set(where -D CMAKE_PREFIX_PATH=${work}/moved)
else()
  set(where -D KILN_SOURCE=${SOURCE} -D KILN_WGPU_NATIVE_DIR=${WGPU})
endif()

# No build type: unoptimised and without debug information is the quickest to build.
step(${CMAKE_COMMAND} -S ${SOURCE}/tests/${WAY} -B ${work}/build -G ${GENERATOR}
  -D CMAKE_CXX_COMPILER=${COMPILER} -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER} ${where})
step(${CMAKE_COMMAND} --build ${work}/build)
step(${work}/build/consumer)
