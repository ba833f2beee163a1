# kiln_embed_wgsl(<target> <files...>): makes shaders part of a target.
#
# For matmul.wgsl the target's own sources may #include "matmul_wgsl.hpp", which defines the constant
# `matmul_wgsl` of type kiln::SourceText. It is made anew when the shader changes.

function(kiln_embed_wgsl target)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/generated/${target})
  set(script ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/KilnEmbedFile.cmake)
  file(MAKE_DIRECTORY ${folder})
  foreach(file IN LISTS ARGN)
    get_filename_component(file ${file} ABSOLUTE)
    get_filename_component(name ${file} NAME_WLE)
    if(NOT name MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
      message(FATAL_ERROR "kiln_embed_wgsl: ${name} must be a C++ identifier (${file})")
    endif()
    set(header ${folder}/${name}_wgsl.hpp)
    get_source_file_property(other ${header} KILN_EMBEDDED_FROM)
    if(other)
      message(FATAL_ERROR "kiln_embed_wgsl: two shaders of ${target} have one name: ${other} and ${file}")
    endif()
    set_source_files_properties(${header} PROPERTIES KILN_EMBEDDED_FROM ${file})
    add_custom_command(
      OUTPUT ${header}
      COMMAND ${CMAKE_COMMAND} -D INPUT=${file} -D OUTPUT=${header} -P ${script}
      DEPENDS ${file} ${script}
      COMMENT "Embedding ${name}.wgsl"
      VERBATIM)
    target_sources(${target} PRIVATE ${header})
  endforeach()
  target_include_directories(${target} PRIVATE ${folder})
endfunction()
