// Linear layers over dense tiles with rows of x in float32, for levels whose only unit for matrices is the fused multiplication.
// A sum runs over the inputs in one order whatever the rows are, so a row has the same bits in any call.
#include "level/finish.h"
#include "level/level.h"

namespace pagelift::PAGELIFT_NAMESPACE {

#if !defined(__AMX_BF16__)

#if defined(__AVX2__) && !defined(__AVX512F__)

namespace {

constexpr int kParts = (int)kTileColumns / W;
constexpr int64_t kPairBytes = kTileVector;  // of two inputs of a tile

PAGELIFT_INLINE int64_t padded(int64_t in) { return (in + kTileStep - 1) / kTileStep * kTileStep; }

// R rows of x by T tiles over `pairs` pairs of inputs: sums (T, R, 16), `stride` floats from tile to tile, go on from what they hold.
template <int R, int T>
void multiply(const float* x, const uint8_t* const* tiles, int64_t pairs, float* sums, int64_t stride) {
  F acc[T][R][kParts];
  for (int t = 0; t < T; ++t)
    for (int r = 0; r < R; ++r)
      for (int p = 0; p < kParts; ++p) acc[t][r][p] = load(sums + t * stride + r * kTileColumns + p * W);
  const uint8_t* weights[T];
  for (int t = 0; t < T; ++t) weights[t] = tiles[t];
  for (int64_t i = 0; i < pairs; ++i, x += 2 * R) {
#pragma GCC unroll 4
    for (int t = 0; t < T; ++t) {
      if constexpr (R <= 2) __builtin_prefetch(weights[t] + 2048);
      const U two[kParts] = {load_as<U>(weights[t]), load_as<U>(weights[t] + W * 4)};
#pragma GCC unroll 2
      for (int odd = 0; odd < 2; ++odd) {
        const F w[kParts] = {bits_to_float(odd ? two[0] & 0xffff0000u : two[0] << 16), bits_to_float(odd ? two[1] & 0xffff0000u : two[1] << 16)};
#pragma GCC unroll 8
        for (int r = 0; r < R; ++r) {
          const float one = x[odd * R + r];
#pragma GCC unroll 2
          for (int p = 0; p < kParts; ++p) acc[t][r][p] += one * w[p];
        }
      }
      weights[t] += kPairBytes;
    }
  }
  for (int t = 0; t < T; ++t)
    for (int r = 0; r < R; ++r)
      for (int p = 0; p < kParts; ++p) store(sums + t * stride + r * kTileColumns + p * W, acc[t][r][p]);
}

// The rows of a block by `count` tiles; as many tiles at a time as give eight or more sums, which do not wait for each other.
template <int R>
void multiply_tiles(const float* x, const uint8_t* const* tiles, int64_t count, int64_t pairs, float* sums, int64_t stride) {
  constexpr int kTogether = R == 1 ? 4 : R <= 3 ? 2 : 1;
  int64_t t = 0;
  for (; t + kTogether <= count; t += kTogether) multiply<R, kTogether>(x, tiles + t, pairs, sums + t * stride, stride);
  for (; t < count; ++t) multiply<R, 1>(x, tiles + t, pairs, sums + t * stride, stride);
}

using Multiply = void (*)(const float*, const uint8_t* const*, int64_t, int64_t, float*, int64_t);
constexpr Multiply kMultiply[kFloatRows] = {multiply_tiles<1>, multiply_tiles<2>, multiply_tiles<3>, multiply_tiles<4>, multiply_tiles<5>};

}  // namespace

// Blocks of kFloatRows rows, the last one smaller; in a block, input by input, one float of each row.
void dense_row(const float* x, int64_t in, int64_t row, const RowCodes& y) {
  const int64_t first = row / kFloatRows * kFloatRows, rows = least(kFloatRows, y.rows - first), all_inputs = padded(in);
  float* to = (float*)y.codes + first * all_inputs + row - first;
  for (int64_t k = 0; k < all_inputs; ++k) to[k * rows] = k < in ? x[k] : 0.0f;
}

void linear_dense(const TileJob& job, int64_t first, int64_t last, float* scratch) {
  const TileShape shape(*job.matrix);
  const int64_t inputs = padded(job.matrix->in), rows = job.x.rows, stride = rows * kTileColumns;
  for (int64_t at = first; at < last; at += kPanelTiles) {
    const int64_t count = least(kPanelTiles, last - at);
    memset(scratch, 0, count * stride * sizeof(float));
    for (int64_t k = 0; k < inputs; k += kPanelInputs) {
      const int64_t pairs = least(kPanelInputs, inputs - k) / 2;
      const uint8_t* tiles[kPanelTiles];
      for (int64_t t = 0; t < count; ++t)
        tiles[t] = job.matrix->tiles + (job.tiles ? job.tiles[at + t] : at + t) * shape.tile_bytes + k / 2 * kPairBytes;
      for (int64_t r = 0; r < rows; r += kFloatRows) {
        const int64_t some = least(kFloatRows, rows - r);
        const float* x = (const float*)job.x.codes + r * inputs + k * some;
        kMultiply[some - 1](x, tiles, count, pairs, scratch + r * kTileColumns, stride);
      }
    }
    for (int64_t t = 0; t < count; ++t) finish(job, at + t, 0, rows, scratch + t * stride);
  }
}

#else

void dense_row(const float*, int64_t, int64_t, const RowCodes&) {}
void linear_dense(const TileJob&, int64_t, int64_t, float*) {}

#endif

#endif

}  // namespace pagelift::PAGELIFT_NAMESPACE
