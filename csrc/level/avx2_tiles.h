// Tiles of packed weights against rows in 8 bits, without an instruction for dot products of four bytes: products are added in
// 16 bits as long as nothing can overflow, and in 32 bits after that. The integers are those of every other level.
#pragma once

#include "level/codes.h"
#include "level/finish.h"

#if defined(__AVX2__) && !defined(__AVX512F__)

namespace pagelift::PAGELIFT_NAMESPACE {

constexpr int kRegisterRows = 4;          // rows of x whose sums stay in registers
constexpr int64_t kUnpackFrom = 9;        // from so many rows on, unpacking the codes once pays
constexpr int64_t kInputs = 512;          // that meet all rows before the next ones do; unpacked 8 KiB, 16 of 8 bits

// Codes of 8 bits are taken as two halves of 4 bits.
template <int Bits>
constexpr int kHalves = Bits == 8 ? 2 : 1;
// How many products of two codes by two bytes of x, 2 * 127 * (2^Bits - 1) at most, 16 bits can hold.
template <int Bits>
constexpr int kInShort = Bits == 5 ? 4 : Bits == 6 ? 2 : 8;

// Vector v (0 to 7) of a step, of one half. step: where the level's part of the first vector begins.
template <int Bits>
PAGELIFT_INLINE U half_of(const uint8_t* step, int half, int v) {
  const U codes = codes_of<Bits>(step, v);
  if constexpr (Bits == 8) return (half ? codes >> 4 : codes) & 0x0f0f0f0fu;
  return codes;
}

// Sums are added in the order that is written: g++ would make trees of them, and keep all products in memory until then.
PAGELIFT_INLINE void in_order(__m256i& sum) { asm("" : "+x"(sum)); }

// dots[r][p] += 32 inputs of row r by those of part p of the columns. x: one pointer for each row. weights(half, v, p): 32 codes.
template <int Bits, int R, class Weights>
PAGELIFT_INLINE void add_step(I (&dots)[R][kParts], const uint8_t* (&x)[R], Weights weights) {
#pragma GCC unroll 2
  for (int half = 0; half < kHalves<Bits>; ++half)
#pragma GCC unroll 4
    for (int first = 0; first < 8; first += kInShort<Bits>) {
      __m256i sums[R][kParts] = {};
#pragma GCC unroll 8
      for (int v = first; v < first + kInShort<Bits>; ++v) {
        const __m256i w[kParts] = {(__m256i)weights(half, v, 0), (__m256i)weights(half, v, 1)};
#pragma GCC unroll 4
        for (int r = 0; r < R; ++r) {
          const __m256i four = _mm256_set1_epi32(load_as<int32_t>(x[r] + 4 * v));
#pragma GCC unroll 2
          for (int p = 0; p < kParts; ++p) {
            sums[r][p] = _mm256_add_epi16(sums[r][p], _mm256_maddubs_epi16(w[p], four));
            in_order(sums[r][p]);
          }
        }
      }
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 2
        for (int p = 0; p < kParts; ++p) dots[r][p] += (I)_mm256_madd_epi16(sums[r][p], _mm256_set1_epi16(half ? 16 : 1));
    }
  for (int r = 0; r < R; ++r) x[r] += kTileStep;
}

// Groups of a tile, packed or unpacked, and of rows of x: what one call multiplies.
struct TileGroups {
  const TileShape& shape;
  Float type;
  int64_t count;
  const uint8_t* tile;      // the first group; its floats are read here
  const uint8_t* unpacked;  // its codes as vectors of bytes, or nullptr
  int64_t rows;             // of the block that x lies in
  const uint8_t* x;
  const float *scales, *sums;
};

// y (R, 16) goes on from what it holds.
template <int Bits, int R, bool Unpacked>
void add_groups(const TileGroups& job, float* y) {
  const TileShape& shape = job.shape;
  constexpr int64_t kStepBytes = Unpacked ? kTileStep * kTileColumns * kHalves<Bits> : kTileStep * kTileColumns * Bits / 8;
  const uint8_t *tile = job.tile, *unpacked = job.unpacked;
  const uint8_t* x[R];
  for (int r = 0; r < R; ++r) x[r] = job.x + r * shape.chunk;
  F acc[R][kParts];
  for (int r = 0; r < R; ++r)
    for (int p = 0; p < kParts; ++p) acc[r][p] = load(y + r * kTileColumns + p * W);
  for (int64_t g = 0; g < job.count; ++g, tile += shape.group_bytes) {
    if constexpr (!Unpacked) ask_ahead(tile, shape.group_bytes);
    I dots[R][kParts] = {};
    const uint8_t* step = Unpacked ? unpacked : tile;
    for (int64_t first = 0; first < shape.group; first += shape.chunk) {
      for (int64_t k = 0; k < shape.chunk; k += kTileStep, step += kStepBytes)
        add_step<Bits>(dots, x, [&](int half, int v, int p) __attribute__((always_inline)) {
          if constexpr (Unpacked) return load_as<U>(step + (half * 8 + v) * kTileVector + p * W * 4);
          return half_of<Bits>(step + p * W * 4, half, v);
        });
      for (int r = 0; r < R; ++r) x[r] += (job.rows - 1) * shape.chunk;
    }
    if constexpr (Unpacked) unpacked = step;
    const uint8_t* floats = tile + shape.codes_bytes;
    for (int p = 0; p < kParts; ++p) {
      const F scale = widen(floats + p * W * shape.float_bytes, job.type);
      const F offset = widen(floats + (kTileColumns + p * W) * shape.float_bytes, job.type);
#pragma GCC unroll 4
      for (int r = 0; r < R; ++r)
        acc[r][p] = add_group(acc[r][p], dots[r][p], scale, offset, job.scales[g * job.rows + r], job.sums[g * job.rows + r]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int p = 0; p < kParts; ++p) store(y + r * kTileColumns + p * W, acc[r][p]);
}

template <int Bits>
void unpack_bytes(const TileShape& shape, const uint8_t* tile, int64_t count, uint8_t* y) {
  for (int64_t g = 0; g < count; ++g, tile += shape.group_bytes) {
    ask_ahead(tile, shape.group_bytes);
    for (int64_t k = 0; k < shape.group; k += kTileStep)
      for (int half = 0; half < kHalves<Bits>; ++half)
#pragma GCC unroll 8
        for (int v = 0; v < 8; ++v, y += kTileVector)
#pragma GCC unroll 2
          for (int p = 0; p < kParts; ++p) {
            const U codes = half_of<Bits>(tile + k * kTileColumns * Bits / 8 + p * W * 4, half, v);
            memcpy(y + p * W * 4, &codes, sizeof codes);
          }
  }
}

// All rows against a tile: sums (rows, 16). Few rows meet the packed codes, more of them meet codes that are unpacked once.
template <int Bits>
void avx2_packed_tile(const TileJob& job, const TileShape& shape, const uint8_t* tile, float* sums) {
  const int64_t all_rows = job.x.rows, blocks = (all_rows + kTileRows - 1) / kTileRows;
  const bool unpack = all_rows >= kUnpackFrom;
  uint8_t* unpacked = (uint8_t*)(((uintptr_t)(sums + blocks * kTileRows * kTileColumns) + 63) / 64 * 64);
  memset(sums, 0, all_rows * kTileColumns * sizeof(float));
  const int64_t at_once = all_rows > kRegisterRows ? kInputs / shape.group : shape.groups;
  for (int64_t g = 0; g < shape.groups; g += at_once) {
    const int64_t count = least(at_once, shape.groups - g);
    if (unpack) unpack_bytes<Bits>(shape, tile + g * shape.group_bytes, count, unpacked);
    for (int64_t first = 0; first < all_rows; first += kRegisterRows) {
      const int64_t block = first / kTileRows, in_block = first % kTileRows, rows = block_rows(all_rows, block);
      const int64_t floats = block * kTileRows * shape.groups + g * rows + in_block;
      const TileGroups groups{shape,
                              job.matrix->type,
                              count,
                              tile + g * shape.group_bytes,
                              unpacked,
                              rows,
                              job.x.codes + block * kTileRows * shape.row_bytes + g * shape.group * rows + in_block * shape.chunk,
                              job.x.scales + floats,
                              job.x.sums + floats};
      float* y = sums + first * kTileColumns;
      switch (least(kRegisterRows, rows - in_block)) {
        case 1:
          unpack ? add_groups<Bits, 1, true>(groups, y) : add_groups<Bits, 1, false>(groups, y);
          break;
        case 2:
          unpack ? add_groups<Bits, 2, true>(groups, y) : add_groups<Bits, 2, false>(groups, y);
          break;
        case 3:
          unpack ? add_groups<Bits, 3, true>(groups, y) : add_groups<Bits, 3, false>(groups, y);
          break;
        default:
          unpack ? add_groups<Bits, 4, true>(groups, y) : add_groups<Bits, 4, false>(groups, y);
      }
    }
  }
}

}  // namespace pagelift::PAGELIFT_NAMESPACE

#endif
