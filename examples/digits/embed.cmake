# Writes the header OUTPUT with the numbers of the comma-separated file INPUT; lines that begin with # are comments.
file(STRINGS ${INPUT} lines REGEX "^[0-9]")
list(JOIN lines ",\n" numbers)
file(WRITE ${OUTPUT} "#pragma once

constexpr unsigned char digits_csv[] = {
${numbers}};
")
