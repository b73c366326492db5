// What becomes of the sums of a tile.
#pragma once

#include "level/simd.h"
#include "tiles.h"

namespace pagelift::PAGELIFT_NAMESPACE {

PAGELIFT_INLINE int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// sums (rows, 16) of rows `first` on of x and tile number `at` of the job, with bias and residual, to y.
inline void finish(const TileJob& job, int64_t at, int64_t first, int64_t rows, const float* sums) {
  const int64_t tile = job.tiles ? job.tiles[at] : at, n = tile * kTileColumns;
  const int64_t width = least(kTileColumns, job.matrix->out - n);
  for (int64_t r = first; r < first + rows; ++r, sums += kTileColumns) {
    float* y = job.y + (job.rows ? job.rows[r] : r) * job.stride + at * kTileColumns;
    const float* residual = job.residual ? job.residual + (y - job.y) : nullptr;
    if (width < kTileColumns) {
      for (int64_t c = 0; c < width; ++c) y[c] = sums[c] + (job.bias ? job.bias[n + c] : 0.0f) + (residual ? residual[c] : 0.0f);
      continue;
    }
    for (int64_t c = 0; c < kTileColumns; c += W) {
      F value = load(sums + c);
      if (job.bias) value += load(job.bias + n + c);
      if (residual) value += load(residual + c);
      store(y + c, value);
    }
  }
}

}  // namespace pagelift::PAGELIFT_NAMESPACE
