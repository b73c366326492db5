// Products of attention on the matrix unit (AMX, bf16). Tile registers: 0 to 3 sums, 4 and 5 queries or weights, 6 and 7 keys or
// values. A row of a product has the same bits whatever the other rows are.
#pragma once

#include "kernels.h"
#include "level/amx.h"
#include "level/simd.h"

namespace pagelift::PAGELIFT_NAMESPACE {

namespace {

#if defined(__AMX_BF16__)

constexpr bool kHasTiles = true;
constexpr int64_t kTile = 512;  // bf16 values in a tile of 16 rows of 64 bytes

constexpr bool is_narrow(int64_t width) { return width <= 96; }

// For products of so many rows at a time. Tiles of sums and queries hold no more than there are, since a product takes as long as it
// has rows: a token alone has 4 in each head of keys.
inline void amx_begin(int64_t rows, int64_t width) {
  TileConfig config = {.row_bytes = {64, 64, 64, 64, 64, 64, 64, 64}, .rows = {16, 16, 16, 16, 16, 16, 16, 16}};
  if (rows < 16 && !is_narrow(width))
    for (int tile = 0; tile < 5; ++tile) config.rows[tile] = (uint8_t)rows;
  configure_tiles(config);
}
inline void amx_end() { release_tiles(); }

// Scores of 32 rows against 32 keys.
inline void amx_scores_two(const uint16_t* q, int64_t width, const uint16_t* keys, float* scores) {
  PAGELIFT_TILE_ZERO(0);
  PAGELIFT_TILE_ZERO(1);
  PAGELIFT_TILE_ZERO(2);
  PAGELIFT_TILE_ZERO(3);
  for (int64_t d = 0; d < width; d += 32) {
    PAGELIFT_TILE_LOAD(4, q + d, width * 2);
    PAGELIFT_TILE_LOAD(6, keys + d * 16, 64);
    PAGELIFT_TILE_LOAD(5, q + 16 * width + d, width * 2);
    PAGELIFT_TILE_LOAD(7, keys + 16 * width + d * 16, 64);
    PAGELIFT_TILE_DOT_BF16(0, 4, 6);
    PAGELIFT_TILE_DOT_BF16(1, 4, 7);
    PAGELIFT_TILE_DOT_BF16(2, 5, 6);
    PAGELIFT_TILE_DOT_BF16(3, 5, 7);
  }
  PAGELIFT_TILE_STORE(0, scores, kSpan * 4);
  PAGELIFT_TILE_STORE(1, scores + 16, kSpan * 4);
  PAGELIFT_TILE_STORE(2, scores + 16 * kSpan, kSpan * 4);
  PAGELIFT_TILE_STORE(3, scores + 16 * kSpan + 16, kSpan * 4);
}

// Scores of 16 rows against 64 keys.
inline void amx_scores_one(const uint16_t* q, int64_t width, const uint16_t* keys, float* scores) {
  PAGELIFT_TILE_ZERO(0);
  PAGELIFT_TILE_ZERO(1);
  PAGELIFT_TILE_ZERO(2);
  PAGELIFT_TILE_ZERO(3);
  for (int64_t d = 0; d < width; d += 32) {
    PAGELIFT_TILE_LOAD(4, q + d, width * 2);
    PAGELIFT_TILE_LOAD(5, keys + d * 16, 64);
    PAGELIFT_TILE_LOAD(6, keys + 16 * width + d * 16, 64);
    PAGELIFT_TILE_LOAD(7, keys + 32 * width + d * 16, 64);
    PAGELIFT_TILE_DOT_BF16(0, 4, 5);
    PAGELIFT_TILE_LOAD(5, keys + 48 * width + d * 16, 64);
    PAGELIFT_TILE_DOT_BF16(1, 4, 6);
    PAGELIFT_TILE_DOT_BF16(2, 4, 7);
    PAGELIFT_TILE_DOT_BF16(3, 4, 5);
  }
  PAGELIFT_TILE_STORE(0, scores, kSpan * 4);
  PAGELIFT_TILE_STORE(1, scores + 16, kSpan * 4);
  PAGELIFT_TILE_STORE(2, scores + 32, kSpan * 4);
  PAGELIFT_TILE_STORE(3, scores + 48, kSpan * 4);
}

// Scores of 16 rows against 16 keys, with the rows in tiles 4, 5 and 6.
#define PAGELIFT_NARROW_SCORES(sum, keys, scores)                       \
  PAGELIFT_TILE_ZERO(sum);                                              \
  PAGELIFT_TILE_LOAD(7, keys, 64);                                      \
  PAGELIFT_TILE_DOT_BF16(sum, 4, 7);                                    \
  if constexpr (Width > 32) PAGELIFT_TILE_LOAD(7, (keys) + kTile, 64);  \
  if constexpr (Width > 32) PAGELIFT_TILE_DOT_BF16(sum, 5, 7);          \
  if constexpr (Width > 64) PAGELIFT_TILE_LOAD(7, (keys) + 2 * kTile, 64); \
  if constexpr (Width > 64) PAGELIFT_TILE_DOT_BF16(sum, 6, 7);          \
  PAGELIFT_TILE_STORE(sum, scores, kSpan * 4)

// Narrow heads: the rows stay in their tiles while the keys of a span pass.
template <int Width>
inline void amx_scores_narrow(const uint16_t* q, const uint8_t* const* keys, int64_t most, float* scores) {
  PAGELIFT_TILE_LOAD(4, q, Width * 2);
  if constexpr (Width > 32) PAGELIFT_TILE_LOAD(5, q + 32, Width * 2);
  if constexpr (Width > 64) PAGELIFT_TILE_LOAD(6, q + 64, Width * 2);
  for (int64_t j = 0; j < most; j += kKeys) {
    const uint16_t* tiles = (const uint16_t*)keys[j / kKeys];
    PAGELIFT_NARROW_SCORES(0, tiles, scores + j);
    PAGELIFT_NARROW_SCORES(1, tiles + 16 * Width, scores + j + 16);
    PAGELIFT_NARROW_SCORES(2, tiles + 32 * Width, scores + j + 32);
    PAGELIFT_NARROW_SCORES(3, tiles + 48 * Width, scores + j + 48);
  }
}

// scores (16 or 32 rows, kSpan) for the first `most` keys of a span, and some more.
inline void amx_scores(const uint16_t* q, bool two, int64_t width, const uint8_t* const* keys, int64_t most, float* scores) {
  if (is_narrow(width)) {
    const auto narrow = width == 32 ? amx_scores_narrow<32> : width == 64 ? amx_scores_narrow<64> : amx_scores_narrow<96>;
    narrow(q, keys, most, scores);
    if (two) narrow(q + 16 * width, keys, most, scores + 16 * kSpan);
    return;
  }
  for (int64_t j = 0; j < most; j += two ? 32 : kKeys) {
    const uint16_t* tiles = (const uint16_t*)keys[j / kKeys] + j % kKeys * width;
    if (two)
      amx_scores_two(q, width, tiles, scores + j);
    else
      amx_scores_one(q, width, tiles, scores + j);
  }
}

// sums (16 or 32 rows, 16 or 32 features) += weights @ values of a span.
template <int Rows, int Columns>
inline void amx_values_tile(const uint16_t* weights, const uint8_t* const* values, int64_t most, int64_t width, int64_t d, float* sums) {
  float* sum = sums + d;
  PAGELIFT_TILE_LOAD(0, sum, width * 4);
  if constexpr (Columns == 2) PAGELIFT_TILE_LOAD(1, sum + 16, width * 4);
  if constexpr (Rows == 2) PAGELIFT_TILE_LOAD(2, sum + 16 * width, width * 4);
  if constexpr (Rows == 2 && Columns == 2) PAGELIFT_TILE_LOAD(3, sum + 16 * width + 16, width * 4);
  for (int64_t j = 0; j < most; j += 32) {
    const uint16_t* tiles = (const uint16_t*)values[j / kKeys] + j % kKeys * width + d * 32;
    PAGELIFT_TILE_LOAD(4, weights + j, kSpan * 2);
    PAGELIFT_TILE_LOAD(6, tiles, 64);
    if constexpr (Rows == 2) PAGELIFT_TILE_LOAD(5, weights + 16 * kSpan + j, kSpan * 2);
    if constexpr (Columns == 2) PAGELIFT_TILE_LOAD(7, tiles + kTile, 64);
    PAGELIFT_TILE_DOT_BF16(0, 4, 6);
    if constexpr (Columns == 2) PAGELIFT_TILE_DOT_BF16(1, 4, 7);
    if constexpr (Rows == 2) PAGELIFT_TILE_DOT_BF16(2, 5, 6);
    if constexpr (Rows == 2 && Columns == 2) PAGELIFT_TILE_DOT_BF16(3, 5, 7);
  }
  PAGELIFT_TILE_STORE(0, sum, width * 4);
  if constexpr (Columns == 2) PAGELIFT_TILE_STORE(1, sum + 16, width * 4);
  if constexpr (Rows == 2) PAGELIFT_TILE_STORE(2, sum + 16 * width, width * 4);
  if constexpr (Rows == 2 && Columns == 2) PAGELIFT_TILE_STORE(3, sum + 16 * width + 16, width * 4);
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
inline void amx_begin(int64_t, int64_t) {}
inline void amx_end() {}
inline void amx_scores(const uint16_t*, bool, int64_t, const uint8_t* const*, int64_t, float*) {}
inline void amx_values(const uint16_t*, int64_t, const uint8_t* const*, int64_t, int64_t, float*) {}

#endif

}  // namespace

}  // namespace pagelift::PAGELIFT_NAMESPACE
