// Attention of some query rows over keys in tiles, with a running maximum and sum (Milakov and Gimelshein, Online normalizer
// calculation for softmax, 2018; Dao et al., FlashAttention, 2022). The maximum is looked at every kSpan keys, counted from the first
// token of the sequence, so a row's result depends neither on how its prompt was cut nor on the rows beside it.
#include "kernels.h"
#include "level/attention_amx.h"
#include "level/level.h"
#include "level/simd.h"

namespace pagelift::PAGELIFT_NAMESPACE {

namespace {

constexpr int kRows = W == 16 ? 8 : W == 8 ? 4 : 2;  // query rows that share a load of keys or values: what fits the registers
constexpr int V = 16 / W;                            // vectors across a tile

int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
int64_t round_up(int64_t n, int64_t to) { return (n + to - 1) / to * to; }

// Two rows of a tile: the next two features or tokens for 16 columns.
struct Two {
  F even[V], odd[V];
};
PAGELIFT_INLINE Two load_two(const float* tile, int64_t i) {
  Two two;
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) {
    two.even[v] = load(tile + i * 16 + v * W);
    two.odd[v] = load(tile + (i + 1) * 16 + v * W);
  }
  return two;
}
PAGELIFT_INLINE Two load_two(const uint16_t* tile, int64_t i) {
  Two two;
#pragma GCC unroll 4
  for (int v = 0; v < V; ++v) {
    const U pairs = load_as<U>(tile + i * 16 + v * 2 * W);
    two.even[v] = bits_to_float(pairs << 16);
    two.odd[v] = bits_to_float(pairs & 0xffff0000u);
  }
  return two;
}

// c (R, 16) = c + a (R, count * k) @ tiles, one (k, 16) after the other; without c when `fresh`.
template <class T, int R>
void multiply_add(const float* a, int64_t a_stride, int64_t k, const T* const* tiles, int64_t count, float* c, int64_t c_stride, bool fresh) {
  F acc[R][V] = {};
  if (!fresh) {
#pragma GCC unroll 8
    for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
      for (int v = 0; v < V; ++v) acc[r][v] = load(c + r * c_stride + v * W);
  }
  for (int64_t t = 0; t < count; ++t, a += k)
    for (int64_t i = 0; i < k; i += 2) {
      const Two two = load_two(tiles[t], i);
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) acc[r][v] += a[r * a_stride + i] * two.even[v];
#pragma GCC unroll 8
      for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
        for (int v = 0; v < V; ++v) acc[r][v] += a[r * a_stride + i + 1] * two.odd[v];
    }
#pragma GCC unroll 8
  for (int r = 0; r < R; ++r)
#pragma GCC unroll 4
    for (int v = 0; v < V; ++v) store(c + r * c_stride + v * W, acc[r][v]);
}

template <class T>
struct Product {
  const float* a;
  int64_t a_stride, rows, k;
  float* c;
  int64_t c_stride;
  bool fresh;

  template <int R>
  void some(const T* const* tiles, int64_t count, int64_t r) const {
    multiply_add<T, R>(a + r * a_stride, a_stride, k, tiles, count, c + r * c_stride, c_stride, fresh);
  }
  void with(const T* const* tiles, int64_t count) const {
    int64_t r = 0;
    for (; r + kRows <= rows; r += kRows) some<kRows>(tiles, count, r);
    for (; r + 2 <= rows && kRows > 2; r += 2) some<2>(tiles, count, r);
    for (; r < rows; ++r) some<1>(tiles, count, r);
  }
};

// One group of at most kQueryTile rows against the keys of one span.
struct Span {
  const uint8_t* keys[kSpan / kKeys];
  const uint8_t* values[kSpan / kKeys];
  const float *key_worth, *value_worth;  // of 8-bit codes, else nullptr
  int64_t dim, key_width, value_width;
};

template <class T>
void span_scores(const Span& span, const float* q, int64_t rows, int64_t most, float* scores) {
  for (int64_t j = 0; j < most; j += 16) {
    const T* tile = (const T*)span.keys[j / kKeys] + j % kKeys * span.key_width;
    Product<T>{q, span.key_width, rows, round_up(span.dim, 2), scores + j, kSpan, true}.with(&tile, 1);
  }
}

template <class T>
void span_values(const Span& span, const float* weights, int64_t rows, int64_t most, float* sums) {
  for (int64_t d = 0; d < span.value_width; d += 16) {
    const T* tiles[kSpan / 32];
    for (int64_t j = 0; j < most; j += 32) tiles[j / 32] = (const T*)span.values[j / kKeys] + j % kKeys * span.value_width + d * 32;
    Product<T>{weights, kSpan, rows, 32, sums + d, span.value_width, false}.with(tiles, (most + 31) / 32);
  }
}

// exp(x - highest) within 1e-4 of its value, for x <= highest; what is rounded to bf16 afterwards needs no more. 2^r by a minimax
// polynomial.
PAGELIFT_INLINE F exp_rough(F x, float highest) {
  constexpr float kLog2E = 1.44269504f, kRound = 0x1.8p23f;
  F scaled = x * kLog2E - highest * kLog2E;
#if !defined(__AVX512F__)
  scaled = maximum(scaled, all(-126.0f));
#endif
  const F shifted = scaled + kRound, n = shifted - kRound, r = scaled - n;
  const F p = ((r * 0.05517116f + 0.2426109f) * r + 0.69326104f) * r + 0.99992809f;
#if defined(__AVX512F__)
  return (F)_mm512_mask_scalef_ps((__m512)p, 0xffff, (__m512)p, (__m512)n);
#else
  return (F)((U)p + ((U)shifted << 23));
#endif
}

PAGELIFT_INLINE F lanes_below(F v, int64_t n, F others) {
  I lane;
  for (int i = 0; i < W; ++i) lane[i] = i;
  return select((I)(lane < (int32_t)n), v, others);
}

constexpr float kLowest = -0x1.fffffep127f;  // finite, so that differences are never NaN

PAGELIFT_INLINE void put_weights(float* to, F weights) { store(to, weights); }
PAGELIFT_INLINE void put_weights(uint16_t* to, F weights) {
  const H narrow = narrow_bf16(weights);
  memcpy(to, &narrow, sizeof narrow);
}

// The largest of `count` scores and `largest`; with Codes, they are multiplied by what the codes of the keys are worth first.
template <bool Codes>
PAGELIFT_INLINE float highest_of(float* scores, int64_t count, const float* worth, float largest) {
  const auto at = [&](int64_t j) {
    F v = load(scores + j);
    if constexpr (Codes) store(scores + j, v *= load(worth + j));
    return v;
  };
  F top = all(largest), other = top;
  int64_t j = 0;
  for (; j + 2 * W <= count; j += 2 * W) {
    top = maximum(at(j), top);
    other = maximum(at(j + W), other);
  }
  for (; j < count; j += W) top = maximum(count - j < W ? lanes_below(at(j), count - j, all(kLowest)) : at(j), top);
  return largest_lane(maximum(other, top));
}

// Scores to weights, with zeros up to `padded`; returns their sum. Even and odd vectors are summed apart.
template <bool Rough, bool Codes, class T>
PAGELIFT_INLINE float weights_of(const float* scores, int64_t count, int64_t padded, const float* worth, float highest, T* to) {
  const auto at = [&](int64_t j) {
    const F v = load(scores + j);
    return Rough ? exp_rough(v, highest) : exp(v - highest);
  };
  const auto put_at = [&](int64_t j, F weights) {
    if constexpr (Codes) weights *= load(worth + j);
    put_weights(to + j, weights);
  };
  F even = {}, odd = {};
  int64_t j = 0;
  for (; j + 2 * W <= count; j += 2 * W) {
    const F first = at(j), second = at(j + W);
    even += first;
    odd += second;
    put_at(j, first);
    put_at(j + W, second);
  }
  for (bool upper = false; j < count; j += W, upper = true) {
    const F weights = count - j < W ? lanes_below(at(j), count - j, F{}) : at(j);
    (upper ? odd : even) += weights;
    put_at(j, weights);
  }
  for (; j < padded; j += W) put_weights(to + j, F{});
  return sum(even + odd);
}

// Turn `count` scores of a row into weights relative to the running maximum, with zeros up to `padded`. Returns by what the row's
// sums so far must be multiplied. `to` may be `scores`.
template <bool Rough, bool Codes, class T>
__attribute__((noinline)) float soften(const Span& span, float* scores, int64_t count, int64_t padded, T* to, float& largest,
                                       float& total) {
  const float highest = highest_of<Codes>(scores, count, span.key_worth, largest);
  const float added = weights_of<Rough, Codes>(scores, count, padded, span.value_worth, highest, to);
  const float shrink = highest == largest ? 1.0f : exp(all(largest - highest))[0];
  largest = highest;
  total = total * shrink + added;
  return shrink;
}

// Everything that a job needs beside its operands.
struct Work {
  const AttentionJob& job;
  int64_t keys, values;  // widths
  void* q;               // (rows up to whole tiles, keys): float, or bf16 for a matrix unit
  float* scores;         // (kQueryTile, kSpan)
  void* weights;         // (kQueryTile, kSpan) of the type of q
  uint16_t* unpacked;    // a span of 8-bit codes as bf16
  float* worth;          // what they are worth: keys, values
};

bool uses_tiles(const AttentionJob& job) { return kHasTiles && job.type != KvType::f32; }

void take_queries(const Work& work) {
  const AttentionJob& job = work.job;
  const int64_t rows = uses_tiles(job) ? round_up(job.rows, 16) : job.rows;
  for (int64_t r = 0; r < rows; ++r) {
    float row[W];
    for (int64_t d = 0; d < work.keys; d += W) {
      const int64_t n = r < job.rows ? least(W, job.dim - d) : 0;
      for (int64_t i = 0; i < W; ++i) row[i] = i < n ? job.q[r][d + i] : 0;
      if (uses_tiles(job))
        put_weights((uint16_t*)work.q + r * work.keys + d, load(row));
      else
        store((float*)work.q + r * work.keys + d, load(row));
    }
  }
}

// W signed bytes as numbers. g++ takes a conversion of such short vectors apart.
PAGELIFT_INLINE F widen_codes(const uint8_t* codes) {
#if defined(__AVX512F__)
  return __builtin_convertvector((I)_mm512_maskz_cvtepi8_epi32(0xffff, load_as<__m128i>(codes)), F);
#elif defined(__AVX2__)
  return __builtin_convertvector((I)_mm256_cvtepi8_epi32(_mm_cvtsi64_si128(load_as<int64_t>(codes))), F);
#else
  I wide;
  for (int i = 0; i < W; ++i) wide[i] = (int8_t)codes[i];
  return __builtin_convertvector(wide, F);
#endif
}

void unpack_codes(const uint8_t* codes, int64_t n, uint16_t* y) {
  for (int64_t i = 0; i < n; i += W) put_weights(y + i, widen_codes(codes + i));  // exact
}

Span span_of(const Work& work, int64_t first, int64_t count) {
  const AttentionJob& job = work.job;
  const int64_t key_values = kKeys * work.keys, values = kKeys * work.values, size = kv_size(job.type);
  const bool codes = job.type == KvType::i8;
  Span span{{}, {}, codes ? work.worth : nullptr, codes ? work.worth + kSpan : nullptr, job.dim, work.keys, work.values};
  for (int64_t b = 0; b < count; ++b) {
    const uint8_t* block = job.blocks[first + b];
    span.keys[b] = block;
    span.values[b] = block + key_values * size;
    if (!codes) continue;
    uint16_t* y = work.unpacked + b * (key_values + values);
    unpack_codes(block, key_values + values, y);
    span.keys[b] = (const uint8_t*)y;
    span.values[b] = (const uint8_t*)(y + key_values);
    memcpy(work.worth + b * kKeys, block + key_values + values, kKeys * sizeof(float));
    memcpy(work.worth + kSpan + b * kKeys, block + key_values + values + kKeys * sizeof(float), kKeys * sizeof(float));
  }
  return span;
}

// Rows r0 to r0 + rows - 1 of the job against a span that starts at token `first`.
template <class T, class A>
void attend_span(const Work& work, const Span& span, int64_t r0, int64_t rows, int64_t first) {
  const AttentionJob& job = work.job;
  int64_t counts[kQueryTile], most = 0;
  for (int64_t r = 0; r < rows; ++r) {
    const int64_t seen = job.visible[r0 + r] - first;
    counts[r] = seen < 0 ? 0 : least(seen, kSpan);
    most = counts[r] > most ? counts[r] : most;
  }
  if (most == 0) return;
  const A* q = (const A*)work.q + r0 * work.keys;
  A* weights = (A*)work.weights;
  float* sums = job.part.sums + r0 * work.values;
  if constexpr (sizeof(A) == 2)
    amx_scores(q, rows > 16, work.keys, span.keys, most, work.scores);
  else
    span_scores<T>(span, q, rows, most, work.scores);
  for (int64_t r = 0; r < rows; ++r) {
    float* scores = work.scores + r * kSpan;
    const auto with = span.key_worth ? soften<sizeof(T) == 2, true, A> : soften<sizeof(T) == 2, false, A>;
    const float shrink =
        with(span, scores, counts[r], round_up(most, 32), weights + r * kSpan, job.part.largest[r0 + r], job.part.total[r0 + r]);
    if (shrink != 1.0f)
      for (int64_t i = 0; i < work.values; i += W) store(sums + r * work.values + i, load(sums + r * work.values + i) * shrink);
  }
  if constexpr (sizeof(A) == 2)
    amx_values(weights, rows, span.values, most, work.values, sums);
  else
    span_values<T>(span, weights, rows, most, sums);
}

}  // namespace

void attention(const AttentionJob& job, float* scratch) {
  float* memory = (float*)(((uintptr_t)scratch + 63) / 64 * 64);
  const int64_t keys = key_width(job.dim), values = value_width(job.dim);
  float* scores = memory + kQueries * keys;
  float* worth = scores + 2 * kQueryTile * kSpan;
  const Work work{job, keys, values, memory, scores, uses_tiles(job) ? scores + kQueryTile * kSpan : scores, (uint16_t*)(worth + 2 * kSpan), worth};
  if (uses_tiles(job)) amx_begin(job.rows, keys);
  take_queries(work);
  int64_t tokens = 0;
  for (int64_t r = 0; r < job.rows; ++r) {
    job.part.largest[r] = kLowest;
    job.part.total[r] = 0;
    tokens = job.visible[r] > tokens ? job.visible[r] : tokens;
  }
  for (int64_t i = 0; i < round_up(job.rows, 16) * values; ++i) job.part.sums[i] = 0;
  const int64_t last = least(job.last, (tokens + kKeys - 1) / kKeys);
  for (int64_t block = job.first; block < last; block += kSpan / kKeys) {
    const Span span = span_of(work, block, least(kSpan / kKeys, last - block));
    for (int64_t r = 0; r < job.rows; r += kQueryTile) {
      const int64_t rows = least(kQueryTile, job.rows - r), first = block * kKeys;
      if (job.type == KvType::f32)
        attend_span<float, float>(work, span, r, rows, first);
      else if (kHasTiles)
        attend_span<uint16_t, uint16_t>(work, span, r, rows, first);
      else
        attend_span<uint16_t, float>(work, span, r, rows, first);
    }
  }
  if (uses_tiles(job)) amx_end();
}

void join(const AttentionPart& all_parts, const AttentionPart& part, int64_t rows, int64_t width) {
  for (int64_t r = 0; r < rows; ++r) {
    if (part.total[r] == 0) continue;
    float &largest = all_parts.largest[r], &total = all_parts.total[r];
    const float top = largest > part.largest[r] ? largest : part.largest[r];
    const float old = exp(all(largest - top))[0], added = exp(all(part.largest[r] - top))[0];
    float* sums = all_parts.sums + r * width;
    for (int64_t i = 0; i < width; i += W) store(sums + i, load(sums + i) * old + load(part.sums + r * width + i) * added);
    total = total * old + part.total[r] * added;
    largest = top;
  }
}

}  // namespace pagelift::PAGELIFT_NAMESPACE
