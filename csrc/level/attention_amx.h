// Products of attention on the matrix unit (AMX, bf16). Tile registers: 0 to 3 sums, 4 and 5 queries or weights, 6 and 7 keys or
// values. A row of a product has the same bits whatever the other rows are.
#pragma once

#include "kernels.h"
#include "level/simd.h"

#if defined(__AMX_BF16__)
#include <immintrin.h>
#endif

namespace pagelift::PAGELIFT_NAMESPACE {

namespace {

#if defined(__AMX_BF16__)

constexpr bool kHasTiles = true;
constexpr int64_t kTile = 512;  // bf16 values in a tile of 16 rows of 64 bytes

// All tiles whole. Each thread needs it; another kernel may have left another.
inline void amx_configure() {
  alignas(64) static constexpr uint8_t whole[64] = {1,  0, 0,  0, 0,  0, 0,  0, 0,  0, 0,  0, 0,  0, 0, 0,   //
                                                    64, 0, 64, 0, 64, 0, 64, 0, 64, 0, 64, 0, 64, 0, 64, 0,  //
                                                    0,  0, 0,  0, 0,  0, 0,  0, 0,  0, 0,  0, 0,  0, 0, 0,   //
                                                    16, 16, 16, 16, 16, 16, 16, 16};
  _tile_loadconfig(whole);
}

// Scores of 32 rows against 32 keys.
inline void amx_scores_two(const uint16_t* q, int64_t width, const uint16_t* keys, float* scores) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t d = 0; d < width; d += 32) {
    _tile_loadd(4, q + d, width * 2);
    _tile_loadd(6, keys + d * 16, 64);
    _tile_loadd(5, q + 16 * width + d, width * 2);
    _tile_loadd(7, keys + 16 * width + d * 16, 64);
    _tile_dpbf16ps(0, 4, 6);
    _tile_dpbf16ps(1, 4, 7);
    _tile_dpbf16ps(2, 5, 6);
    _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, scores, kSpan * 4);
  _tile_stored(1, scores + 16, kSpan * 4);
  _tile_stored(2, scores + 16 * kSpan, kSpan * 4);
  _tile_stored(3, scores + 16 * kSpan + 16, kSpan * 4);
}

// Scores of 16 rows against 64 keys.
inline void amx_scores_one(const uint16_t* q, int64_t width, const uint16_t* keys, float* scores) {
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  for (int64_t d = 0; d < width; d += 32) {
    _tile_loadd(4, q + d, width * 2);
    _tile_loadd(5, keys + d * 16, 64);
    _tile_loadd(6, keys + 16 * width + d * 16, 64);
    _tile_loadd(7, keys + 32 * width + d * 16, 64);
    _tile_dpbf16ps(0, 4, 5);
    _tile_loadd(5, keys + 48 * width + d * 16, 64);
    _tile_dpbf16ps(1, 4, 6);
    _tile_dpbf16ps(2, 4, 7);
    _tile_dpbf16ps(3, 4, 5);
  }
  _tile_stored(0, scores, kSpan * 4);
  _tile_stored(1, scores + 16, kSpan * 4);
  _tile_stored(2, scores + 32, kSpan * 4);
  _tile_stored(3, scores + 48, kSpan * 4);
}

// scores (16 or 32 rows, kSpan) for the first `most` keys of a span, and some more.
inline void amx_scores(const uint16_t* q, bool two, int64_t width, const uint8_t* const* keys, int64_t most, float* scores) {
  for (int64_t j = 0; j < most; j += two ? 32 : kKeys) {
    const uint16_t* tiles = (const uint16_t*)keys[j / kKeys] + j % kKeys * width;
    if (two)
      amx_scores_two(q, width, tiles, scores + j);
    else
      amx_scores_one(q, width, tiles, scores + j);
  }
}

// sums (16 or 32 rows, 16 or 32 features) += weights @ values of a span. The macros name tile registers, which are part of the
// instruction.
template <int Rows, int Columns>
inline void amx_values_tile(const uint16_t* weights, const uint8_t* const* values, int64_t most, int64_t width, int64_t d, float* sums) {
  float* sum = sums + d;
  _tile_loadd(0, sum, width * 4);
  if constexpr (Columns == 2) _tile_loadd(1, sum + 16, width * 4);
  if constexpr (Rows == 2) _tile_loadd(2, sum + 16 * width, width * 4);
  if constexpr (Rows == 2 && Columns == 2) _tile_loadd(3, sum + 16 * width + 16, width * 4);
  for (int64_t j = 0; j < most; j += 32) {
    const uint16_t* tiles = (const uint16_t*)values[j / kKeys] + j % kKeys * width + d * 32;
    _tile_loadd(4, weights + j, kSpan * 2);
    _tile_loadd(6, tiles, 64);
    if constexpr (Rows == 2) _tile_loadd(5, weights + 16 * kSpan + j, kSpan * 2);
    if constexpr (Columns == 2) _tile_loadd(7, tiles + kTile, 64);
    _tile_dpbf16ps(0, 4, 6);
    if constexpr (Columns == 2) _tile_dpbf16ps(1, 4, 7);
    if constexpr (Rows == 2) _tile_dpbf16ps(2, 5, 6);
    if constexpr (Rows == 2 && Columns == 2) _tile_dpbf16ps(3, 5, 7);
  }
  _tile_stored(0, sum, width * 4);
  if constexpr (Columns == 2) _tile_stored(1, sum + 16, width * 4);
  if constexpr (Rows == 2) _tile_stored(2, sum + 16 * width, width * 4);
  if constexpr (Rows == 2 && Columns == 2) _tile_stored(3, sum + 16 * width + 16, width * 4);
}

template <int Rows>
inline void amx_values_rows(const uint16_t* weights, const uint8_t* const* values, int64_t most, int64_t width, float* sums) {
  int64_t d = 0;
  for (; d + 32 <= width; d += 32) amx_values_tile<Rows, 2>(weights, values, most, width, d, sums);
  if (d < width) amx_values_tile<Rows, 1>(weights, values, most, width, d, sums);
}

inline void amx_values(const uint16_t* weights, int64_t rows, const uint8_t* const* values, int64_t most, int64_t width, float* sums) {
  if (rows > 16)
    amx_values_rows<2>(weights, values, most, width, sums);
  else
    amx_values_rows<1>(weights, values, most, width, sums);
}

#else

constexpr bool kHasTiles = false;
inline void amx_configure() {}
inline void amx_scores(const uint16_t*, bool, int64_t, const uint8_t* const*, int64_t, float*) {}
inline void amx_values(const uint16_t*, int64_t, const uint8_t* const*, int64_t, int64_t, float*) {}

#endif

}  // namespace

}  // namespace pagelift::PAGELIFT_NAMESPACE
