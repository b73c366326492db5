#include "measure.h"

#include <algorithm>
#include <chrono>
#include <memory>
#include <thread>
#include <vector>

#include "memory.h"

namespace pagelift {

namespace {

double seconds() { return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count(); }

constexpr int kPasses = 5;
constexpr int64_t kPeakRounds = 200'000;  // some milliseconds each

}  // namespace

double measure_bandwidth_gbs(const Context& on, int64_t bytes) {
  const Memory memory(bytes);
  const int64_t parts = on.pool.threads() * 64, part = bytes / parts / 4096 * 4096;
  const auto all_parts = [&](const auto& body) {
    on.pool.run(parts, 16, part, [&](int64_t first, int64_t last) { body(memory.bytes() + first * part, (last - first) * part); });
  };
  all_parts([](uint8_t* p, int64_t n) { std::fill(p, p + n, uint8_t{1}); });  // pages exist from now on
  double best = 1e9;
  for (int pass = 0; pass < kPasses; ++pass) {
    const double start = seconds();
    all_parts([&](const uint8_t* p, int64_t n) { on.kernels.read(p, n); });
    best = std::min(best, seconds() - start);
  }
  return (double)(parts * part) / best / 1e9;
}

double measure_matmul_gflops(const Context& on, Number number) {
  if (on.kernels.peak(number, 1) == 0) return 0;
  std::vector<int64_t> done(on.pool.threads());
  double best = 0;
  for (int pass = 0; pass < kPasses; ++pass) {
    const double start = seconds();
    // One item per thread: whoever has finished its own item leaves none to take.
    on.pool.run(on.pool.threads(), 1, kPeakRounds, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) done[i] = on.kernels.peak(number, kPeakRounds);
    });
    const double time = seconds() - start;
    int64_t operations = 0;
    for (int64_t n : done) operations += n;
    best = std::max(best, (double)operations / time / 1e9);
  }
  return best;
}

}  // namespace pagelift
