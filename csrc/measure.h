// What this machine can do at most: the limits that the kernels are measured against.
#pragma once

#include <cstdint>

#include "ops.h"

namespace pagelift {

// Bytes per second in 1e9 that all threads of the pool together read from memory: the best of several passes over `bytes` bytes,
// which should exceed the caches.
double measure_bandwidth_gbs(const Context& on, int64_t bytes);

// Operations per second in 1e9 (a multiplication and an addition are two) of all threads of the pool in a matrix product of
// operands in the first-level cache; the best of several rounds. 0 where the level has no instruction for this type.
double measure_matmul_gflops(const Context& on, Number number);

}  // namespace pagelift
