// Keys and values on their way into the tiles of a cache (see kernels.h).
#include "kernels.h"
#include "level/level.h"
#include "level/simd.h"

namespace pagelift::PAGELIFT_NAMESPACE {

namespace {

// Places of feature d of the token in place `slot`: of its key, of its value. Elements, whatever their type; f32 has no pairs.
int64_t key_place(const PackJob& job, int64_t slot, int64_t d) {
  const int64_t tile = slot / 16 * 16 * key_width(job.dim);
  return tile + (job.type == KvType::f32 ? d * 16 + slot % 16 : (d / 2 * 16 + slot % 16) * 2 + d % 2);
}
int64_t value_place(const PackJob& job, int64_t slot, int64_t d) {
  const int64_t tile = slot / 32 * 32 * value_width(job.dim) + d / 16 * 32 * 16, token = slot % 32;
  return tile + (job.type == KvType::f32 ? token * 16 + d % 16 : (token / 2 * 16 + d % 16) * 2 + token % 2);
}

template <class T, class Convert>
void put_token(const PackJob& job, int64_t slot, const float* k, const float* v, Convert convert) {
  T *keys = (T*)job.block, *values = keys + kKeys * key_width(job.dim);
  for (int64_t d = 0; d < key_width(job.dim); ++d) keys[key_place(job, slot, d)] = d < job.dim ? convert(k[d], 0) : T{};
  for (int64_t d = 0; d < value_width(job.dim); ++d) values[value_place(job, slot, d)] = d < job.dim ? convert(v[d], 1) : T{};
}

uint16_t to_bf16(float x) {
  const uint32_t bits = load_as<uint32_t>(&x);
  return (uint16_t)((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

float largest_size(const float* x, int64_t n) {
  float largest = 0;
  for (int64_t i = 0; i < n; ++i) {
    const float size = __builtin_fabsf(x[i]);
    largest = size > largest ? size : largest;
  }
  return largest;
}

void put_codes(const PackJob& job, int64_t slot, const float* k, const float* v) {
  float* worth = (float*)(job.block + kKeys * (key_width(job.dim) + value_width(job.dim)));
  const float sizes[2] = {largest_size(k, job.dim), largest_size(v, job.dim)};
  float factors[2];
  for (int i = 0; i < 2; ++i) {
    worth[i * kKeys + slot] = sizes[i] / 127;
    factors[i] = sizes[i] > 0 ? 127 / sizes[i] : 0;
  }
  put_token<int8_t>(job, slot, k, v, [&](float x, int which) { return (int8_t)__builtin_rintf(x * factors[which]); });
}

uint32_t two_bf16(float first, float second) { return to_bf16(first) | (uint32_t)to_bf16(second) << 16; }

// Two neighbouring tokens as bf16: their values are pairs already.
void put_pair(const PackJob& job, int64_t slot, const float* k, const float* v) {
  uint32_t *keys = (uint32_t*)job.block, *values = (uint32_t*)((uint16_t*)job.block + kKeys * key_width(job.dim));
  for (int64_t t = 0; t < 2; ++t) {
    const float* key = k + t * job.k_stride;
    uint32_t* pairs = keys + key_place(job, slot + t, 0) / 2;
    int64_t d = 0;
    for (; d + 2 <= job.dim; d += 2) pairs[d * 8] = two_bf16(key[d], key[d + 1]);
    for (; d < key_width(job.dim); d += 2) pairs[d * 8] = d < job.dim ? to_bf16(key[d]) : 0;
  }
  for (int64_t first = 0; first < value_width(job.dim); first += 16) {
    uint32_t* pairs = values + value_place(job, slot, first) / 2;
    const int64_t n = job.dim - first < 16 ? job.dim - first : 16;
    for (int64_t d = 0; d < n; ++d) pairs[d] = two_bf16(v[first + d], v[job.v_stride + first + d]);
    for (int64_t d = n < 0 ? 0 : n; d < 16; ++d) pairs[d] = 0;
  }
}

}  // namespace

void pack(const PackJob& job) {
  for (int64_t t = 0; t < job.count;) {
    const int64_t slot = job.slot + t;
    const float *k = job.k + t * job.k_stride, *v = job.v + t * job.v_stride;
    const bool pair = job.type == KvType::bf16 && slot % 2 == 0 && t + 1 < job.count;
    if (pair)
      put_pair(job, slot, k, v);
    else if (job.type == KvType::bf16)
      put_token<uint16_t>(job, slot, k, v, [](float x, int) { return to_bf16(x); });
    else if (job.type == KvType::f32)
      put_token<float>(job, slot, k, v, [](float x, int) { return x; });
    else
      put_codes(job, slot, k, v);
    t += pair ? 2 : 1;
  }
}

}  // namespace pagelift::PAGELIFT_NAMESPACE
