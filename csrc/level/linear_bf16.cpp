// Linear layers over tiles with rows of x in bf16: tiles of weights are bf16, or are unpacked to it, a panel at a time for all rows.
// A sum runs over the inputs in one order whatever the rows are, so a row has the same bits in any call.
#include "level/amx_bf16.h"
#include "level/codes.h"
#include "level/finish.h"
#include "level/level.h"

namespace pagelift::PAGELIFT_NAMESPACE {

#if defined(__AMX_BF16__)

namespace {

// Codes become weights in two steps: 1 + code / 512 by putting them into a mantissa, then times `scale` plus `offset`.
struct GroupFloats {
  F scale, offset;

  PAGELIFT_INLINE GroupFloats(const uint8_t* floats, const TileShape& shape, Float type) {
    scale = widen(floats, type) * 512.0f;
    offset = widen(floats + kTileColumns * shape.float_bytes, type) - scale;
  }

  // Weights of the codes in byte number Byte of each column.
  template <int Byte>
  PAGELIFT_INLINE F weights(U codes) const {
    constexpr int shift = 14 - 8 * Byte;
    U moved;
    if constexpr (shift < 0)
      moved = codes >> -shift;
    else
      moved = codes << shift;
    const __m512i mask = _mm512_set1_epi32(0xff << 14), one = _mm512_set1_epi32(0x3f800000);
    return (F)_mm512_ternarylogic_epi32((__m512i)moved, mask, one, 0xea) * scale + offset;  // (moved & mask) | one
  }
};

// Weights of two inputs of each column as bf16, the nearest.
PAGELIFT_INLINE U join_bf16(F even, F odd) {
  const U low = ((U)even + 0x8000u) >> 16, high = (U)odd + 0x8000u;
  return (U)_mm512_mask_blend_epi16(0xaaaaaaaau, (__m512i)low, (__m512i)high);
}

// `count` groups of a tile in the layout of a dense tile.
template <int Bits>
void unpack_groups(const TileShape& shape, Float type, const uint8_t* tile, int64_t count, uint8_t* y) {
  for (int64_t g = 0; g < count; ++g, tile += shape.group_bytes) {
    ask_ahead(tile, shape.group_bytes);
    const GroupFloats floats(tile + shape.codes_bytes, shape, type);
    for (int64_t k = 0; k < shape.group; k += kTileStep)
#pragma GCC unroll 8
      for (int v = 0; v < 8; ++v, y += 2 * kTileVector) {
        const U codes = codes_of<Bits>(tile + k * kTileColumns * Bits / 8, v);
        const U first = join_bf16(floats.weights<0>(codes), floats.weights<1>(codes));
        const U second = join_bf16(floats.weights<2>(codes), floats.weights<3>(codes));
        memcpy(y, &first, kTileVector);
        memcpy(y + kTileVector, &second, kTileVector);
      }
  }
}

using UnpackGroups = void (*)(const TileShape&, Float, const uint8_t*, int64_t, uint8_t*);
UnpackGroups unpack_groups_of(int bits) {
  switch (bits) {
    case 2:
      return unpack_groups<2>;
    case 3:
      return unpack_groups<3>;
    case 4:
      return unpack_groups<4>;
    case 5:
      return unpack_groups<5>;
    case 6:
      return unpack_groups<6>;
    default:
      return unpack_groups<8>;
  }
}

// Up to kPanelTiles tiles of a job, their weights for some inputs, and sums of all rows: for each pair of blocks of rows and each
// pair of tiles (2, 2, 16, 16).
class Panel {
 public:
  Panel(const TileJob& job, const TileShape& shape, int64_t first, int64_t count, float* scratch)
      : job_(job), shape_(shape), first_(first), count_(count), sums_((float*)(((uintptr_t)scratch + 63) / 64 * 64)) {
    unpacked_ = (uint8_t*)(sums_ + blocks() * pairs() * 1024);
  }

  void run() {
    const int64_t inputs = shape_.groups * shape_.group;
    for (int64_t k = 0; k < inputs; k += kPanelInputs) {
      take_weights(k, k + kPanelInputs < inputs ? kPanelInputs : inputs - k);
      for (int64_t b = 0; b < blocks(); ++b) {
        multiply(b, k);
        if (k + kPanelInputs >= inputs) finish_rows(b);
      }
    }
  }

 private:
  int64_t pairs() const { return (count_ + 1) / 2; }
  int64_t blocks() const { return (job_.x.rows + 31) / 32; }
  float* sums(int64_t b, int64_t pair) const { return sums_ + (b * pairs() + pair) * 1024; }
  int64_t rows(int64_t block) const { return block_rows(job_.x.rows, block); }

  void take_weights(int64_t k, int64_t inputs) {
    steps_ = inputs / kTileStep;
    for (int64_t t = 0; t < count_; ++t) {
      const int64_t number = job_.tiles ? job_.tiles[first_ + t] : first_ + t;
      const uint8_t* tile = job_.matrix->tiles + number * shape_.tile_bytes + k / shape_.group * shape_.group_bytes;
      if (job_.matrix->bits > 0) {
        uint8_t* to = unpacked_ + t * steps_ * kBf16Step;
        unpack_groups_of(job_.matrix->bits)(shape_, job_.matrix->type, tile, inputs / shape_.group, to);
        tile = to;
      }
      weights_[t] = tile;
    }
    if (count_ % 2) weights_[count_] = weights_[count_ - 1];  // its sums are not looked at
  }

  // Block number `block` of x from input k on.
  const uint8_t* x(int64_t block, int64_t k) const {
    return job_.x.codes + block * kTileRows * bf16_row_bytes(job_.matrix->in) + k * 2 * rows(block);
  }
  float* y(int64_t row) const {
    return job_.y + (job_.rows ? job_.rows[least(row, job_.x.rows - 1)] : least(row, job_.x.rows - 1)) * job_.stride + first_ * kTileColumns;
  }

  // A pair of blocks of rows, from input k on, by all tiles.
  void multiply(int64_t b, int64_t k) {
    const int64_t count = rows(2 * b), more = job_.x.rows > 32 * b + kTileRows ? rows(2 * b + 1) : 0;
    Bf16Block block{x(2 * b, k), x(2 * b + 1, k), count * kTileVector, more * kTileVector, nullptr, nullptr, steps_, nullptr, {}};
    const bool last = k + kPanelInputs >= shape_.groups * shape_.group;
    configure_tiles(bf16_config(count, more ? more : count));
    for (int64_t p = 0; p < pairs(); ++p) {
      block.weights = weights_[2 * p];
      block.more_weights = weights_[2 * p + 1];
      block.next_x = (b + 1 < blocks() ? x(2 * b + 2 + p / 4, k) : x(p / 4, k + kPanelInputs)) + p % 4 * kAhead * 1024;
      for (int i = 0; i < kAhead; ++i) block.next_y[i] = last ? y(32 * b + p * kAhead + i) : sums(b, p + 1) + i * 256;
      (more ? amx_bf16_block<true> : amx_bf16_block<false>)(block, k == 0, sums(b, p));
    }
    release_tiles();
  }

  void finish_rows(int64_t b) const {
    for (int64_t t = 0; t < count_; ++t)
      for (int64_t half = 0; half < 2 && job_.x.rows > 32 * b + half * kTileRows; ++half)
        finish(job_, first_ + t, 32 * b + half * kTileRows, rows(2 * b + half), sums(b, t / 2) + (2 * half + t % 2) * 256);
  }

  const TileJob& job_;
  const TileShape& shape_;
  const int64_t first_, count_;
  float* sums_;
  uint8_t* unpacked_;
  int64_t steps_ = 0;
  const uint8_t* weights_[kPanelTiles + 1];
};

}  // namespace

void linear_dense(const TileJob& job, int64_t first, int64_t last, float* scratch) {
  const TileShape shape(*job.matrix);
  for (int64_t at = first; at < last; at += kPanelTiles) Panel(job, shape, at, least(kPanelTiles, last - at), scratch).run();
}

void dense_row(const float* x, int64_t in, int64_t row, const RowCodes& y) {
  const int64_t block = row / kTileRows, rows = block_rows(y.rows, block), row_bytes = bf16_row_bytes(in);
  uint8_t* to = y.codes + block * kTileRows * row_bytes + row % kTileRows * kTileVector;
  for (int64_t k = 0; k < in; k += kTileStep, to += rows * kTileVector)
    for (int64_t i = 0; i < kTileStep; i += W) {
      const int64_t left = in - k - i;
      const H halves = narrow_bf16(left >= W ? load(x + k + i) : left > 0 ? load_first(x + k + i, left) : F{});
      memcpy(to + 2 * i, &halves, sizeof halves);
    }
}

#endif

}  // namespace pagelift::PAGELIFT_NAMESPACE
