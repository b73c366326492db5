// Runs every test on every instruction set of this machine, with 1 and with 4 threads.
#include "tests.h"

namespace pagelift::tests {

namespace {
int failures = 0;
std::string running;
}  // namespace

std::vector<Test>& all_tests() {
  static std::vector<Test> tests;
  return tests;
}

void check(bool holds, const std::string& what) {
  if (holds) return;
  ++failures;
  std::fprintf(stderr, "FAILED %s: %s\n", running.c_str(), what.c_str());
}

void check_close(const std::vector<float>& found, const std::vector<double>& expected, double tolerance, const std::string& what) {
  check(found.size() == expected.size(), what + " has another size");
  for (size_t i = 0; i < expected.size() && i < found.size(); ++i)
    if (!(std::fabs(found[i] - expected[i]) <= tolerance * (1 + std::fabs(expected[i]))))
      return check(false, what + "[" + std::to_string(i) + "] is " + std::to_string(found[i]) + ", not " + std::to_string(expected[i]));
}

}  // namespace pagelift::tests

int main() {
  using namespace pagelift;
  int runs = 0;
  for (const char* level : supported_levels()) {
    const Kernels* kernels_of_level = &kernels(level);
    for (int threads : {1, 4}) {
      ThreadPool pool(threads);
      for (const tests::Test& test : tests::all_tests()) {
        tests::running = std::string(test.name) + " (" + level + ", " + std::to_string(threads) + " threads)";
        test.body({pool, *kernels_of_level});
        ++runs;
      }
    }
  }
  std::printf("%d tests, %d failures\n", runs, tests::failures);
  return tests::failures == 0 ? 0 : 1;
}
