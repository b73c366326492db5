#include "ops.h"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <vector>

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

// Half of the second-level cache, 1 MiB where the system does not tell its size.
int64_t near_bytes() {
#if defined(_SC_LEVEL2_CACHE_SIZE)
  static const int64_t size = sysconf(_SC_LEVEL2_CACHE_SIZE);
  if (size > 0) return size / 2;
#endif
  return 1 << 20;
}

// Rows of x that meet a tile of weights before the next tile comes: what fits the second-level cache beside the weights.
int64_t rows_at_a_time(const TileShape& shape) {
  return std::clamp(near_bytes() / shape.row_bytes / kTileRows * kTileRows, 4 * kTileRows, 32 * kTileRows);
}

// Rows of x in one form. numbers: which rows of the job they are.
struct Part {
  bool dense;  // or in 8 bits
  std::vector<int64_t> numbers;
  RowCodes x;
};

// The rows of a job by the form that they get: that of dense tiles for these, and for rows of a prompt if it is bf16, else 8 bits. A
// row's form depends on nothing but itself.
class Parts {
 public:
  Parts(const Context& on, const LinearJob& job) : on_(on), job_(job), shape_(*job.matrix) {
    for (int64_t r = 0; r < job.rows; ++r)
      rows_[job.matrix->bits == 0 || (on.kernels.dense == Dense::bf16 && job.prompt && job.prompt[r])].push_back(r);
  }

  // The next rows that meet a tile of weights before the next tile comes; none at the end.
  std::vector<Part> next() {
    std::vector<Part> parts;
    for (const bool dense : {false, true}) {
      const int64_t count = std::min(dense ? kRowBlock : rows_at_a_time(shape_), (int64_t)rows_[dense].size() - done_[dense]);
      if (count == 0) continue;
      const auto first = rows_[dense].begin() + done_[dense];
      parts.push_back({dense, {first, first + count}, {}});
      done_[dense] += count;
    }
    take_memory(parts);
    for (const Part& part : parts) fill(part);
    return parts;
  }

 private:
  void take_memory(std::vector<Part>& parts) const {
    const int64_t row_bytes[2] = {shape_.row_bytes + 8 * shape_.groups, on_.kernels.dense == Dense::bf16 ? bf16_row_bytes(job_.matrix->in) : float_row_bytes(job_.matrix->in)};
    int64_t bytes = 64;
    for (const Part& part : parts) bytes += rounded(part) * row_bytes[part.dense];
    uint8_t* at = (uint8_t*)(((uintptr_t)scratch(bytes / 4, Use::operation) + 63) / 64 * 64);
    for (Part& part : parts) {
      float* scales = (float*)(at + rounded(part) * shape_.row_bytes);
      part.x = {(int64_t)part.numbers.size(), at, part.dense ? nullptr : scales, part.dense ? nullptr : scales + rounded(part) * shape_.groups};
      at += rounded(part) * row_bytes[part.dense];
    }
  }

  void fill(const Part& part) const {
    const int64_t in = job_.matrix->in;
    on_.pool.run(part.x.rows, 1, in, [&](int64_t first, int64_t last) {
      for (int64_t r = first; r < last; ++r) {
        const float* x = job_.x + part.numbers[r] * in;
        part.dense ? on_.kernels.dense_row(x, in, r, part.x) : on_.kernels.quantize_row(*job_.matrix, x, r, part.x);
      }
    });
  }

  static int64_t rounded(const Part& part) { return ((int64_t)part.numbers.size() + kTileRows - 1) / kTileRows * kTileRows; }

  const Context& on_;
  const LinearJob& job_;
  const TileShape shape_;
  std::vector<int64_t> rows_[2];
  int64_t done_[2] = {};
};

// All parts by some tiles before the next ones come, so that weights are read from memory once.
void run_tiles(const Context& on, const LinearJob& job, const std::vector<Part>& parts, int64_t tiles, const int64_t* chosen, int64_t stride) {
  int64_t rows = 0;
  for (const Part& part : parts) rows += part.x.rows;
  on.pool.run(tiles, 2, (rows + 4) * job.matrix->in, [&](int64_t first, int64_t last) {
    for (int64_t at = first; at < last; at += kPanelTiles)
      for (const Part& part : parts) {
        const TileJob one{job.matrix, part.x, part.numbers.data(), chosen, job.bias, job.residual, job.y, stride};
        const int64_t size = part.dense ? dense_scratch(part.x.rows) : tile_scratch(part.x.rows);
        (part.dense ? on.kernels.linear_dense : on.kernels.linear_tiles)(one, at, std::min(at + kPanelTiles, last), scratch(size));
      }
  });
}

// Chosen columns: all columns of the tiles they lie in, from which they are taken.
void linear_columns(const Context& on, const LinearJob& job, const std::vector<Part>& parts) {
  std::vector<int64_t> tiles(job.columns, job.columns + job.count);
  for (int64_t& tile : tiles) tile /= kTileColumns;
  std::sort(tiles.begin(), tiles.end());
  tiles.erase(std::unique(tiles.begin(), tiles.end()), tiles.end());
  const int64_t width = (int64_t)tiles.size() * kTileColumns;
  std::vector<float> y(job.rows * width);
  LinearJob whole = job;
  whole.residual = nullptr;
  whole.y = y.data();
  run_tiles(on, whole, parts, (int64_t)tiles.size(), tiles.data(), width);
  for (int64_t c = 0; c < job.count; ++c) {
    const int64_t tile = std::lower_bound(tiles.begin(), tiles.end(), job.columns[c] / kTileColumns) - tiles.begin();
    for (const Part& part : parts)
      for (int64_t r : part.numbers) {
        const int64_t at = r * job.count + c;
        job.y[at] = y[r * width + tile * kTileColumns + job.columns[c] % kTileColumns];
        if (job.residual) job.y[at] += job.residual[at];
      }
  }
}

// Jobs over the same rows of x, whose matrices take them in the same form.
void linears_over_tiles(const Context& on, const LinearJob* jobs, size_t count) {
  Parts all(on, *jobs);
  for (std::vector<Part> parts; !(parts = all.next()).empty();)
    for (const LinearJob* job = jobs; job < jobs + count; ++job) {
      if (job->columns)
        linear_columns(on, *job, parts);
      else
        run_tiles(on, *job, parts, TileShape(*job->matrix).tiles, nullptr, job->count);
    }
}

bool same_form(const LinearJob& a, const LinearJob& b) {
  return a.x == b.x && a.rows == b.rows && a.prompt == b.prompt && a.matrix->in == b.matrix->in && (a.matrix->bits == 0) == (b.matrix->bits == 0) &&
         a.matrix->group_size == b.matrix->group_size && a.matrix->tiles && b.matrix->tiles;
}

}  // namespace

bool has_tiles(const Kernels& kernels, const Matrix& matrix) {
  if (matrix.bits > 0) return true;
  return kernels.dense == Dense::bf16 ? matrix.type != Float::f32 : kernels.dense == Dense::f32 && matrix.type == Float::bf16;
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
    part.prompt = nullptr;
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
