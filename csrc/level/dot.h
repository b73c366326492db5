// Dot products of bytes: the instruction of the level, or the same integers with others.
#pragma once

#include "level/simd.h"

#if defined(__x86_64__)
#include <immintrin.h>
#elif defined(__ARM_NEON)
#include <arm_neon.h>
#endif

namespace pagelift::PAGELIFT_NAMESPACE {

// Each lane: sum + the four unsigned bytes of w's lane times the four signed bytes of x. Small: bytes of w are at most 63, which
// spares the levels without a dot product instruction an overflow of 16 bits.
template <bool Small>
PAGELIFT_INLINE I dot4(I sum, U w, uint32_t x) {
#if defined(__AVX512VNNI__)
  return (I)_mm512_dpbusd_epi32((__m512i)sum, (__m512i)w, _mm512_set1_epi32((int)x));
#elif defined(__ARM_FEATURE_DOTPROD)
  // Signed by signed: bytes of w above 127 have 128 taken off, and 128 * x is put back.
  const int8x16_t signed_x = vreinterpretq_s8_u32(vdupq_n_u32(x));
  if constexpr (Small) return (I)vdotq_s32((int32x4_t)sum, vreinterpretq_s8_u32((uint32x4_t)w), signed_x);
  const int8x16_t shifted = vreinterpretq_s8_u32((uint32x4_t)(w ^ 0x80808080u));
  const int32x4_t once = vdotq_s32((int32x4_t)sum, shifted, signed_x);
  return (I)vdotq_s32(vdotq_s32(once, vdupq_n_s8(64), signed_x), vdupq_n_s8(64), signed_x);
#elif defined(__AVX512BW__)
  if constexpr (Small) {
    const __m512i pairs = _mm512_maddubs_epi16((__m512i)w, _mm512_set1_epi32((int)x));
    return sum + (I)_mm512_madd_epi16(pairs, _mm512_set1_epi16(1));
  }
  const __m512i vx = _mm512_set1_epi32((int)x);
  const __m512i even = _mm512_srai_epi16(_mm512_slli_epi16(vx, 8), 8), odd = _mm512_srai_epi16(vx, 8);
  return sum + (I)_mm512_madd_epi16((__m512i)(w & 0x00ff00ffu), even) + (I)_mm512_madd_epi16((__m512i)(w >> 8 & 0x00ff00ffu), odd);
#elif defined(__AVX2__)
  if constexpr (Small) {
    const __m256i pairs = _mm256_maddubs_epi16((__m256i)w, _mm256_set1_epi32((int)x));
    return sum + (I)_mm256_madd_epi16(pairs, _mm256_set1_epi16(1));
  }
  const __m256i vx = _mm256_set1_epi32((int)x);
  const __m256i even = _mm256_srai_epi16(_mm256_slli_epi16(vx, 8), 8), odd = _mm256_srai_epi16(vx, 8);
  return sum + (I)_mm256_madd_epi16((__m256i)(w & 0x00ff00ffu), even) + (I)_mm256_madd_epi16((__m256i)(w >> 8 & 0x00ff00ffu), odd);
#elif defined(__SSE2__)
  const __m128i vx = _mm_set1_epi32((int)x);
  const __m128i even = _mm_srai_epi16(_mm_slli_epi16(vx, 8), 8), odd = _mm_srai_epi16(vx, 8);
  return sum + (I)_mm_madd_epi16((__m128i)(w & 0x00ff00ffu), even) + (I)_mm_madd_epi16((__m128i)(w >> 8 & 0x00ff00ffu), odd);
#else
  for (int byte = 0; byte < 4; ++byte) sum += (I)(w >> (8 * byte) & 0xff) * (int32_t)(int8_t)(x >> (8 * byte));
  return sum;
#endif
}

}  // namespace pagelift::PAGELIFT_NAMESPACE
