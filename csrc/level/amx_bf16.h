// bf16 products on the matrix unit.
#pragma once

#include "level/amx.h"
#include "level/simd.h"
#include "tiles.h"

#if defined(__AMX_BF16__)

namespace pagelift::PAGELIFT_NAMESPACE {

constexpr int kAhead = 4;

inline TileConfig bf16_config(int64_t rows, int64_t more_rows) {
  TileConfig config;
  for (int t = 0; t < 8; ++t) {
    config.row_bytes[t] = 64;
    config.rows[t] = (uint8_t)(t >= 6 ? 16 : t == 5 || t == 2 || t == 3 ? more_rows : rows);
  }
  return config;
}

// Two blocks of rows of x against two tiles of weights over `steps` times 32 inputs. From step to step a block moves on by 64 bytes
// for each of its rows, a tile by kBf16Step. Meanwhile memory is asked for what comes next, 64 bytes a step from each place: to be
// read, and to be written.
struct Bf16Block {
  const uint8_t *x, *more_x;
  int64_t x_step, more_step;
  const uint8_t *weights, *more_weights;
  int64_t steps;
  const uint8_t* next_x;  // kAhead times 1024 bytes
  const float* next_y[kAhead];
};

// sums: four times (16, 16), blocks of rows by tiles, to which the products are added; `first`: they begin at 0. Without Two only
// the first block of rows. Weights are loaded by the hint that leaves the first-level cache to x, which comes again for each tile.
template <bool Two>
void amx_bf16_block(const Bf16Block& block, bool first, float* sums) {
  if (first) {
    PAGELIFT_TILE_ZERO(0);
    PAGELIFT_TILE_ZERO(1);
    if constexpr (Two) {
      PAGELIFT_TILE_ZERO(2);
      PAGELIFT_TILE_ZERO(3);
    }
  } else {
    PAGELIFT_TILE_LOAD(0, sums, kTileVector);
    PAGELIFT_TILE_LOAD(1, sums + 256, kTileVector);
    if constexpr (Two) {
      PAGELIFT_TILE_LOAD(2, sums + 512, kTileVector);
      PAGELIFT_TILE_LOAD(3, sums + 768, kTileVector);
    }
  }
  const uint8_t *x = block.x, *more_x = block.more_x, *weights = block.weights, *more_weights = block.more_weights;
  for (int64_t s = 0; s < block.steps; ++s) {
    PAGELIFT_TILE_LOAD(4, x, kTileVector);
    PAGELIFT_TILE_LOAD_ONCE(6, weights, kTileVector);
    PAGELIFT_TILE_DOT_BF16(0, 4, 6);
    PAGELIFT_TILE_LOAD_ONCE(7, more_weights, kTileVector);
    PAGELIFT_TILE_DOT_BF16(1, 4, 7);
    if constexpr (Two) {
      PAGELIFT_TILE_LOAD(5, more_x, kTileVector);
      PAGELIFT_TILE_DOT_BF16(2, 5, 6);
      PAGELIFT_TILE_DOT_BF16(3, 5, 7);
    }
#pragma GCC unroll 4
    for (int i = 0; i < kAhead; ++i) {
      __builtin_prefetch(block.next_x + i * 1024 + s * kTileVector, 0, 2);
      __builtin_prefetch(block.next_y[i] + s * 16, 1);
    }
    x += block.x_step;
    more_x += block.more_step;
    weights += kBf16Step;
    more_weights += kBf16Step;
  }
  PAGELIFT_TILE_STORE(0, sums, kTileVector);
  PAGELIFT_TILE_STORE(1, sums + 256, kTileVector);
  if constexpr (Two) {
    PAGELIFT_TILE_STORE(2, sums + 512, kTileVector);
    PAGELIFT_TILE_STORE(3, sums + 768, kTileVector);
  }
}

}  // namespace pagelift::PAGELIFT_NAMESPACE

#endif
