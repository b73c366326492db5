// Tiles of packed weights against blocks of rows in 8 bits on the matrix unit.
#pragma once

#include "level/amx.h"
#include "level/codes.h"

#if defined(__AMX_INT8__)

namespace pagelift::PAGELIFT_NAMESPACE {

constexpr int64_t kAmxRows = 9;       // fewer rows meet the weights in registers sooner than the matrix unit is ready
constexpr int64_t kAmxInputs = 1024;  // that are unpacked at a time: 16 KiB, which stay in the first-level cache

struct alignas(64) AmxMemory {
  uint8_t panel[kAmxInputs * kTileColumns];
  int32_t dots[4][kTileRows * kTileColumns];
};

inline TileConfig packed_config(int64_t rows, int64_t chunk) {
  TileConfig config;
  for (int t = 0; t < 8; ++t) {
    config.row_bytes[t] = t == 4 || t == 5 ? (uint16_t)chunk : 64;
    config.rows[t] = t >= 6 ? (uint8_t)(chunk / 4) : (uint8_t)rows;
  }
  return config;
}

// The codes of a tile's groups as bytes, in the layout of a tile register.
template <int Bits>
PAGELIFT_INLINE void unpack_groups_of(const TileShape& shape, const uint8_t* tile, int64_t count, uint8_t* y) {
  for (int64_t g = 0; g < count; ++g, tile += shape.group_bytes) {
    ask_ahead(tile, shape.group_bytes);
    for (int64_t k = 0; k < shape.group; k += kTileStep, y += kTileStep * kTileColumns)
#pragma GCC unroll 8
      for (int v = 0; v < 8; ++v) {
        const U codes = codes_of<Bits>(tile + k * kTileColumns * Bits / 8, v);
        memcpy(y + v * kTileVector, &codes, sizeof codes);
      }
  }
}

// Groups of a tile as bytes, groups of a block of rows of x, and what scales their products.
struct AmxGroups {
  const TileShape& shape;
  int64_t rows, count;
  const uint8_t* x;
  const uint8_t* weights;
  int64_t weights_stride;  // bytes from group to group
  const uint8_t* floats;   // the first group's scales, then offsets; group_bytes from group to group
  Float type;
  const float *scales, *sums;  // (count, rows)
};

// Dot products of group g: (rows, 16) to `dots`. Groups that follow each other use tile registers of their own.
template <int Set>
PAGELIFT_INLINE void amx_dot(const AmxGroups& groups, int64_t g, int32_t* dots) {
  const int64_t chunk = groups.shape.chunk;
  const uint8_t* x = groups.x + g * groups.shape.group * groups.rows;
  const uint8_t* weights = groups.weights + g * groups.weights_stride;
  if constexpr (Set == 0) {
    PAGELIFT_TILE_ZERO(0);
    PAGELIFT_TILE_LOAD(4, x, chunk);
    PAGELIFT_TILE_LOAD(6, weights, kTileVector);
    PAGELIFT_TILE_DOT_BYTES(0, 4, 6);
  } else {
    PAGELIFT_TILE_ZERO(1);
    PAGELIFT_TILE_LOAD(5, x, chunk);
    PAGELIFT_TILE_LOAD(7, weights, kTileVector);
    PAGELIFT_TILE_DOT_BYTES(1, 5, 7);
  }
  if (groups.shape.group > chunk) {  // 128 inputs are two registers
    x += groups.rows * chunk;
    weights += chunk * kTileColumns;
    if constexpr (Set == 0) {
      PAGELIFT_TILE_LOAD(4, x, chunk);
      PAGELIFT_TILE_LOAD(6, weights, kTileVector);
      PAGELIFT_TILE_DOT_BYTES(0, 4, 6);
    } else {
      PAGELIFT_TILE_LOAD(5, x, chunk);
      PAGELIFT_TILE_LOAD(7, weights, kTileVector);
      PAGELIFT_TILE_DOT_BYTES(1, 5, 7);
    }
  }
  if constexpr (Set == 0)
    PAGELIFT_TILE_STORE(0, dots, kTileVector);
  else
    PAGELIFT_TILE_STORE(1, dots, kTileVector);
}

// All groups of one block of rows: y (rows, 16) goes on from what it holds. Whole: 16 rows, whose sums stay in registers.
template <bool Whole>
void amx_block(const AmxGroups& groups, AmxMemory& memory, float* y) {
  const int64_t rows = Whole ? kTileRows : groups.rows, count = groups.count;
  F acc[kTileRows];
  if constexpr (Whole) {
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r) acc[r] = load(y + r * kTileColumns);
  }
  const auto dot = [&](int64_t g) __attribute__((always_inline)) {
    if (g % 2 == 0)
      amx_dot<0>(groups, g, memory.dots[g % 4]);
    else
      amx_dot<1>(groups, g, memory.dots[g % 4]);
  };
  dot(0);
  if (count > 1) dot(1);
  for (int64_t g = 0; g < count; ++g) {
    if (g + 2 < count) dot(g + 2);
    const uint8_t* floats = groups.floats + g * groups.shape.group_bytes;
    const F scale = widen(floats, groups.type), offset = widen(floats + kTileColumns * groups.shape.float_bytes, groups.type);
    const int32_t* dots = memory.dots[g % 4];
    const float *scales = groups.scales + g * rows, *sums = groups.sums + g * rows;
    if constexpr (Whole) {
#pragma GCC unroll 16
      for (int r = 0; r < kTileRows; ++r) acc[r] = add_group(acc[r], load_as<I>(dots + r * kTileColumns), scale, offset, scales[r], sums[r]);
    } else {
      for (int64_t r = 0; r < rows; ++r, y += kTileColumns)
        store(y, add_group(load(y), load_as<I>(dots + r * kTileColumns), scale, offset, scales[r], sums[r]));
      y -= rows * kTileColumns;
    }
  }
  if constexpr (Whole) {
#pragma GCC unroll 16
    for (int r = 0; r < kTileRows; ++r) store(y + r * kTileColumns, acc[r]);
  }
}

// All rows against a tile: sums (rows, 16).
template <int Bits>
void amx_packed_tile(const TileJob& job, const TileShape& shape, const uint8_t* tile, float* sums) {
  const int64_t all_rows = job.x.rows, blocks = (all_rows + kTileRows - 1) / kTileRows, last_rows = block_rows(all_rows, blocks - 1);
  AmxMemory& memory = *(AmxMemory*)(((uintptr_t)(sums + blocks * kTileRows * kTileColumns) + 63) / 64 * 64);
  memset(sums, 0, all_rows * kTileColumns * sizeof(float));
  const int64_t per_panel = kAmxInputs / shape.group;
  int64_t configured = 0;
  for (int64_t g = 0; g < shape.groups; g += per_panel) {
    const int64_t count = per_panel < shape.groups - g ? per_panel : shape.groups - g;
    const uint8_t* from = tile + g * shape.group_bytes;
    if constexpr (Bits != 8) unpack_groups_of<Bits>(shape, from, count, memory.panel);
    for (int64_t b = 0; b < blocks; ++b) {
      const int64_t rows = b + 1 < blocks ? kTileRows : last_rows, at = b * kTileRows * shape.groups + g * rows;
      if (rows != configured) configure_tiles(packed_config(configured = rows, shape.chunk));
      const AmxGroups groups{shape,
                             rows,
                             count,
                             job.x.codes + b * kTileRows * shape.row_bytes + g * shape.group * rows,
                             Bits == 8 ? from : memory.panel,
                             Bits == 8 ? shape.group_bytes : shape.group * kTileColumns,
                             from + shape.codes_bytes,
                             job.matrix->type,
                             job.x.scales + at,
                             job.x.sums + at};
      (rows == kTileRows ? amx_block<true> : amx_block<false>)(groups, memory, sums + b * kTileRows * kTileColumns);
    }
  }
  release_tiles();
}

}  // namespace pagelift::PAGELIFT_NAMESPACE

#endif
