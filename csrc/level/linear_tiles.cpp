// Linear layers over packed tiles (csrc/tiles.h) with rows of x in 8 bits: dot products of codes in integers, scaled and added per
// group in float32. All kernels here give a row the same bits.
#include "level/amx_tiles.h"
#include "level/avx2_tiles.h"
#include "level/codes.h"
#include "level/finish.h"
#include "level/level.h"

namespace pagelift::PAGELIFT_NAMESPACE {

namespace {

constexpr int kRows = W == 16 ? 8 : W == 8 ? 4 : 2;  // rows of x that meet unpacked weights in registers

// R rows of a block, from row `first`, against a tile: y (R, 16).
template <int Bits, int R>
void dot_rows(const TileJob& job, const TileShape& shape, const uint8_t* tile, int64_t block, int64_t first, float* y) {
  const int64_t rows = block_rows(job.x.rows, block), groups = shape.groups, chunk = shape.chunk;
  const uint8_t* codes = job.x.codes + block * kTileRows * shape.row_bytes + first * chunk;
  const float* scales = job.x.scales + block * kTileRows * groups + first;
  const float* sums = job.x.sums + block * kTileRows * groups + first;
  F acc[R][kParts] = {};
  for (int64_t g = 0; g < groups; ++g, tile += shape.group_bytes) {
    ask_ahead(tile, shape.group_bytes);
    I dots[R][kParts] = {};
    for (int64_t k = 0; k < shape.group; k += kTileStep) {
      const uint8_t* x = codes + (g * shape.group + k) / chunk * rows * chunk + k % chunk;
      const uint8_t* step = tile + k * kTileColumns * Bits / 8;
#pragma GCC unroll 8
      for (int v = 0; v < 8; ++v)
#pragma GCC unroll 4
        for (int p = 0; p < kParts; ++p) {
          const U weights = codes_of<Bits>(step + p * W * 4, v);
#pragma GCC unroll 8
          for (int r = 0; r < R; ++r) dots[r][p] = dot4<Bits <= 6>(dots[r][p], weights, load_as<uint32_t>(x + r * chunk + 4 * v));
        }
    }
    const uint8_t* floats = tile + shape.codes_bytes;
#pragma GCC unroll 4
    for (int p = 0; p < kParts; ++p) {
      const F scale = widen(floats + p * W * shape.float_bytes, job.matrix->type);
      const F offset = widen(floats + (kTileColumns + p * W) * shape.float_bytes, job.matrix->type);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r) acc[r][p] = add_group(acc[r][p], dots[r][p], scale, offset, scales[g * rows + r], sums[g * rows + r]);
    }
  }
  for (int r = 0; r < R; ++r)
    for (int p = 0; p < kParts; ++p) store(y + r * kTileColumns + p * W, acc[r][p]);
}

template <int Bits>
struct Rows {
  using Kernel = void (*)(const TileJob&, const TileShape&, const uint8_t*, int64_t, int64_t, float*);
  static constexpr Kernel kernels[8] = {dot_rows<Bits, 1>,
                                        dot_rows<Bits, 2>,
                                        dot_rows<Bits, kRows < 3 ? 1 : 3>,
                                        dot_rows<Bits, kRows < 4 ? 1 : 4>,
                                        dot_rows<Bits, kRows < 5 ? 1 : 5>,
                                        dot_rows<Bits, kRows < 6 ? 1 : 6>,
                                        dot_rows<Bits, kRows < 7 ? 1 : 7>,
                                        dot_rows<Bits, kRows < 8 ? 1 : 8>};
};

template <int Bits>
void packed_tile(const TileJob& job, const TileShape& shape, const uint8_t* tile, float* scratch) {
#if defined(__AVX2__) && !defined(__AVX512F__)
  avx2_packed_tile<Bits>(job, shape, tile, scratch);
#else
  const int64_t blocks = (job.x.rows + kTileRows - 1) / kTileRows;
#if defined(__AMX_INT8__)
  if (job.x.rows >= kAmxRows) return amx_packed_tile<Bits>(job, shape, tile, scratch);
#endif
  for (int64_t b = 0; b < blocks; ++b)
    for (int64_t r = 0; r < block_rows(job.x.rows, b); r += kRows) {
      const int64_t count = least(kRows, block_rows(job.x.rows, b) - r);
      Rows<Bits>::kernels[count - 1](job, shape, tile, b, r, scratch + (b * kTileRows + r) * kTileColumns);
    }
#endif
}

using PackedTile = void (*)(const TileJob&, const TileShape&, const uint8_t*, float*);
PackedTile packed_tile_of(int bits) {
  switch (bits) {
    case 2:
      return packed_tile<2>;
    case 3:
      return packed_tile<3>;
    case 4:
      return packed_tile<4>;
    case 5:
      return packed_tile<5>;
    case 6:
      return packed_tile<6>;
    default:
      return packed_tile<8>;
  }
}

}  // namespace

void linear_tiles(const TileJob& job, int64_t first, int64_t last, float* scratch) {
  const TileShape shape(*job.matrix);
  const PackedTile run = packed_tile_of(job.matrix->bits);
  for (int64_t at = first; at < last; ++at) {
    run(job, shape, job.matrix->tiles + (job.tiles ? job.tiles[at] : at) * shape.tile_bytes, scratch);
    finish(job, at, 0, job.x.rows, scratch);
  }
}

}  // namespace pagelift::PAGELIFT_NAMESPACE
