// Loops that do nothing but read, or nothing but multiply: the limits of one thread.
#include "kernels.h"
#include "level/amx.h"
#include "level/dot.h"
#include "level/level.h"
#include "level/simd.h"

namespace pagelift::PAGELIFT_NAMESPACE {

namespace {

constexpr int kChains = 8;  // independent sums, so that no instruction waits for the one before

// A value that the compiler must take as unknown and as needed.
template <class V>
PAGELIFT_INLINE void opaque(V& v) {
#if defined(__x86_64__)
  asm volatile("" : "+x"(v));
#else
  asm volatile("" : "+w"(v));
#endif
}

// `kChains` sums, each a variable of its own: those of an array would live in memory, since the compiler must not look into them.
struct Chains {
  F a = {}, b = {}, c = {}, d = {}, e = {}, f = {}, g = {}, h = {};

  template <class Step>
  PAGELIFT_INLINE void each(Step step) {
    step(a), step(b), step(c), step(d), step(e), step(f), step(g), step(h);
  }
};

int64_t peak_f32(int64_t rounds) {
  Chains sums;
  F a = all(1.0f), b = all(0.5f);
  opaque(a);
  for (int64_t i = 0; i < rounds; ++i) {
    sums.each([&](F& sum) __attribute__((always_inline)) {
      sum += a * b;
      opaque(sum);
    });
    opaque(b);
  }
  return rounds * kChains * W * 2;
}

#if defined(__AMX_INT8__)

constexpr int kTileBytes = 1024;

// Products of 2 by 2 tiles whose operands lie in the first-level cache.
template <bool Bf16>
int64_t peak_tiles(int64_t rounds) {
  alignas(64) static uint8_t operands[8 * 4 * kTileBytes];
  rounds = rounds / 16 + 1;  // of four products, each as long as sixteen vector operations
  TileConfig config;
  for (int t = 0; t < 8; ++t) config.row_bytes[t] = 64, config.rows[t] = 16;
  configure_tiles(config);
  for (int64_t i = 0; i < rounds; ++i) {
    const uint8_t* p = operands + i % 8 * 4 * kTileBytes;
    PAGELIFT_TILE_LOAD(4, p, 64);
    PAGELIFT_TILE_LOAD(5, p + kTileBytes, 64);
    PAGELIFT_TILE_LOAD(6, p + 2 * kTileBytes, 64);
    PAGELIFT_TILE_LOAD(7, p + 3 * kTileBytes, 64);
    if constexpr (Bf16) {
      PAGELIFT_TILE_DOT_BF16(0, 4, 6);
      PAGELIFT_TILE_DOT_BF16(1, 4, 7);
      PAGELIFT_TILE_DOT_BF16(2, 5, 6);
      PAGELIFT_TILE_DOT_BF16(3, 5, 7);
    } else {
      PAGELIFT_TILE_DOT_BYTES(0, 4, 6);
      PAGELIFT_TILE_DOT_BYTES(1, 4, 7);
      PAGELIFT_TILE_DOT_BYTES(2, 5, 6);
      PAGELIFT_TILE_DOT_BYTES(3, 5, 7);
    }
  }
  release_tiles();
  return rounds * 4 * 16 * 16 * (Bf16 ? 32 : 64) * 2;
}

int64_t peak_int8(int64_t rounds) { return peak_tiles<false>(rounds); }
int64_t peak_bf16(int64_t rounds) { return peak_tiles<true>(rounds); }

#else

int64_t peak_int8(int64_t rounds) {
  Chains sums;
  U a = U{} + 0x01020304u;
  opaque(a);
  for (int64_t i = 0; i < rounds; ++i) {
    const uint32_t b = (uint32_t)i & 0x01010101u;
    sums.each([&](F& sum) __attribute__((always_inline)) {
      opaque(a);
#if defined(__AVX2__) && !defined(__AVX512F__)
      // As level/avx2_tiles.h: mostly in 16 bits.
      const __m256i pairs = _mm256_maddubs_epi16((__m256i)a, _mm256_set1_epi32((int)b));
      sum = (F)_mm256_add_epi16((__m256i)sum, pairs);
      if (i % 8 == 7) sum = (F)((I)sum + (I)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1)));
#else
      sum = (F)dot4<true>((I)sum, a, b);
#endif
      opaque(sum);
    });
  }
  return rounds * kChains * W * 4 * 2;
}

int64_t peak_bf16(int64_t) { return 0; }

#endif

}  // namespace

int64_t peak(Number number, int64_t rounds) {
  switch (number) {
    case Number::int8:
      return peak_int8(rounds);
    case Number::bf16:
      return peak_bf16(rounds);
    default:
      return peak_f32(rounds);
  }
}

void read(const uint8_t* p, int64_t n) {
  F sums[kChains] = {};
  constexpr int64_t step = kChains * W * 4;
  for (int64_t i = 0; i + step <= n; i += step)
#pragma GCC unroll 8
    for (int c = 0; c < kChains; ++c) sums[c] = (F)((I)sums[c] ^ (I)load_as<F>(p + i + c * W * 4));
  for (F& sum : sums) opaque(sum);
}

}  // namespace pagelift::PAGELIFT_NAMESPACE
