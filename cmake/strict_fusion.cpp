// Linked into every test program: a fused block that fails is an error there, unless the
// environment says otherwise.
#include <cstdlib>

namespace {

const int set =
    ::setenv("KILN_STRICT_FUSION", "1", 0);  // NOLINT(concurrency-mt-unsafe): before main

}  // namespace
