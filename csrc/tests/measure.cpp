// The measured limits: they are there where the level has an instruction, and every thread counts.
#include "measure.h"

#include "tests.h"

using namespace pagelift;
using namespace pagelift::tests;

TEST(limits_are_measured) {
  check(measure_bandwidth_gbs(on, 1 << 22) > 0, "memory has a bandwidth");
  check(measure_matmul_gflops(on, Number::f32) > 0, "every level multiplies floats");
  check(measure_matmul_gflops(on, Number::int8) > 0, "every level multiplies bytes");
}
