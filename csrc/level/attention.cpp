// Attention of a few query rows over blocks of keys, with a running maximum and sum (Milakov and Gimelshein, Online normalizer
// calculation for softmax, 2018). Blocks start at multiples of kKeys tokens, so a row's result does not depend on how its prompt was cut.
#include "kernels.h"
#include "level/level.h"
#include "level/simd.h"

namespace pagelift::PAGELIFT_NAMESPACE {

namespace {

constexpr int R = 4;

// c (R, n) = c + a (R, k) @ b (k, n). n: multiple of 16; a row by row through pointers.
template <int R>
void multiply_add(const float* const* a, int64_t k, const float* b, int64_t n, float* c, int64_t c_stride) {
  constexpr int C = W == 16 ? 1 : 2;
  constexpr int N = C * W;
  for (int64_t j = 0; j < n; j += N) {
    F acc[R][C];
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < C; ++v) acc[r][v] = load(c + r * c_stride + j + v * W);
    for (int64_t i = 0; i < k; ++i) {
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
        for (int v = 0; v < C; ++v) acc[r][v] += a[r][i] * load(b + i * n + j + v * W);
    }
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
      for (int v = 0; v < C; ++v) store(c + r * c_stride + j + v * W, acc[r][v]);
  }
}

void multiply_add_rows(int64_t rows, const float* const* a, int64_t k, const float* b, int64_t n, float* c, int64_t c_stride) {
  switch (rows) {
    case 1:
      return multiply_add<1>(a, k, b, n, c, c_stride);
    case 2:
      return multiply_add<2>(a, k, b, n, c, c_stride);
    case 3:
      return multiply_add<3>(a, k, b, n, c, c_stride);
    default:
      return multiply_add<R>(a, k, b, n, c, c_stride);
  }
}

// Turn the first `count` of kKeys scores into weights relative to the running maximum; the others become 0. Returns by what the
// row's sums so far must be multiplied.
float soften(float* scores, int64_t count, float& largest, float& total) {
  float top = largest;
  for (int64_t j = 0; j < count; ++j) top = scores[j] > top ? scores[j] : top;
  F acc = {};
  for (int64_t j = 0; j < kKeys; j += W) {
    store(scores + j, exp(load(scores + j) - top));
    for (int64_t i = count > j ? count - j : 0; i < W; ++i) scores[j + i] = 0;
    acc += load(scores + j);
  }
  const float shrink = exp(all(largest - top))[0];
  largest = top;
  total = total * shrink + sum(acc);
  return shrink;
}

int64_t seen(const AttentionJob& job, int64_t row, int64_t first) {
  const int64_t count = job.visible[row] - first;
  return count < 0 ? 0 : count > kKeys ? kKeys : count;
}

// Up to R rows from row r0 on against one block.
void attend_tile(const AttentionJob& job, int64_t r0, int64_t block, float* scores, float* sums, float* largest, float* total) {
  const int64_t rows = job.rows - r0 < R ? job.rows - r0 : R, width = padded(job.dim), first = block * kKeys;
  const float *keys = job.blocks[block], *values = keys + kKeys * job.dim;
  for (int64_t j = 0; j < rows * kKeys; ++j) scores[j] = 0;
  multiply_add_rows(rows, job.q + r0, job.dim, keys, kKeys, scores, kKeys);
  const float* weights[R];
  int64_t most = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t count = seen(job, r0 + r, first);
    most = count > most ? count : most;
    weights[r] = scores + r * kKeys;
    const float shrink = soften(scores + r * kKeys, count, largest[r0 + r], total[r0 + r]);
    for (int64_t i = 0; i < width; i += W) store(sums + r * width + i, load(sums + r * width + i) * shrink);
  }
  multiply_add_rows(rows, weights, most, values, width, sums, width);
}

}  // namespace

void attention(const AttentionJob& job, float* scratch) {
  const int64_t width = padded(job.dim);
  float *sums = scratch, *scores = scratch + kQueries * width;
  float largest[kQueries], total[kQueries];
  int64_t tokens = 0;
  for (int64_t r = 0; r < job.rows; ++r) {
    largest[r] = -0x1.fffffep127f;  // finite, so that differences are never NaN
    total[r] = 0;
    tokens = job.visible[r] > tokens ? job.visible[r] : tokens;
  }
  for (int64_t i = 0; i < job.rows * width; ++i) sums[i] = 0;
  for (int64_t block = 0; block * kKeys < tokens; ++block)
    for (int64_t r = 0; r < job.rows; r += R) attend_tile(job, r, block, scores + r * kKeys, sums + r * width, largest, total);
  for (int64_t r = 0; r < job.rows; ++r)
    for (int64_t i = 0; i < job.dim; ++i) job.y[r][i] = sums[r * width + i] / total[r];
}

}  // namespace pagelift::PAGELIFT_NAMESPACE
