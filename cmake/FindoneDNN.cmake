# Defines oneDNN::oneDNN: the library that multiplies matrices in the cpu runtime. -DoneDNN_ROOT=<prefix> names an
# installation outside the usual places.
#
# The package's own dnnl-config.cmake is not used: it asks for OpenCL's headers, of which nothing here needs any.
# kiln's installation carries this file for its users.

include(FindPackageHandleStandardArgs)
find_path(oneDNN_INCLUDE_DIR NAMES oneapi/dnnl/dnnl.h)
find_library(oneDNN_LIBRARY NAMES dnnl)
set(oneDNN_OPENMP_LIBRARY gomp CACHE STRING "The OpenMP library that oneDNN was built with, a name or a path")
mark_as_advanced(oneDNN_INCLUDE_DIR oneDNN_LIBRARY oneDNN_OPENMP_LIBRARY)
if(EXISTS "${oneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h")
  file(STRINGS "${oneDNN_INCLUDE_DIR}/oneapi/dnnl/dnnl_version.h" lines REGEX "DNNL_VERSION_(MAJOR|MINOR|PATCH)[ \t]+[0-9]+")
  string(REGEX MATCHALL "[0-9]+" oneDNN_VERSION "${lines}")
  list(JOIN oneDNN_VERSION "." oneDNN_VERSION)
endif()
find_package_handle_standard_args(oneDNN VERSION_VAR oneDNN_VERSION
  REQUIRED_VARS oneDNN_LIBRARY oneDNN_INCLUDE_DIR
  REASON_FAILURE_MESSAGE "(apt-get install libdnnl-dev, or -DoneDNN_ROOT=<prefix>)")

if(oneDNN_FOUND AND NOT TARGET oneDNN::oneDNN)
  add_library(oneDNN::oneDNN UNKNOWN IMPORTED)
  set_target_properties(oneDNN::oneDNN PROPERTIES
    IMPORTED_LOCATION "${oneDNN_LIBRARY}"
    INTERFACE_INCLUDE_DIRECTORIES "${oneDNN_INCLUDE_DIR}"
    INTERFACE_LINK_LIBRARIES ${oneDNN_OPENMP_LIBRARY})  # it sets how many threads oneDNN uses
endif()
