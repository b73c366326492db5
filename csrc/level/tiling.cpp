// Into tiles: weights when they are loaded, rows of x before they meet them.
#include "level/level.h"
#include "level/codes.h"

namespace pagelift::PAGELIFT_NAMESPACE {

namespace {

typedef uint32_t Vector[kTileColumns];  // 64 bytes: four codes of each column

template <int Bits>
PAGELIFT_INLINE uint64_t spread(uint64_t eight) {
#if defined(__BMI2__)
  constexpr uint64_t mask = 0x0101010101010101u * ((1u << Bits) - 1);
  return _pdep_u64(eight, mask);
#else
  uint64_t bytes = 0;
  for (int i = 0; i < 8; ++i) bytes |= (eight >> (i * Bits) & ((1u << Bits) - 1)) << (8 * i);
  return bytes;
#endif
}

// 32 codes of each column, from bit streams `stride` bytes apart, as vectors. Columns beyond `count` are 0.
template <int Bits>
void gather(const uint8_t* codes, int64_t stride, int64_t count, Vector (&step)[8]) {
  memset(step, 0, sizeof step);
  for (int64_t n = 0; n < count; ++n)
    for (int part = 0; part < 4; ++part) {
      uint64_t eight = 0;
      memcpy(&eight, codes + n * stride + part * Bits, Bits);
      const uint64_t bytes = spread<Bits>(eight);
      step[2 * part][n] = (uint32_t)bytes;
      step[2 * part + 1][n] = (uint32_t)(bytes >> 32);
    }
}

// Bits `low` to `low + Width - 1` of each byte of all eight vectors, packed.
template <int Width>
uint8_t* put_plane(const Vector (&step)[8], int low, uint8_t* y) {
  constexpr int per = 8 / Width;
  constexpr uint32_t mask = 0x01010101u * ((1u << Width) - 1);
  for (int v = 0; v < 8; v += per) {
    Vector packed = {};
    for (int i = 0; i < per; ++i)
      for (int n = 0; n < kTileColumns; ++n) packed[n] |= (step[v + i][n] >> low & mask) << (i * Width);
    memcpy(y, packed, sizeof packed);
    y += sizeof packed;
  }
  return y;
}

template <int Bits>
void tile_codes(const uint8_t* codes, int64_t stride, int64_t count, int64_t steps, uint8_t* y) {
  for (int64_t s = 0; s < steps; ++s) {
    Vector step[8];
    gather<Bits>(codes + s * kTileStep * Bits / 8, stride, count, step);
    if constexpr (Bits == 8) y = put_plane<8>(step, 0, y);
    if constexpr (Bits == 2 || Bits == 3) y = put_plane<2>(step, 0, y);
    if constexpr (Bits == 3) y = put_plane<1>(step, 2, y);
    if constexpr (Bits >= 4 && Bits <= 6) y = put_plane<4>(step, 0, y);
    if constexpr (Bits == 5) y = put_plane<1>(step, 4, y);
    if constexpr (Bits == 6) y = put_plane<2>(step, 4, y);
  }
}

using TileCodes = void (*)(const uint8_t*, int64_t, int64_t, int64_t, uint8_t*);
TileCodes tile_codes_of(int bits) {
  switch (bits) {
    case 2:
      return tile_codes<2>;
    case 3:
      return tile_codes<3>;
    case 4:
      return tile_codes<4>;
    case 5:
      return tile_codes<5>;
    case 6:
      return tile_codes<6>;
    default:
      return tile_codes<8>;
  }
}

void tile_packed(const Matrix& m, const TileShape& shape, int64_t first, int64_t count, uint8_t* y) {
  const TileCodes tile_group = tile_codes_of(m.bits);
  const int64_t stride = m.in * m.bits / 8;
  for (int64_t g = 0; g < shape.groups; ++g, y += shape.group_bytes) {
    tile_group(m.values + first * stride + g * shape.group * m.bits / 8, stride, count, shape.group / kTileStep, y);
    uint8_t* floats = y + shape.codes_bytes;
    memset(floats, 0, 2 * kTileColumns * shape.float_bytes);
    for (int64_t n = 0; n < count; ++n) {
      const int64_t at = ((first + n) * shape.groups + g) * shape.float_bytes;
      memcpy(floats + n * shape.float_bytes, m.scales + at, shape.float_bytes);
      memcpy(floats + (kTileColumns + n) * shape.float_bytes, m.offsets + at, shape.float_bytes);
    }
  }
}

// The nearest bf16, ties to even; NaN stays NaN.
PAGELIFT_INLINE uint16_t to_bf16(float x) {
  uint32_t bits;
  memcpy(&bits, &x, 4);
  if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

void tile_dense(const Matrix& m, const TileShape& shape, int64_t first, int64_t count, uint8_t* y) {
  for (int64_t g = 0; g < shape.groups; ++g) {
    uint16_t group[kTileStep / 2][kTileColumns][2] = {};
    const int64_t n_in = m.in - g * kTileStep < kTileStep ? m.in - g * kTileStep : kTileStep;
    for (int64_t n = 0; n < count; ++n)
      for (int64_t k = 0; k < n_in; ++k) {
        const uint8_t* p = m.values + ((first + n) * m.in + g * kTileStep + k) * 2;
        H half = {};
        half[0] = load_as<uint16_t>(p);
        group[k / 2][n][k % 2] = m.type == Float::bf16 ? half[0] : to_bf16(widen_f16(half)[0]);
      }
    memcpy(y + g * shape.group_bytes, group, sizeof group);
  }
}

// All lanes of v folded into one by an operation on halves.
template <class V, class Fold>
PAGELIFT_INLINE int32_t fold(V v, Fold operation) {
  if constexpr (sizeof(V) == 4 * sizeof(int32_t)) {
    return operation(operation(v[0], v[2]), operation(v[1], v[3]));
  } else {
    typedef int32_t Half __attribute__((vector_size(sizeof(V) / 2)));
    Half low, high;
    memcpy(&low, &v, sizeof low);
    memcpy(&high, (const char*)&v + sizeof low, sizeof high);
    return fold(operation(low, high), operation);
  }
}

struct Larger {
  PAGELIFT_INLINE int32_t operator()(int32_t a, int32_t b) const { return a > b ? a : b; }
  template <class V>
  PAGELIFT_INLINE V operator()(V a, V b) const {
    const V greater = (V)(a > b);
    return (a & greater) | (b & ~greater);
  }
};
struct Plus {
  template <class V>
  PAGELIFT_INLINE V operator()(V a, V b) const {
    return a + b;
  }
};

// The largest magnitude; infinity and NaN count as larger than any number.
PAGELIFT_INLINE float largest(const float* x, int64_t n) {
  I most = {};
  for (int64_t i = 0; i < n; i += W) most = Larger()(most, load_as<I>(x + i) & 0x7fffffff);
  const int32_t bits = fold(most, Larger());
  float value;
  memcpy(&value, &bits, 4);
  return value;
}

typedef int8_t Bytes __attribute__((vector_size(W)));
PAGELIFT_INLINE Bytes to_bytes(I v) {
#if defined(__AVX512F__)
  return (Bytes)_mm512_cvtepi32_epi8((__m512i)v);
#elif defined(__AVX2__)
  // Both halves to their first four bytes, which are put together: g++ would take the conversion apart.
  const __m256i first = _mm256_set1_epi32(0x0c080400), low = _mm256_shuffle_epi8((__m256i)v, first);
  const int64_t bytes = _mm256_extract_epi64(_mm256_permutevar8x32_epi32(low, _mm256_setr_epi32(0, 4, 0, 4, 0, 4, 0, 4)), 0);
  return load_as<Bytes>(&bytes);
#else
  return __builtin_convertvector(v, Bytes);
#endif
}

// Codes of n inputs, rounded to nearest even; returns their sum. |x * inverse| is at most 127, or NaN, which gives any code.
PAGELIFT_INLINE int32_t quantize_group(const float* x, float inverse, int64_t n, uint8_t* codes) {
  const float round = 0x1.8p23f;  // adding it rounds to an integer, which is then in the low bits
  I sums = {};
  for (int64_t i = 0; i < n; i += W) {
    const F shifted = load(x + i) * inverse + round;
    const I integers = (I)((U)shifted - 0x4b400000u);
    const Bytes bytes = to_bytes(integers);
    memcpy(codes + i, &bytes, W);
    sums += integers;
  }
  return fold(sums, Plus());
}

}  // namespace

void tile(const Matrix& m, int64_t tile, uint8_t* y) {
  const TileShape shape(m);
  const int64_t first = tile * kTileColumns, left = m.out - first, count = left < kTileColumns ? left : kTileColumns;
  m.bits == 0 ? tile_dense(m, shape, first, count, y) : tile_packed(m, shape, first, count, y);
}

void quantize_row(const Matrix& m, const float* x, int64_t row, const RowCodes& y) {
  const TileShape shape(m);
  const int64_t block = row / kTileRows, i = row % kTileRows, rows = block_rows(y.rows, block);
  uint8_t* codes = y.codes + block * kTileRows * shape.row_bytes + i * shape.chunk;
  float* scales = y.scales + block * kTileRows * shape.groups + i;
  float* sums = y.sums + block * kTileRows * shape.groups + i;
  for (int64_t g = 0; g < shape.groups; ++g) {
    const float* group = x + g * shape.group;
    const float size = largest(group, shape.group);
    const float inverse = size > 0x1p-120f ? 127.0f / size : 0.0f;  // below, the inverse would overflow
    int32_t sum = 0;
    for (int64_t k = 0; k < shape.group; k += shape.chunk) {
      sum += quantize_group(group + k, inverse, shape.chunk, codes);
      codes += rows * shape.chunk;
    }
    scales[g * rows] = size / 127.0f;
    sums[g * rows] = size / 127.0f * (float)sum;
  }
}

}  // namespace pagelift::PAGELIFT_NAMESPACE
