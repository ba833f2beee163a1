# Makes shaders part of a target. The target's own sources may #include the header made of each, which is made anew when
# the shader changes:
#
# kiln_embed_wgsl(<target> <files...>): of matmul.wgsl, "matmul_wgsl.hpp" with the constant `matmul_wgsl` of type
# kiln::SourceText.
#
# kiln_embed_spirv(<target> <files...>): of the GLSL compute shader matmul.comp, compiled by glslangValidator,
# "matmul_spirv.hpp" with the constant `matmul_spirv` of type kiln::SourceWords. See KernelSource::spirv for what it binds.

function(kiln_embed_wgsl target)
  kiln_embed(kiln_embed_wgsl ${target} wgsl KilnEmbedFile.cmake "" ${ARGN})
endfunction()

function(kiln_embed_spirv target)
  find_program(KILN_GLSLANG glslangValidator DOC "Compiles GLSL to SPIR-V")
  if(NOT KILN_GLSLANG)
    message(FATAL_ERROR "kiln_embed_spirv: no glslangValidator, which compiles GLSL to SPIR-V, was found. Install it "
                        "(apt-get install glslang-tools), or say where it is: -DKILN_GLSLANG=<program>.")
  endif()
  kiln_embed(kiln_embed_spirv ${target} spirv KilnEmbedSpirv.cmake ${KILN_GLSLANG} ${ARGN})
endfunction()

# For the two above: `script` makes the header <name>_<language>.hpp.
function(kiln_embed caller target language script compiler)
  set(folder ${CMAKE_CURRENT_BINARY_DIR}/generated/${target})
  set(script ${CMAKE_CURRENT_FUNCTION_LIST_DIR}/${script})
  file(MAKE_DIRECTORY ${folder})
  foreach(file IN LISTS ARGN)
    get_filename_component(file ${file} ABSOLUTE)
    get_filename_component(name ${file} NAME_WLE)
    get_filename_component(shader ${file} NAME)
    if(NOT name MATCHES "^[A-Za-z_][A-Za-z0-9_]*$")
      message(FATAL_ERROR "${caller}: ${name} must be a C++ identifier (${file})")
    endif()
    set(header ${folder}/${name}_${language}.hpp)
    get_source_file_property(other ${header} KILN_EMBEDDED_FROM)
    if(other)
      message(FATAL_ERROR "${caller}: two shaders of ${target} have one name: ${other} and ${file}")
    endif()
    set_source_files_properties(${header} PROPERTIES KILN_EMBEDDED_FROM ${file})
    add_custom_command(
      OUTPUT ${header}
      COMMAND ${CMAKE_COMMAND} -D INPUT=${file} -D OUTPUT=${header} -D COMPILER=${compiler} -P ${script}
      DEPENDS ${file} ${script}
      COMMENT "Embedding ${shader}"
      VERBATIM)
    target_sources(${target} PRIVATE ${header})
  endforeach()
  target_include_directories(${target} PRIVATE ${folder})
endfunction()
