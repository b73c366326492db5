#include "ops.h"

#include <algorithm>
#include <cmath>

#include "scratch.h"

namespace pagelift {

namespace {

constexpr int64_t kRowBlock = 512;  // rows of x that meet a panel of weights before the next rows do; they stay in the cache
constexpr int64_t kElement = 4;     // cost of an activation function per element

template <class Body>
void each_row(const Context& on, Rows rows, Body body) {
  on.pool.run(rows.count, 1, rows.width * kElement, [&](int64_t first, int64_t last) {
    for (int64_t r = first; r < last; ++r) body(r * rows.width);
  });
}

}  // namespace

void linear(const Context& on, const LinearJob& job) {
  for (int64_t first_row = 0; first_row < job.rows; first_row += kRowBlock) {
    LinearJob part = job;
    part.rows = std::min(kRowBlock, job.rows - first_row);
    part.x += first_row * job.matrix->in;
    part.y += first_row * job.count;
    if (part.residual) part.residual += first_row * job.count;
    const int64_t grain = part.rows > 4 ? kLinearPanel : 4;
    on.pool.run(part.count, grain, part.rows * job.matrix->in / 4 + job.matrix->in,
                [&](int64_t first, int64_t last) { on.kernels.linear(part, first, last, scratch(kLinearScratch)); });
  }
}

void embedding(const Context& on, const Matrix& matrix, const int64_t* rows, int64_t count, float* y) {
  on.pool.run(count, 1, matrix.in, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) on.kernels.unpack_row(matrix, rows[i], y + i * matrix.in);
  });
}

void rms_norm(const Context& on, Rows rows, const Norm& norm, const float* x, float* y) {
  each_row(on, rows, [&](int64_t at) { on.kernels.rms_norm(x + at, norm.weight, norm.eps, rows.width, y + at); });
}

void layer_norm(const Context& on, Rows rows, const Norm& norm, const float* x, float* y) {
  each_row(on, rows, [&](int64_t at) { on.kernels.layer_norm(x + at, norm.weight, norm.bias, norm.eps, rows.width, y + at); });
}

void gated_rms_norm(const Context& on, Rows rows, const Norm& norm, const float* x, const float* gate, float* y) {
  each_row(on, rows, [&](int64_t at) { on.kernels.gated_rms_norm(x + at, gate + at, norm.weight, norm.eps, rows.width, y + at); });
}

void silu_mul(const Context& on, Rows rows, const float* gate, const float* x, float* y) {
  each_row(on, rows, [&](int64_t at) { on.kernels.silu_mul(gate + at, x + at, rows.width, y + at); });
}

void sigmoid_mul(const Context& on, Rows rows, const float* gate, int64_t gate_stride, const float* x, float* y) {
  each_row(on, rows, [&](int64_t at) { on.kernels.sigmoid_mul(gate + at / rows.width * gate_stride, x + at, rows.width, y + at); });
}

void gelu_tanh(const Context& on, Rows rows, const float* x, float* y) {
  each_row(on, rows, [&](int64_t at) { on.kernels.gelu_tanh(x + at, rows.width, y + at); });
}

void gelu_erf(const Context& on, Rows rows, const float* x, float* y) {
  each_row(on, rows, [&](int64_t at) {
    for (int64_t i = at; i < at + rows.width; ++i) y[i] = 0.5f * x[i] * std::erfc(-0.70710678f * x[i]);
  });
}

}  // namespace pagelift
