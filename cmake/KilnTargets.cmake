# How kiln's libraries, programs and tests are made.

set(KILN_SANITIZE "" CACHE STRING "Sanitizers to build with, for example address,undefined")

# What every target of this repository is compiled with; users of kiln see none of it.
function(kiln_compile_options target)
  target_compile_features(${target} PRIVATE cxx_std_20)
  set_target_properties(${target} PROPERTIES CXX_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE
    -Wall -Wextra -Wpedantic -Wshadow -Wconversion -Wsign-conversion -Wnon-virtual-dtor -Wold-style-cast
    -Woverloaded-virtual -Wcast-align -Wunused -Wnull-dereference -Wextra-semi -Wimplicit-fallthrough
    -Wno-missing-field-initializers  # designated initialisers leave fields to their defaults
    $<$<CXX_COMPILER_ID:GNU>:-Wduplicated-cond -Wduplicated-branches -Wlogical-op -Wno-null-dereference>
    $<$<AND:$<CXX_COMPILER_ID:GNU>,$<VERSION_LESS:$<CXX_COMPILER_VERSION>,13>>:-Wno-restrict>)  # GCC PR 105651
  if(CMAKE_UNITY_BUILD)  # joined sources see each other's names; GCC can still look at locals alone
    target_compile_options(${target} PRIVATE -Wno-shadow $<$<CXX_COMPILER_ID:GNU>:-Wshadow=local>)
  endif()
  if(KILN_WARNINGS_AS_ERRORS)
    # What GCC's optimiser guesses about bounds stays a warning: it is often wrong about checked code.
    target_compile_options(${target} PRIVATE -Werror
      $<$<CXX_COMPILER_ID:GNU>:-Wno-error=array-bounds -Wno-error=stringop-overflow -Wno-error=stringop-overread>)
  endif()
  if(KILN_SANITIZE)
    target_compile_options(${target} PRIVATE
      -fsanitize=${KILN_SANITIZE} -fno-sanitize-recover=all -fno-omit-frame-pointer
      $<$<CXX_COMPILER_ID:GNU>:-Wno-maybe-uninitialized>)  # false alarms in instrumented code
    target_link_options(${target} PRIVATE -fsanitize=${KILN_SANITIZE})
  endif()
endfunction()

if(KILN_SANITIZE)
  add_library(kiln_sanitizers OBJECT ${PROJECT_SOURCE_DIR}/cmake/sanitizers.cpp)
  kiln_compile_options(kiln_sanitizers)
endif()

if(KILN_BUILD_TESTS)
  add_library(kiln_strict_fusion OBJECT ${PROJECT_SOURCE_DIR}/cmake/strict_fusion.cpp)
  kiln_compile_options(kiln_strict_fusion)
endif()

# kiln_program(<name> <sources...> LINK <libraries...>)
function(kiln_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "" "" "LINK")
  add_executable(${name} ${arg_UNPARSED_ARGUMENTS})
  if(KILN_SANITIZE)
    target_link_libraries(${name} PRIVATE kiln_sanitizers)
  endif()
  kiln_compile_options(${name})
  target_include_directories(${name} PRIVATE ${PROJECT_SOURCE_DIR})
  target_link_libraries(${name} PRIVATE ${arg_LINK} fmt::fmt)
  set_target_properties(${name} PROPERTIES
    UNITY_BUILD OFF  # files of one program have local helpers of one name
    BUILD_RPATH_USE_ORIGIN ON  # bin/ works wherever lib/ lies beside it
    INSTALL_RPATH "$ORIGIN/../${CMAKE_INSTALL_LIBDIR}")
endfunction()

# One ctest entry: kiln_add_test(<name> COMMAND ... [LABELS ...] [ENVIRONMENT ...] [GPU] [LONG])
function(kiln_add_test name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "GPU;LONG" "" "COMMAND;LABELS;ENVIRONMENT")
  add_test(NAME ${name} COMMAND ${arg_COMMAND} WORKING_DIRECTORY ${PROJECT_SOURCE_DIR})
  set_tests_properties(${name} PROPERTIES
    TIMEOUT 1200
    LABELS "${arg_LABELS}"
    ENVIRONMENT "NODEVICE_SELECT=1;${arg_ENVIRONMENT}")  # or a Mesa layer looks for a display and complains on stderr
  if(arg_GPU)
    # A software adapter uses every core already: run such tests one after the other. All others together take less time
    # than these, so that one of these always comes first, and then the longest of the others.
    set_tests_properties(${name} PROPERTIES RESOURCE_LOCK gpu COST 2)
  elseif(arg_LONG)
    set_tests_properties(${name} PROPERTIES COST 1)
  endif()
endfunction()

# kiln_test_program(<name> <sources...> LINK <libraries...> [GPU] [CONFORMANCE])
# CONFORMANCE: what it tests holds of every runtime, lazy and eager: it is run in all four ways.
function(kiln_test_program name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "GPU;CONFORMANCE" "" "LINK")
  set(sources ${arg_UNPARSED_ARGUMENTS})
  if(KILN_JOIN_TESTS)
    kiln_join_tests(${name} sources)
  endif()
  kiln_program(${name} ${sources} LINK ${arg_LINK} kiln_strict_fusion GTest::gtest_main GTest::gmock rapidcheck
    nlohmann_json::nlohmann_json)
  if(KILN_SANITIZE OR KILN_JOIN_TESTS)
    # A test's own code takes longer to optimise than to run. The library keeps the options of the configuration.
    target_compile_options(${name} PRIVATE -O0)
  endif()
  if(KILN_PRECOMPILE_TESTS)
    # One precompiled header serves all test programs: they are compiled with the options of the first.
    get_property(precompiled GLOBAL PROPERTY KILN_PRECOMPILED)
    if(precompiled)
      target_precompile_headers(${name} REUSE_FROM ${precompiled})
    else()
      target_precompile_headers(${name} PRIVATE <gmock/gmock.h> <gtest/gtest.h> <rapidcheck/gtest.h>
        <algorithm> <cmath> <filesystem> <fstream> <future> <map> <random> <span> <thread> <unordered_map>)
      set_property(GLOBAL PROPERTY KILN_PRECOMPILED ${name})
    endif()
  endif()
  if(arg_GPU)
    set(gpu GPU)
  endif()
  kiln_add_test(${name} COMMAND ${name} LABELS program ENVIRONMENT KILN_DEVICE=webgpu ${gpu})
  if(arg_CONFORMANCE)
    kiln_add_test(${name}_eager COMMAND ${name} LABELS eager ENVIRONMENT KILN_DEVICE=webgpu KILN_EAGER=1 ${gpu})
    # Suites named Wgsl* are about kernels that the host does not take.
    set(host KILN_DEVICE=cpu GTEST_FILTER=-Wgsl*)
    kiln_add_test(${name}_cpu COMMAND ${name} LABELS cpu ENVIRONMENT ${host})
    kiln_add_test(${name}_cpu_eager COMMAND ${name} LABELS eager ENVIRONMENT ${host} KILN_EAGER=1)
  endif()
endfunction()

# Replaces the sources of a test program, in the list of the given name, by files of up to eight of them each.
function(kiln_join_tests program list)
  set(result "")
  set(left "")
  foreach(source IN LISTS ${list})
    get_source_file_property(alone ${source} SKIP_UNITY_BUILD_INCLUSION)
    if(alone)
      list(APPEND result ${source})
    else()
      list(APPEND left ${source})
    endif()
  endforeach()
  set(number 0)
  while(left)
    list(SUBLIST left 0 8 sources)
    list(REMOVE_ITEM left ${sources})
    list(LENGTH sources count)
    if(count EQUAL 1)
      list(APPEND result ${sources})
      break()
    endif()
    set(joined ${CMAKE_CURRENT_BINARY_DIR}/joined/${program}_${number}.cpp)
    add_custom_command(
      OUTPUT ${joined}
      COMMAND ${Python3_EXECUTABLE} ${PROJECT_SOURCE_DIR}/tools/join_tests.py ${joined} ${sources}
      DEPENDS ${PROJECT_SOURCE_DIR}/tools/join_tests.py ${sources}
      COMMENT "Joining the tests of ${program}"
      VERBATIM)
    list(APPEND result ${joined})
    math(EXPR number "${number} + 1")
  endwhile()
  file(MAKE_DIRECTORY ${CMAKE_CURRENT_BINARY_DIR}/joined)
  set(${list} ${result} PARENT_SCOPE)
endfunction()

# kiln_stage(<name> [GPU] [CONFORMANCE] [LINK <libraries...>]): the library kiln_<name> from all of kiln/<name>/, on top of the
# stage declared before it, and its tests kiln_<name>_tests (in `ops`, one program a family).
function(kiln_stage name)
  cmake_parse_arguments(PARSE_ARGV 1 arg "GPU;CONFORMANCE" "" "LINK")
  set(folder ${PROJECT_SOURCE_DIR}/kiln/${name})
  file(GLOB_RECURSE sources CONFIGURE_DEPENDS ${folder}/*.cpp)
  file(GLOB_RECURSE shaders CONFIGURE_DEPENDS ${folder}/*.wgsl)
  set(tests ${sources})
  list(FILTER sources EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")

  set(target kiln_${name})
  if(sources)
    set(scope PUBLIC)
    add_library(${target} STATIC ${sources})
    kiln_compile_options(${target})
    set_target_properties(${target} PROPERTIES POSITION_INDEPENDENT_CODE ON)
    target_link_libraries(${target} PRIVATE fmt::fmt Threads::Threads ${arg_LINK})
    if(shaders)
      kiln_embed_wgsl(${target} ${shaders})
    endif()
  else()
    set(scope INTERFACE)
    add_library(${target} INTERFACE)
  endif()
  add_library(kiln::${name} ALIAS ${target})
  set_target_properties(${target} PROPERTIES EXPORT_NAME ${name})
  target_compile_features(${target} ${scope} cxx_std_20)
  target_include_directories(${target} ${scope}
    $<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}> $<INSTALL_INTERFACE:${CMAKE_INSTALL_INCLUDEDIR}>)

  get_property(stages GLOBAL PROPERTY KILN_STAGES)
  if(stages)
    list(GET stages -1 below)
    target_link_libraries(${target} ${scope} kiln_${below})
  endif()
  set_property(GLOBAL APPEND PROPERTY KILN_STAGES ${name})

  if(KILN_BUILD_TESTS)
    set(options "")
    foreach(option IN ITEMS GPU CONFORMANCE)
      if(arg_${option})
        list(APPEND options ${option})
      endif()
    endforeach()
    kiln_stage_tests(${name} "${tests}" LINK ${target} ${arg_LINK} ${options})
  endif()
endfunction()

function(kiln_stage_tests stage tests)
  file(GLOB_RECURSE modules CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/kiln/${stage}/*.comp)  # only tests have any
  set(programs "")
  foreach(test IN LISTS tests)
    set(program kiln_${stage}_tests)
    if(stage STREQUAL "ops" AND test MATCHES "/kiln/ops/([^/]+)/")
      set(program kiln_ops_${CMAKE_MATCH_1}_tests)
    endif()
    list(APPEND programs ${program})
    list(APPEND sources_${program} ${test})
  endforeach()
  list(REMOVE_DUPLICATES programs)
  foreach(program IN LISTS programs)
    kiln_test_program(${program} ${sources_${program}} ${ARGN})
    if(modules)
      kiln_embed_spirv(${program} ${modules})
    endif()
    # Tests may look at the stage's embedded shaders.
    target_include_directories(${program} PRIVATE ${CMAKE_CURRENT_BINARY_DIR}/generated/kiln_${stage})
  endforeach()
endfunction()
