// Gated DeltaNet: the causal convolution and the recurrence.
#include "kernels.h"
#include "level/level.h"
#include "level/simd.h"

namespace pagelift::PAGELIFT_NAMESPACE {

namespace {

constexpr int C = kColumns / W;  // vectors across the columns of a state

struct Row {
  F part[C];
};

PAGELIFT_INLINE Row load_row(const float* p) {
  Row row;
#pragma GCC unroll 4
  for (int c = 0; c < C; ++c) row.part[c] = load(p + c * W);
  return row;
}

PAGELIFT_INLINE void add(Row& sum, const Row& row, float factor) {
#pragma GCC unroll 4
  for (int c = 0; c < C; ++c) sum.part[c] += row.part[c] * factor;
}

// Even and odd keys are summed apart, which halves the chain of dependent additions.
PAGELIFT_INLINE Row join(const Row (&sums)[2]) {
  Row all = sums[0];
  add(all, sums[1], 1.0f);
  return all;
}

// S^T k for one token.
PAGELIFT_INLINE Row read(const float* state, const float* k, int64_t keys) {
  Row sums[2] = {};
  for (int64_t i = 0; i < keys; ++i) add(sums[i % 2], load_row(state + i * kColumns), k[i]);
  return join(sums);
}

// S = decay S + k outer change; returns S^T q.
PAGELIFT_INLINE Row write(float* state, const float* q, const float* k, int64_t keys, float decay, const Row& change) {
  Row sums[2] = {};
  for (int64_t i = 0; i < keys; ++i) {
    Row row = load_row(state + i * kColumns);
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) {
      row.part[c] = row.part[c] * decay + change.part[c] * k[i];
      store(state + i * kColumns + c * W, row.part[c]);
    }
    add(sums[i % 2], row, q[i]);
  }
  return join(sums);
}

}  // namespace

void delta(const DeltaJob& job) {
  for (int64_t t = 0; t < job.tokens; ++t) {
    const float *q = job.q + t * job.key_stride, *k = job.k + t * job.key_stride;
    const float decay = job.decay[t * job.gate_stride], beta = job.beta[t * job.gate_stride];
    float values[kColumns] = {};
    memcpy(values, job.v + t * job.value_stride, job.columns * sizeof(float));
    Row change = load_row(values);
    add(change, read(job.state, k, job.key_dim), -decay);  // v - (decay S)^T k
#pragma GCC unroll 4
    for (int c = 0; c < C; ++c) change.part[c] *= beta;
    const Row y = write(job.state, q, k, job.key_dim, decay, change);
    if (job.y) memcpy(job.y + t * job.y_stride, &y, job.columns * sizeof(float));
  }
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
