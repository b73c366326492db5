#include "ops.h"

#include <algorithm>
#include <cmath>

#include "scratch.h"
#include "tiles.h"

namespace pagelift {

namespace {

constexpr int64_t kRowBlock = 512;  // rows of x that meet a panel of weights before the next rows do; they stay in the cache
constexpr int64_t kElement = 4;     // cost of an activation function per element

template <class Body>
void each_row(const Context& on, Rows rows, Body body) {
  on.pool.run(rows.count, 1, rows.width * kElement, [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) body(r * rows.width);
  });
}

// Rows of x that meet a tile of weights before the next tile comes: what fits the second-level cache beside the weights.
int64_t rows_at_a_time(const TileShape& shape) {
  constexpr int64_t kBytes = 1 << 20;
  return std::clamp(kBytes / shape.row_bytes / kTileRows * kTileRows, 4 * kTileRows, 32 * kTileRows);
}

RowCodes quantize(const Context& on, const TileShape& shape, const Matrix& matrix, const float* x, int64_t rows) {
  const int64_t blocks = (rows + kTileRows - 1) / kTileRows, floats = blocks * kTileRows * shape.groups;
  float* memory = scratch(rows * shape.row_bytes / 4 + 2 * floats + 16, Use::operation);
  uint8_t* codes = (uint8_t*)(((uintptr_t)memory + 63) / 64 * 64);
  float* scales = (float*)(codes + rows * shape.row_bytes);
  const RowCodes y{rows, codes, scales, scales + floats};
  on.pool.run(rows, 1, matrix.in, [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) on.kernels.quantize_row(matrix, x + r * matrix.in, r, y);
  });
  return y;
}

void run_tiles(const Context& on, const TileJob& job, int64_t tiles) {
  on.pool.run(tiles, 1, (job.x.rows + 4) * job.matrix->in, [&](int64_t first, int64_t last) {
    on.kernels.linear_tiles(job, first, last, scratch(tile_scratch(job.x.rows)));
  });
}

// Chosen columns: all columns of the tiles they lie in, from which they are taken.
void linear_columns(const Context& on, const LinearJob& job, const RowCodes& x) {
  std::vector<int64_t> tiles(job.columns, job.columns + job.count);
  for (int64_t& tile : tiles) tile /= kTileColumns;
  std::sort(tiles.begin(), tiles.end());
  tiles.erase(std::unique(tiles.begin(), tiles.end()), tiles.end());
  const int64_t width = (int64_t)tiles.size() * kTileColumns;
  std::vector<float> y(x.rows * width);
  run_tiles(on, {job.matrix, x, tiles.data(), job.bias, nullptr, y.data(), width}, (int64_t)tiles.size());
  for (int64_t c = 0; c < job.count; ++c) {
    const int64_t tile = std::lower_bound(tiles.begin(), tiles.end(), job.columns[c] / kTileColumns) - tiles.begin();
    for (int64_t r = 0; r < x.rows; ++r) {
      const int64_t at = r * job.count + c;
      job.y[at] = y[r * width + tile * kTileColumns + job.columns[c] % kTileColumns];
      if (job.residual) job.y[at] += job.residual[at];
    }
  }
}

// Jobs over the same rows of x, whose matrices take them in the same form.
void linears_over_tiles(const Context& on, const LinearJob* jobs, size_t count) {
  const TileShape form(*jobs->matrix);
  const int64_t step = rows_at_a_time(form);
  for (int64_t first = 0; first < jobs->rows; first += step) {
    const int64_t rows = std::min(step, jobs->rows - first);
    const RowCodes x = quantize(on, form, *jobs->matrix, jobs->x + first * jobs->matrix->in, rows);
    for (const LinearJob* job = jobs; job < jobs + count; ++job) {
      LinearJob part = *job;
      part.rows = rows;
      part.y += first * job->count;
      if (part.residual) part.residual += first * job->count;
      if (job->columns)
        linear_columns(on, part, x);
      else
        run_tiles(on, {job->matrix, x, nullptr, job->bias, part.residual, part.y, job->count}, TileShape(*job->matrix).tiles);
    }
  }
}

bool same_form(const LinearJob& a, const LinearJob& b) {
  return a.x == b.x && a.rows == b.rows && a.matrix->in == b.matrix->in && (a.matrix->bits == 0) == (b.matrix->bits == 0) &&
         a.matrix->group_size == b.matrix->group_size && a.matrix->tiles && b.matrix->tiles;
}

}  // namespace

bool has_tiles(const Kernels& kernels, const Matrix& matrix) {
  return matrix.bits > 0 || (kernels.tiles_dense && matrix.type != Float::f32);
}

Memory tile(const Context& on, const Matrix& matrix) {
  const TileShape shape(matrix);
  Memory memory(shape.bytes);
  on.pool.run(shape.tiles, 1, matrix.in * kTileColumns, [&](int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t) on.kernels.tile(matrix, t, memory.bytes() + t * shape.tile_bytes);
  });
  return memory;
}

void linear(const Context& on, const LinearJob& job) {
  if (job.matrix->tiles) return linears_over_tiles(on, &job, 1);
  for (int64_t first_row = 0; first_row < job.rows; first_row += kRowBlock) {
    LinearJob part = job;
    part.rows = std::min(kRowBlock, job.rows - first_row);
    part.x += first_row * job.matrix->in;
    part.y += first_row * job.count;
    if (part.residual) part.residual += first_row * job.count;
    const int64_t grain = part.rows > 4 ? kLinearPanel : 4;
    on.pool.run(part.count, grain, part.rows * job.matrix->in / 4 + job.matrix->in,
                [&](int64_t first, int64_t last) { on.kernels.linear(part, first, last, scratch(kLinearScratch)); });
  }
}

void linears(const Context& on, const std::vector<LinearJob>& jobs) {
  for (size_t first = 0, next; first < jobs.size(); first = next) {
    next = first + 1;
    while (next < jobs.size() && same_form(jobs[first], jobs[next])) ++next;
    if (jobs[first].matrix->tiles)
      linears_over_tiles(on, &jobs[first], next - first);
    else
      linear(on, jobs[first]);
  }
}

void embedding(const Context& on, const Matrix& matrix, const int64_t* rows, int64_t count, float* y) {
  on.pool.run(count, 1, matrix.in, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) on.kernels.unpack_row(matrix, rows[i], y + i * matrix.in);
  });
}

void rms_norm(const Context& on, Rows rows, const Norm& norm, const float* x, float* y) {
  each_row(on, rows, [&](int64_t at) { on.kernels.rms_norm(x + at, norm.weight, norm.eps, rows.width, y + at); });
}

void layer_norm(const Context& on, Rows rows, const Norm& norm, const float* x, float* y) {
  each_row(on, rows, [&](int64_t at) { on.kernels.layer_norm(x + at, norm.weight, norm.bias, norm.eps, rows.width, y + at); });
}

void gated_rms_norm(const Context& on, Rows rows, const Norm& norm, const float* x, const float* gate, float* y) {
  each_row(on, rows, [&](int64_t at) { on.kernels.gated_rms_norm(x + at, gate + at, norm.weight, norm.eps, rows.width, y + at); });
}

void silu_mul(const Context& on, Rows rows, const float* gate, const float* x, float* y) {
  each_row(on, rows, [&](int64_t at) { on.kernels.silu_mul(gate + at, x + at, rows.width, y + at); });
}

void sigmoid_mul(const Context& on, Rows rows, const float* gate, int64_t gate_stride, const float* x, float* y) {
  each_row(on, rows, [&](int64_t at) { on.kernels.sigmoid_mul(gate + at / rows.width * gate_stride, x + at, rows.width, y + at); });
}

void gelu_tanh(const Context& on, Rows rows, const float* x, float* y) {
  each_row(on, rows, [&](int64_t at) { on.kernels.gelu_tanh(x + at, rows.width, y + at); });
}

void gelu_erf(const Context& on, Rows rows, const float* x, float* y) {
  each_row(on, rows, [&](int64_t at) {
    for (int64_t i = at; i < at + rows.width; ++i) y[i] = 0.5f * x[i] * std::erfc(-0.70710678f * x[i]);
  });
}

}  // namespace pagelift
