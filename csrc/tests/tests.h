// A few lines instead of a test framework: TEST registers itself, check() reports and counts.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstdio>
#include <random>
#include <string>
#include <vector>

#include "ops.h"

namespace pagelift::tests {

struct Test {
  const char* name;
  void (*body)(const Context& on);
};
std::vector<Test>& all_tests();
struct Register {
  Register(const char* name, void (*body)(const Context&)) { all_tests().push_back({name, body}); }
};
#define TEST(name)                                       \
  static void name(const pagelift::Context& on);         \
  static pagelift::tests::Register name##_(#name, name); \
  static void name([[maybe_unused]] const pagelift::Context& on)

void check(bool holds, const std::string& what);
void check_close(const std::vector<float>& found, const std::vector<double>& expected, double tolerance, const std::string& what);

inline std::vector<float> normal(int64_t n, uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> distribution;
  std::vector<float> values(n);
  for (float& value : values) value = distribution(random);
  return values;
}

}  // namespace pagelift::tests
