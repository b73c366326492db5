// Linear layers: a panel of weight rows is unpacked to float32 once, then meets all rows of x.
#include "kernels.h"
#include "level/level.h"
#include "level/simd.h"

namespace pagelift::PAGELIFT_NAMESPACE {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "packed weights and safetensors files are little-endian");

namespace {

template <F (*Widen)(H)>
void unpack_halves(const uint8_t* p, int64_t n, float* y) {
  int64_t i = 0;
  for (; i + W <= n; i += W) store(y + i, Widen(load_as<H>(p + 2 * i)));
  for (; i < n; ++i) {
    H half = {};
    half[0] = load_as<uint16_t>(p + 2 * i);
    y[i] = Widen(half)[0];
  }
}

F bf16(H h) { return widen_bf16(h); }
F f16(H h) { return widen_f16(h); }

// Floats `first` to `first + n - 1` of an array of any type.
void widen(const uint8_t* values, Float type, int64_t first, int64_t n, float* y) {
  if (type == Float::f32) memcpy(y, values + 4 * first, n * 4);
  if (type == Float::f16) unpack_halves<f16>(values + 2 * first, n, y);
  if (type == Float::bf16) unpack_halves<bf16>(values + 2 * first, n, y);
}

// Bits bytes as one little-endian number, put together in registers: a copy of odd size would go through memory and stall.
template <int Bits>
PAGELIFT_INLINE uint64_t load_codes(const uint8_t* p) {
  if constexpr (Bits == 2) return load_as<uint16_t>(p);
  if constexpr (Bits == 3) return load_as<uint16_t>(p) | (uint32_t)p[2] << 16;
  if constexpr (Bits == 4) return load_as<uint32_t>(p);
  if constexpr (Bits == 5) return load_as<uint32_t>(p) | (uint64_t)p[4] << 32;
  if constexpr (Bits == 6) return load_as<uint32_t>(p) | (uint64_t)load_as<uint16_t>(p + 4) << 32;
  return load_as<uint64_t>(p);
}

typedef uint32_t U8 __attribute__((vector_size(32)));
typedef int32_t I8 __attribute__((vector_size(32)));

// The next codes as one vector, at the low end of each 32-bit lane with nothing above. Eight codes are exactly Bits bytes.
template <int Bits>
struct Codes {
  static constexpr int kCount = 8;
  typedef I8 Lanes;
  typedef F8 Values;
  static PAGELIFT_INLINE Lanes next(const uint8_t* p) {
    const uint64_t eight = load_codes<Bits>(p);
    const uint32_t low = (uint32_t)eight, high = (uint32_t)(eight >> (4 * Bits));  // each half fits a lane
    const U8 lanes = U8{low, low, low, low, high, high, high, high} >> U8{0, Bits, 2 * Bits, 3 * Bits, 0, Bits, 2 * Bits, 3 * Bits};
    return (I8)(lanes & ((1u << Bits) - 1));
  }
};

#if defined(__AVX512F__)
// Sixteen at a time where eight codes fit a lane.
template <int Bits>
  requires(Bits <= 4)
struct Codes<Bits> {
  static constexpr int kCount = 16;
  typedef I Lanes;
  typedef F Values;
  static PAGELIFT_INLINE Lanes next(const uint8_t* p) {
    // Both halves whole, one masked in: from sixteen scalars g++ would build the vector in memory.
    const U first = U{} + (uint32_t)load_codes<Bits>(p), second = U{} + (uint32_t)load_codes<Bits>(p + Bits);
    const U upper = {0, 0, 0, 0, 0, 0, 0, 0, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u, ~0u};
    constexpr uint32_t s = Bits;
    const U shifts = {0, s, 2 * s, 3 * s, 4 * s, 5 * s, 6 * s, 7 * s, 0, s, 2 * s, 3 * s, 4 * s, 5 * s, 6 * s, 7 * s};
    return (I)(((first & ~upper) | (second & upper)) >> shifts & ((1u << Bits) - 1));
  }
};
#endif

constexpr int64_t kGroups = kLinearBlock / 32;  // the most in a block

// `groups` groups of one row.
template <int Bits>
void unpack_groups(const uint8_t* codes, int64_t size, int64_t groups, const float* scales, const float* offsets, float* y) {
  using Next = Codes<Bits>;
  for (int64_t g = 0; g < groups; ++g)
    for (int64_t i = 0; i < size; i += Next::kCount, codes += Next::kCount / 8 * Bits, y += Next::kCount) {
      const typename Next::Values values = __builtin_convertvector(Next::next(codes), typename Next::Values) * scales[g] + offsets[g];
      memcpy(y, &values, sizeof values);
    }
}

// Weights k0 to k0 + n - 1 of one row, at most kLinearBlock. For packed matrices both are multiples of the group size.
void unpack(const Matrix& m, int64_t row, int64_t k0, int64_t n, float* y) {
  const int64_t first = row * m.in + k0;
  if (m.bits == 0) return widen(m.values, m.type, first, n, y);
  const uint8_t* codes = m.values + first / 8 * m.bits;
  const int64_t groups = n / m.group_size;
  float scales[kGroups], offsets[kGroups];
  widen(m.scales, m.type, first / m.group_size, groups, scales);
  widen(m.offsets, m.type, first / m.group_size, groups, offsets);
  switch (m.bits) {
    case 2:
      return unpack_groups<2>(codes, m.group_size, groups, scales, offsets, y);
    case 3:
      return unpack_groups<3>(codes, m.group_size, groups, scales, offsets, y);
    case 4:
      return unpack_groups<4>(codes, m.group_size, groups, scales, offsets, y);
    case 5:
      return unpack_groups<5>(codes, m.group_size, groups, scales, offsets, y);
    case 6:
      return unpack_groups<6>(codes, m.group_size, groups, scales, offsets, y);
    case 8:
      return unpack_groups<8>(codes, m.group_size, groups, scales, offsets, y);
  }
}

// Dot products of R rows of x with C rows of weights, each in one vector of partial sums.
template <int R, int C>
void dot_tile(const float* x, int64_t x_stride, const float* w, int64_t n, float (&dots)[4][4]) {
  F acc[R][C] = {};
  int64_t i = 0;
  for (; i + W <= n; i += W) {
    F weights[C];
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) weights[c] = load(w + c * kLinearBlock + i);
#pragma GCC unroll 4
    for (int r = 0; r < R; ++r) {
      const F row = load(x + r * x_stride + i);
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) acc[r][c] += row * weights[c];
    }
  }
  for (int r = 0; r < R; ++r)
    for (int c = 0; c < C; ++c) {
      if (i < n) acc[r][c] += load_first(x + r * x_stride + i, n - i) * load_first(w + c * kLinearBlock + i, n - i);
      dots[r][c] = sum(acc[r][c]);
    }
}

using Tile = void (*)(const float*, int64_t, const float*, int64_t, float (&)[4][4]);
constexpr int R = W == 4 ? 2 : 4;  // rows of x in a tile: what fits the registers
constexpr Tile kTiles[4][4] = {
    {dot_tile<1, 1>, dot_tile<1, 2>, dot_tile<1, 3>, dot_tile<1, 4>},
    {dot_tile<2, 1>, dot_tile<2, 2>, dot_tile<2, 3>, dot_tile<2, 4>},
    {dot_tile<3, 1>, dot_tile<3, 2>, dot_tile<3, 3>, dot_tile<3, 4>},
    {dot_tile<4, 1>, dot_tile<4, 2>, dot_tile<4, 3>, dot_tile<4, 4>},
};

int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

// All rows of x against the unpacked panel of columns n0 to n0 + width - 1, weights k0 to k0 + n - 1.
void panel_dots(const LinearJob& job, int64_t n0, int64_t width, int64_t k0, int64_t n, const float* panel) {
  float dots[4][4];
  for (int64_t r = 0; r < job.rows; r += R) {
    const int64_t rows = least(R, job.rows - r);
    for (int64_t c = 0; c < width; c += 4) {
      const int64_t columns = least(4, width - c);
      const float* x = job.x + r * job.matrix->in + k0;
      kTiles[rows - 1][columns - 1](x, job.matrix->in, panel + c * kLinearBlock, n, dots);
      for (int64_t i = 0; i < rows; ++i)
        for (int64_t j = 0; j < columns; ++j) {
          float& y = job.y[(r + i) * job.count + n0 + c + j];
          y = k0 == 0 ? dots[i][j] : y + dots[i][j];
        }
    }
  }
}

void finish(const LinearJob& job, int64_t n0, int64_t width) {
  for (int64_t r = 0; r < job.rows; ++r)
    for (int64_t n = n0; n < n0 + width; ++n) {
      float& y = job.y[r * job.count + n];
      if (job.bias) y += job.bias[job.columns ? job.columns[n] : n];
      if (job.residual) y += job.residual[r * job.count + n];
    }
}

}  // namespace

void unpack_row(const Matrix& matrix, int64_t row, float* y) {
  for (int64_t k = 0; k < matrix.in; k += kLinearBlock) unpack(matrix, row, k, least(kLinearBlock, matrix.in - k), y + k);
}

void linear(const LinearJob& job, int64_t first, int64_t last, float* scratch) {
  const Matrix& m = *job.matrix;
  const int64_t panel = job.rows <= R ? 4 : kLinearPanel;  // a small panel stays in the first-level cache
  for (int64_t n0 = first; n0 < last; n0 += panel) {
    const int64_t width = least(panel, last - n0);
    for (int64_t k0 = 0; k0 < m.in; k0 += kLinearBlock) {
      const int64_t n = least(kLinearBlock, m.in - k0);
      for (int64_t c = 0; c < width; ++c) unpack(m, job.columns ? job.columns[n0 + c] : n0 + c, k0, n, scratch + c * kLinearBlock);
      panel_dots(job, n0, width, k0, n, scratch);
    }
    finish(job, n0, width);
  }
}

}  // namespace pagelift::PAGELIFT_NAMESPACE
