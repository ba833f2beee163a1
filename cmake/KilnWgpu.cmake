# Defines the imported target kiln_wgpu_native: wgpu-native and its headers.
#
# They come from -DKILN_WGPU_NATIVE_DIR=<folder with webgpu.h, wgpu.h and the library>, or else from
# the pinned PyPI wheel that carries them. The wheel is fetched once, into a cache that all build
# folders share.

set(KILN_WGPU_NATIVE_DIR "" CACHE PATH "Folder with webgpu.h, wgpu.h and the wgpu-native library; empty: fetch it")
set(KILN_CACHE_DIR ${PROJECT_SOURCE_DIR}/.cache CACHE PATH "Where fetched dependencies are kept")
mark_as_advanced(KILN_CACHE_DIR)

function(kiln_fetch_wgpu_native folder)
  find_package(Python3 REQUIRED COMPONENTS Interpreter)
  set(download ${folder}.download)
  file(LOCK ${folder}.lock GUARD FUNCTION)
  if(EXISTS ${folder})
    return()
  endif()
  message(STATUS "Fetching wgpu-native (wheel wgpu 0.32.0, by pip)")
  file(REMOVE_RECURSE ${download})
  execute_process(
    COMMAND ${Python3_EXECUTABLE} -m pip download --quiet --disable-pip-version-check --no-deps --only-binary=:all:
            --require-hashes --dest ${download} --requirement ${PROJECT_SOURCE_DIR}/cmake/wgpu-requirements.txt
    RESULT_VARIABLE failed)
  if(failed)
    message(FATAL_ERROR "kiln: pip could not fetch wgpu-native. It needs python3 with pip (apt-get install python3-pip) "
                        "and a package index. Or give an installed one: -DKILN_WGPU_NATIVE_DIR=<folder>.")
  endif()
  file(GLOB wheel ${download}/*.whl)
  file(ARCHIVE_EXTRACT INPUT ${wheel} DESTINATION ${download})
  file(RENAME ${download}/wgpu/resources ${folder})  # last, so that the cache is either whole or absent
  file(REMOVE_RECURSE ${download})
endfunction()

if(WIN32)
  message(FATAL_ERROR "kiln: Windows is not supported yet: the wgpu-native wheel has no import library.")
endif()

if(KILN_WGPU_NATIVE_DIR)
  get_filename_component(wgpu_dir ${KILN_WGPU_NATIVE_DIR} ABSOLUTE BASE_DIR ${CMAKE_SOURCE_DIR})
else()
  set(wgpu_dir ${KILN_CACHE_DIR}/wgpu-0.32.0)
  if(NOT EXISTS ${wgpu_dir})
    kiln_fetch_wgpu_native(${wgpu_dir})
  endif()
endif()

find_file(wgpu_library NO_CACHE NO_DEFAULT_PATH PATHS ${wgpu_dir} ${wgpu_dir}/lib
  NAMES libwgpu_native${CMAKE_SHARED_LIBRARY_SUFFIX} libwgpu_native-release${CMAKE_SHARED_LIBRARY_SUFFIX})
find_path(wgpu_include NO_CACHE NO_DEFAULT_PATH PATHS ${wgpu_dir} ${wgpu_dir}/include ${wgpu_dir}/include/webgpu
  NAMES wgpu.h)
if(NOT wgpu_library OR NOT EXISTS ${wgpu_include}/webgpu.h)
  message(FATAL_ERROR "kiln: ${wgpu_dir} must hold webgpu.h, wgpu.h and libwgpu_native${CMAKE_SHARED_LIBRARY_SUFFIX}")
endif()

# A copy under the plain name in <build>/lib: bin/ and lib/ can then be carried to another machine together.
set(KILN_WGPU_LIBRARY ${PROJECT_BINARY_DIR}/lib/libwgpu_native${CMAKE_SHARED_LIBRARY_SUFFIX})
configure_file(${wgpu_library} ${KILN_WGPU_LIBRARY} COPYONLY)

add_library(kiln_wgpu_native SHARED IMPORTED GLOBAL)
set_target_properties(kiln_wgpu_native PROPERTIES
  IMPORTED_LOCATION ${KILN_WGPU_LIBRARY}
  IMPORTED_NO_SONAME ON  # it has none: linked by path, that path would be stored
  INTERFACE_INCLUDE_DIRECTORIES ${wgpu_include})
