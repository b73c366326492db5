// Matrices in the layout of matrix instructions. Sixteen rows of a matrix (columns of the result) make a tile; along its inputs it
// is cut into groups, which follow each other in memory:
//   packed: the codes of a group in steps of 32 inputs, then sixteen scales and sixteen offsets of the matrix's float type. A step
//     is, unpacked, 8 vectors of 64 bytes: vector v holds inputs 4 v to 4 v + 3 of each of the sixteen rows. Vectors are packed
//     into planes of 4, 2 or 1 bit (5 bits: 4 + 1), as many of them in one vector as fit its bytes, low bits first.
//   dense: groups of 32 inputs as bf16, 16 vectors of 64 bytes: vector v holds inputs 2 v and 2 v + 1 of each of the sixteen rows.
// Rows of x are laid out for the same instructions, see RowCodes: in 8 bits for packed tiles, or rounded to bf16 for dense tiles, and
// for packed ones that are unpacked to dense tiles on the way.
#pragma once

#include <cstdint>

#include "kernels.h"

namespace pagelift {

constexpr int64_t kTileColumns = 16;
constexpr int64_t kTileRows = 16;
constexpr int64_t kTileStep = 32;    // inputs that are unpacked together
constexpr int64_t kTileVector = 64;  // bytes
constexpr int64_t kBf16Step = 16 * kTileVector;  // bytes of kTileStep inputs of a dense tile

struct TileShape {
  int64_t tiles, groups;
  int64_t group;        // inputs
  int64_t codes_bytes;  // of a group in a tile
  int64_t float_bytes;  // of a scale
  int64_t group_bytes, tile_bytes, bytes;
  int64_t chunk;      // bytes of a row of x in 8 bits that one instruction takes: a row of a tile register
  int64_t row_bytes;  // of a row of x in 8 bits

  // Inlined always, like all that is shared by files of several levels: code for one level must not run on another.
  __attribute__((always_inline)) explicit TileShape(const Matrix& m) {
    const bool dense = m.bits == 0;
    tiles = (m.out + kTileColumns - 1) / kTileColumns;
    group = dense ? kTileStep : m.group_size;
    groups = (m.in + group - 1) / group;
    float_bytes = m.type == Float::f32 ? 4 : 2;
    codes_bytes = group * kTileColumns * (dense ? 16 : m.bits) / 8;
    group_bytes = codes_bytes + (dense ? 0 : 2 * kTileColumns * float_bytes);
    tile_bytes = groups * group_bytes;
    bytes = tiles * tile_bytes;
    chunk = group < kTileVector ? group : kTileVector;
    row_bytes = groups * group;
  }
};

// Rows of x in blocks of 16, the last one smaller. A block of R rows in 8 bits: per chunk, `chunk` bytes of each row; per group, R
// scales and R sums. x is about scale * code; a sum is scale * (the sum of a group's codes). In bf16: per 32 inputs, 64 bytes of each
// row; inputs up to a multiple of 32 are 0. In float32: blocks of kFloatRows rows, per input one float of each row, zeros as in bf16.
struct RowCodes {
  int64_t rows;
  uint8_t* codes;
  float *scales, *sums;  // in 8 bits only
};
constexpr int64_t kFloatRows = 5;  // whose sums fit the registers
inline __attribute__((always_inline)) int64_t bf16_row_bytes(int64_t in) { return (in + kTileStep - 1) / kTileStep * kTileVector; }
inline __attribute__((always_inline)) int64_t float_row_bytes(int64_t in) { return 2 * bf16_row_bytes(in); }
inline __attribute__((always_inline)) int64_t block_rows(int64_t rows, int64_t block) {
  const int64_t left = rows - block * kTileRows;
  return left < kTileRows ? left : kTileRows;
}

}  // namespace pagelift
