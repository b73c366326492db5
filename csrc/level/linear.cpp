// Linear layers: a panel of weight rows is unpacked to float32 once, then meets all rows of x.
#include "kernels.h"
#include "level/level.h"
#include "level/simd.h"

namespace pagelift::PAGELIFT_NAMESPACE {

static_assert(__BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__, "packed weights and safetensors files are little-endian");

namespace {

float widen(const uint8_t* values, Float type, int64_t index) {
  if (type == Float::f32) return load_as<float>(values + 4 * index);
  H half = {};
  half[0] = load_as<uint16_t>(values + 2 * index);
  return (type == Float::bf16 ? widen_bf16(half) : widen_f16(half))[0];
}

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

typedef uint32_t U8 __attribute__((vector_size(32)));
typedef int32_t I8 __attribute__((vector_size(32)));

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

// `groups` groups of one row. Eight codes are exactly Bits bytes; each half of them fits a 32-bit lane.
template <int Bits>
void unpack_groups(const uint8_t* codes, const Matrix& m, int64_t first_group, int64_t groups, float* y) {
  const int size = m.group_size;
  const U8 shifts = {0, Bits, 2 * Bits, 3 * Bits, 0, Bits, 2 * Bits, 3 * Bits};
  for (int64_t g = 0; g < groups; ++g) {
    const float scale = widen(m.scales, m.type, first_group + g), offset = widen(m.offsets, m.type, first_group + g);
    for (int i = 0; i < size; i += 8, codes += Bits, y += 8) {
      const uint64_t eight = load_codes<Bits>(codes);
      const uint32_t low = (uint32_t)eight, high = (uint32_t)(eight >> (4 * Bits));
      const U8 lanes = U8{low, low, low, low, high, high, high, high} >> shifts & ((1u << Bits) - 1);
      const F8 values = __builtin_convertvector((I8)lanes, F8) * scale + offset;
      memcpy(y, &values, sizeof values);
    }
  }
}

// Weights k0 to k0 + n - 1 of one row. For packed matrices both are multiples of the group size.
void unpack(const Matrix& m, int64_t row, int64_t k0, int64_t n, float* y) {
  if (m.bits == 0) {
    const int64_t index = row * m.in + k0;
    if (m.type == Float::f32) memcpy(y, m.values + 4 * index, n * 4);
    if (m.type == Float::f16) unpack_halves<f16>(m.values + 2 * index, n, y);
    if (m.type == Float::bf16) unpack_halves<bf16>(m.values + 2 * index, n, y);
    return;
  }
  const uint8_t* codes = m.values + (row * m.in + k0) / 8 * m.bits;
  const int64_t group = (row * m.in + k0) / m.group_size, groups = n / m.group_size;
  switch (m.bits) {
    case 2: return unpack_groups<2>(codes, m, group, groups, y);
    case 3: return unpack_groups<3>(codes, m, group, groups, y);
    case 4: return unpack_groups<4>(codes, m, group, groups, y);
    case 5: return unpack_groups<5>(codes, m, group, groups, y);
    case 6: return unpack_groups<6>(codes, m, group, groups, y);
    case 8: return unpack_groups<8>(codes, m, group, groups, y);
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

void unpack_row(const Matrix& matrix, int64_t row, float* y) { unpack(matrix, row, 0, matrix.in, y); }

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
