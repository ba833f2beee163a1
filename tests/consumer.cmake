# Builds small examples and tests/consumer as other people's projects, in the two ways that those reach kiln, and runs them.
# WAY: install or add_subdirectory.

function(step)
  execute_process(COMMAND ${ARGN} COMMAND_ECHO STDOUT RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "failed: ${ARGN}")
  endif()
endfunction()

set(work ${BUILD}/consumer/${WAY})
file(REMOVE_RECURSE ${work})
file(COPY ${SOURCE}/examples/hello_op ${SOURCE}/examples/quickstart DESTINATION ${work})  # nothing beside them is needed

if(WAY STREQUAL "install")
  step(${CMAKE_COMMAND} --install ${BUILD} --prefix ${work}/prefix)
  file(RENAME ${work}/prefix ${work}/moved)  # an installation must not know where it was made
  step(${PYTHON} ${SOURCE}/tests/public_headers.py --include ${work}/moved/include --source ${SOURCE}
    --compiler ${COMPILER})
  set(where -D CMAKE_PREFIX_PATH=${work}/moved -D CMAKE_CXX_COMPILER_LAUNCHER=${LAUNCHER})
else()
  # What a user's build compiles exactly as BUILD did is taken from there: to compile kiln once more takes minutes. The
  # sources are joined as there. Everything else is the user's own: the configuration, the generated headers, the archives.
  set(where -D KILN_SOURCE=${SOURCE} -D KILN_WGPU_NATIVE_DIR=${WGPU}
    -D CMAKE_UNITY_BUILD=${UNITY} -D CMAKE_UNITY_BUILD_BATCH_SIZE=${BATCH})
  set(ENV{CMAKE_CXX_COMPILER_LAUNCHER}
    "${PYTHON};${SOURCE}/tests/add_subdirectory/built_objects.py;${BUILD};${LAUNCHER};--")
endif()

# No build type: unoptimised and without debug information is the quickest to build.
step(${CMAKE_COMMAND} -S ${SOURCE}/tests/${WAY} -B ${work}/build -G ${GENERATOR}
  -D WORK=${work} -D CMAKE_RUNTIME_OUTPUT_DIRECTORY=${work}/bin
  -D CMAKE_CXX_COMPILER=${COMPILER} ${where})
step(${CMAKE_COMMAND} --build ${work}/build)
step(${work}/bin/consumer)
step(${work}/bin/hello_op)
