# Compiles the GLSL compute shader INPUT with COMPILER, and writes the header OUTPUT that holds the words. See
# KilnEmbed.cmake.

get_filename_component(file ${INPUT} NAME)
get_filename_component(name ${INPUT} NAME_WLE)
set(module ${OUTPUT}.spv)
# For Vulkan 1.0: in newer modules wgpu-native does not see which buffers are readonly.
execute_process(
  COMMAND ${COMPILER} -V --target-env vulkan1.0 -S comp -o ${module} ${INPUT}
  RESULT_VARIABLE failed OUTPUT_VARIABLE messages ERROR_VARIABLE messages)
if(failed)
  message(FATAL_ERROR "${file} does not compile:\n${messages}")
endif()
file(READ ${module} bytes HEX)
file(REMOVE ${module})
string(REGEX REPLACE "(..)(..)(..)(..)" "0x\\4\\3\\2\\1, " words "${bytes}")
string(REGEX REPLACE "(0x........, 0x........, 0x........, 0x........), " "\\1,\n" words "${words}")

# The constants have internal linkage on purpose: shaders of one name in two libraries stay two.
file(WRITE ${OUTPUT} "#pragma once

#include \"kiln/kernel/source_text.hpp\"

constexpr std::uint32_t ${name}_spirv_words[] = {
${words}};
constexpr kiln::SourceWords ${name}_spirv{\"${file}\", ${name}_spirv_words};
")
