# Writes the header OUTPUT that holds the text of the shader INPUT. See KilnEmbed.cmake.

get_filename_component(file ${INPUT} NAME)
get_filename_component(name ${INPUT} NAME_WLE)
file(READ ${INPUT} text)

string(FIND "${text}" ")kiln\"" end_marker)
if(NOT end_marker EQUAL -1)
  message(FATAL_ERROR "${INPUT}: a shader must not contain )kiln\" (the end of the literal that holds it)")
endif()

# The constant has internal linkage on purpose: shaders of one name in two libraries stay two.
file(WRITE ${OUTPUT} "#pragma once

#include \"kiln/kernel/source_text.hpp\"

constexpr kiln::SourceText ${name}_wgsl{\"${file}\", R\"kiln(${text})kiln\"};
")
