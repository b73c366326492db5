// Norms, activations and rotary positions of single rows.
#include "kernels.h"
#include "level/level.h"
#include "level/simd.h"

namespace pagelift::PAGELIFT_NAMESPACE {

namespace {

float sum_of_squares(const float* x, int64_t n) {
  F acc = {};
  each(n, [&](int64_t i, int64_t m) {
    const F v = take(x + i, m);
    acc += v * v;
  });
  return sum(acc);
}

float inverse_rms(const float* x, float eps, int64_t n) { return 1.0f / __builtin_sqrtf(sum_of_squares(x, n) / (float)n + eps); }

void rms_norm(const float* x, const float* weight, float eps, int64_t n, float* y) {
  const float scale = inverse_rms(x, eps, n);
  each(n, [&](int64_t i, int64_t m) { put(y + i, take(x + i, m) * scale * take(weight + i, m), m); });
}

void layer_norm(const float* x, const float* weight, const float* bias, float eps, int64_t n, float* y) {
  F acc = {};
  each(n, [&](int64_t i, int64_t m) { acc += take(x + i, m); });
  const float mean = sum(acc) / (float)n;
  each(n, [&](int64_t i, int64_t m) { put(y + i, take(x + i, m) - mean, m); });
  const float scale = inverse_rms(y, eps, n);
  each(n, [&](int64_t i, int64_t m) { put(y + i, take(y + i, m) * scale * take(weight + i, m) + take(bias + i, m), m); });
}

void gated_rms_norm(const float* x, const float* gate, const float* weight, float eps, int64_t n, float* y) {
  const float scale = inverse_rms(x, eps, n);
  each(n, [&](int64_t i, int64_t m) {
    const F g = take(gate + i, m);
    put(y + i, take(x + i, m) * scale * take(weight + i, m) * (g * sigmoid(g)), m);
  });
}

void silu_mul(const float* gate, const float* x, int64_t n, float* y) {
  each(n, [&](int64_t i, int64_t m) {
    const F g = take(gate + i, m);
    put(y + i, g * sigmoid(g) * take(x + i, m), m);
  });
}

void sigmoid_mul(const float* gate, const float* x, int64_t n, float* y) {
  each(n, [&](int64_t i, int64_t m) { put(y + i, sigmoid(take(gate + i, m)) * take(x + i, m), m); });
}

// 0.5 x (1 + tanh(u)) = x sigmoid(2 u), u = sqrt(2 / pi) (x + 0.044715 x^3)
void gelu_tanh(const float* x, int64_t n, float* y) {
  each(n, [&](int64_t i, int64_t m) {
    const F v = take(x + i, m);
    put(y + i, v * sigmoid(1.59576912f * (v + 0.044715f * v * v * v)), m);
  });
}

void head(const HeadJob& job) {
  const float scale = job.norm ? inverse_rms(job.x, job.eps, job.dim) : 1.0f;
  each(job.dim, [&](int64_t i, int64_t m) {
    F v = take(job.x + i, m) * scale;
    put(job.y + i, (job.norm ? v * take(job.norm + i, m) : v) * job.scale, m);
  });
  float *first = job.y, *second = job.y + job.half;
  each(job.half, [&](int64_t i, int64_t m) {
    const F a = take(first + i, m), b = take(second + i, m), cos = take(job.cos + i, m), sin = take(job.sin + i, m);
    put(first + i, a * cos - b * sin, m);
    put(second + i, b * cos + a * sin, m);
  });
}

void normalise(const float* x, float scale, int64_t n, float* y) {
  const float factor = scale / __builtin_sqrtf(sum_of_squares(x, n) + 1e-6f);
  each(n, [&](int64_t i, int64_t m) { put(y + i, take(x + i, m) * factor, m); });
}

#define PAGELIFT_STRING_(text) #text
#define PAGELIFT_STRING(text) PAGELIFT_STRING_(text)

}  // namespace

const Kernels table = {
    PAGELIFT_STRING(PAGELIFT_LEVEL),
    unpack_row,
    linear,
    tile,
    quantize_row,
    linear_tiles,
    dense_row,
    linear_dense,
    kDense,
    rms_norm,
    layer_norm,
    gated_rms_norm,
    silu_mul,
    sigmoid_mul,
    gelu_tanh,
    head,
    normalise,
    pack,
    attention,
    join,
    conv,
    delta,
    read,
    peak,
};

}  // namespace pagelift::PAGELIFT_NAMESPACE
