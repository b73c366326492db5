// Vectors of the width of one level, by the vector extensions that g++ and clang share. For csrc/level only: everything here is
// compiled per level, so it must stay in the level's namespace and use no templates of the standard library.
#pragma once

#include <cstdint>
#include <cstring>

#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define PAGELIFT_NAMED_(level) level
#define PAGELIFT_NAMESPACE PAGELIFT_NAMED_(PAGELIFT_LEVEL)

namespace pagelift::PAGELIFT_NAMESPACE {

#if defined(__AVX512F__)
constexpr int W = 16;  // floats per vector
#elif defined(__AVX2__)
constexpr int W = 8;
#else
constexpr int W = 4;
#endif

typedef float F __attribute__((vector_size(W * 4)));
typedef int32_t I __attribute__((vector_size(W * 4)));
typedef uint32_t U __attribute__((vector_size(W * 4)));
typedef uint16_t H __attribute__((vector_size(W * 2)));

#define PAGELIFT_INLINE inline __attribute__((always_inline))

template <class V>
PAGELIFT_INLINE V load_as(const void* p) {
  V v;
  memcpy(&v, p, sizeof v);
  return v;
}
PAGELIFT_INLINE F load(const float* p) { return load_as<F>(p); }
PAGELIFT_INLINE void store(float* p, F v) { memcpy(p, &v, sizeof v); }

// The first n of W floats; the others are 0 and their memory is not touched.
PAGELIFT_INLINE F load_first(const float* p, int64_t n) {
  float buffer[W] = {};
  memcpy(buffer, p, n * sizeof(float));
  return load(buffer);
}
PAGELIFT_INLINE void store_first(float* p, F v, int64_t n) {
  float buffer[W];
  store(buffer, v);
  memcpy(p, buffer, n * sizeof(float));
}

// Vectors of n floats, n of W or fewer; `each` walks an array in such pieces, so that every element meets the same operations.
PAGELIFT_INLINE F take(const float* p, int64_t n) { return n == W ? load(p) : load_first(p, n); }
PAGELIFT_INLINE void put(float* p, F v, int64_t n) {
  if (n == W)
    store(p, v);
  else
    store_first(p, v, n);
}
template <class Body>
PAGELIFT_INLINE void each(int64_t n, Body body) {
  int64_t i = 0;
  for (; i + W <= n; i += W) body(i, int64_t{W});
  if (i < n) body(i, n - i);
}

PAGELIFT_INLINE F all(float x) { return F{} + x; }
PAGELIFT_INLINE F bits_to_float(U v) { return (F)v; }
PAGELIFT_INLINE F widen_bf16(H h) { return bits_to_float(__builtin_convertvector(h, U) << 16); }

// To the nearest, ties to even; infinity and NaN stay.
PAGELIFT_INLINE H narrow_bf16(F v) {
#if defined(__AVX512BF16__)
  return (H)_mm512_cvtneps_pbh((__m512)v);
#else
  const U bits = (U)v;
  return __builtin_convertvector((bits + 0x7fff + (bits >> 16 & 1)) >> 16, H);
#endif
}

// IEEE half to float in integer steps: shift the exponent into place by a multiplication, which is exact for subnormals too.
PAGELIFT_INLINE F widen_f16(H h) {
  const U bits = __builtin_convertvector(h, U);
  const F magnitude = bits_to_float((bits & 0x7fff) << 13) * 0x1p112f;
  const U special = (U)((bits & 0x7c00) == 0x7c00) & 0x7f800000;  // infinity and NaN keep a full exponent
  return bits_to_float((U)magnitude | special | (bits & 0x8000) << 16);
}

typedef float F4 __attribute__((vector_size(16)));
typedef float F8 __attribute__((vector_size(32)));

template <class V, class Half>
struct Halves {
  Half low, high;
  PAGELIFT_INLINE explicit Halves(const V& v) {
    memcpy(&low, &v, sizeof low);
    memcpy(&high, (const char*)&v + sizeof low, sizeof high);
  }
};

// All lanes joined by `join`, always in the same order.
template <class Join>
PAGELIFT_INLINE float join_lanes(F v, Join join) {
  F4 q;
  if constexpr (W == 16) {
    const Halves<F, F8> halves(v);
    const Halves<F8, F4> quarters(join(halves.low, halves.high));
    q = join(quarters.low, quarters.high);
  } else if constexpr (W == 8) {
    const Halves<F, F4> halves(v);
    q = join(halves.low, halves.high);
  } else {
    memcpy(&q, &v, 16);
  }
  return join(join(q[0], q[2]), join(q[1], q[3]));
}
PAGELIFT_INLINE float sum(F v) {
  return join_lanes(v, [](auto a, auto b) { return a + b; });
}
PAGELIFT_INLINE float largest_lane(F v) {
  return join_lanes(v, [](auto a, auto b) { return a > b ? a : b; });
}

PAGELIFT_INLINE F select(I condition, F yes, F no) { return (F)(((I)yes & condition) | ((I)no & ~condition)); }
PAGELIFT_INLINE F maximum(F a, F b) { return a > b ? a : b; }

// exp(x) within 2 units in the last place; x below -87 gives about 1e-38, above 88 about 1e38, NaN stays NaN.
// Cody-Waite reduction to |r| <= ln(2) / 2, then a Taylor polynomial of degree 7.
PAGELIFT_INLINE F exp(F x) {
  x = select((I)(x < -87.0f), all(-87.0f), x);
  x = select((I)(x > 88.0f), all(88.0f), x);
  const float round = 0x1.8p23f;  // adding and subtracting it rounds to an integer
  const F shifted = x * 1.44269504f + round;
  const F n = shifted - round;
  const F r = (x - n * 0.693359375f) + n * 2.12194440e-4f;
  F p = all(1.0f / 5040);
  p = p * r + 1.0f / 720;
  p = p * r + 1.0f / 120;
  p = p * r + 1.0f / 24;
  p = p * r + 1.0f / 6;
  p = p * r + 0.5f;
  p = p * r + 1.0f;
  p = p * r + 1.0f;
  const U exponent = ((U)shifted - 0x4b400000u + 127u) << 23;  // the integer sits in the low bits of `shifted`
  return p * bits_to_float(exponent);
}
PAGELIFT_INLINE F sigmoid(F x) { return 1.0f / (1.0f + exp(-x)); }

}  // namespace pagelift::PAGELIFT_NAMESPACE
