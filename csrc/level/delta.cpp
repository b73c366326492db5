// Gated DeltaNet: the causal convolution and the recurrence.
#include "kernels.h"
#include "level/level.h"
#include "level/simd.h"

namespace pagelift::PAGELIFT_NAMESPACE {

namespace {

constexpr int C = W == 4 ? 4 : kColumns / W;  // vectors of columns that advance together
constexpr int kSums = W == 16 ? 4 : 2;          // sums over every second or fourth key, so that additions do not wait for each other

struct Columns {
  F part[C];
};

// sums[i % kSums] += row i of a state * factors[i], or whatever `step` does with row i, in the order of the keys.
template <class Step>
PAGELIFT_INLINE Columns over_keys(int64_t keys, Step step) {
  Columns sums[kSums] = {};
  int64_t i = 0;
  for (; i + kSums <= keys; i += kSums) {
#pragma GCC unroll 4
    for (int s = 0; s < kSums; ++s) step(i + s, sums[s]);
  }
#pragma GCC unroll 4
  for (int s = 0; s < kSums; ++s)
    if (i + s < keys) step(i + s, sums[s]);
  for (int s = kSums / 2; s > 0; s /= 2)
    for (int j = 0; j < s; ++j)
#pragma GCC unroll 4
      for (int c = 0; c < C; ++c) sums[j].part[c] += sums[j + s].part[c];
  return sums[0];
}

// One token: change = beta (v - decay S^T k), then S = decay S + k outer change; returns S^T q. The state stays in the first-level
// cache between the two passes.
PAGELIFT_INLINE Columns advance(const float* from, float* to, const float* q, const float* k, int64_t keys, float decay, float beta,
                                const Columns& v) {
  Columns change = over_keys(keys, [&](int64_t i, Columns& sum) {
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) sum.part[c] += load(from + i * kColumns + c * W) * k[i];
  });
#pragma GCC unroll 4
  for (int c = 0; c < C; ++c) change.part[c] = (v.part[c] - change.part[c] * decay) * beta;
  return over_keys(keys, [&](int64_t i, Columns& sum) {
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) {
      const F row = load(from + i * kColumns + c * W) * decay + change.part[c] * k[i];
      store(to + i * kColumns + c * W, row);
      sum.part[c] += row * q[i];
    }
  });
}

void advance_all(const DeltaJob& job, const float* from, int64_t t) {
  const float *q = job.q + t * job.key_stride, *k = job.k + t * job.key_stride;
  const float decay = job.decay[t * job.gate_stride], beta = job.beta[t * job.gate_stride];
  float v[kColumns] = {}, y[kColumns];
  memcpy(v, job.v + t * job.value_stride, job.columns * sizeof(float));
  for (int64_t first = 0; first < job.columns; first += C * W) {
    const Columns out = advance(from + first, job.state + first, q, k, job.key_dim, decay, beta, load_as<Columns>(v + first));
    memcpy(y + first, &out, sizeof out);
  }
  if (job.y) memcpy(job.y + t * job.y_stride, y, job.columns * sizeof(float));
}

}  // namespace

void delta(const DeltaJob& job) {
  for (int64_t t = 0; t < job.tokens; ++t) advance_all(job, t == 0 ? job.before : job.state, t);
}

void conv(const ConvJob& job) {
  each(job.channels, [&](int64_t first, int64_t n) {
    F taps[kTaps];
    for (int64_t j = 0; j < job.kernel; ++j) {
      float tap[W] = {};
      for (int64_t c = 0; c < n; ++c) tap[c] = job.weight[(first + c) * job.kernel + j];
      taps[j] = load(tap);
    }
    for (int64_t t = 0; t < job.tokens; ++t) {
      F acc = {};
      for (int64_t j = 0; j < job.kernel; ++j) {
        const int64_t source = t + j - (job.kernel - 1);
        const float* input = source < 0 ? job.window + (t + j) * job.stride : job.x + source * job.stride;
        acc += take(input + first, n) * taps[j];
      }
      put(job.y + t * job.stride + first, acc * sigmoid(acc), n);
    }
  });
}

}  // namespace pagelift::PAGELIFT_NAMESPACE
