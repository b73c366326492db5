// Operations fused of others, in pieces of rows so that what lies between them stays in the cache and takes bounded memory.
#include <algorithm>

#include "ops.h"
#include "scratch.h"

namespace pagelift {

namespace {

constexpr int64_t kRows = 512;

template <class Body>
void in_pieces(int64_t rows, Body body) {
  for (int64_t first = 0; first < rows; first += kRows) body(first, std::min(kRows, rows - first));
}

void normalise(const Context& on, Rows rows, const Norm& norm, const float* x, float* y) {
  if (norm.bias)
    layer_norm(on, rows, norm, x, y);
  else
    rms_norm(on, rows, norm, x, y);
}

// A layer over some rows of `rows`, from number `first` on: x and y begin there.
struct Piece {
  const Rows& rows;
  int64_t first, count;

  LinearJob through(const Layer& layer, const float* x, const float* residual, float* y) const {
    return {layer.matrix, x, count, nullptr, layer.matrix->out, layer.bias, residual, y, rows.prompt ? rows.prompt + first : nullptr};
  }
};

}  // namespace

void norm_linears(const Context& on, Rows rows, const Norm& norm, const float* x, const std::vector<Layer>& layers,
                  const std::vector<float*>& y) {
  float* normed = scratch(std::min(kRows, rows.count) * rows.width, Use::fused);
  in_pieces(rows.count, [&](int64_t first, int64_t count) {
    normalise(on, {count, rows.width}, norm, x + first * rows.width, normed);
    std::vector<LinearJob> jobs;
    for (size_t i = 0; i < layers.size(); ++i) jobs.push_back(Piece{rows, first, count}.through(layers[i], normed, nullptr, y[i] + first * layers[i].matrix->out));
    linears(on, jobs);
  });
}

void swiglu_block(const Context& on, Rows rows, const Norm& norm, const float* x, const Swiglu& block, float* y) {
  const int64_t most = std::min(kRows, rows.count), inner = block.down.matrix->in;
  float *normed = scratch(most * (rows.width + 2 * inner), Use::fused), *gate = normed + most * rows.width, *up = gate + most * inner;
  in_pieces(rows.count, [&](int64_t first, int64_t count) {
    const float* residual = x + first * rows.width;
    normalise(on, {count, rows.width}, norm, residual, normed);
    const Piece piece{rows, first, count};
    linears(on, {piece.through(block.gate, normed, nullptr, gate), piece.through(block.up, normed, nullptr, up)});
    silu_mul(on, {count, inner}, gate, up, up);
    linear(on, piece.through(block.down, up, residual, y + first * rows.width));
  });
}

void gelu_block(const Context& on, Rows rows, const Norm& norm, const float* x, const GeluMlp& block, float* y) {
  const int64_t most = std::min(kRows, rows.count), inner = block.second.matrix->in;
  float *normed = scratch(most * (rows.width + inner), Use::fused), *hidden = normed + most * rows.width;
  in_pieces(rows.count, [&](int64_t first, int64_t count) {
    const float* residual = x + first * rows.width;
    normalise(on, {count, rows.width}, norm, residual, normed);
    const Piece piece{rows, first, count};
    linear(on, piece.through(block.first, normed, nullptr, hidden));
    (block.exact ? gelu_erf : gelu_tanh)(on, {count, inner}, hidden, hidden);
    linear(on, piece.through(block.second, hidden, residual, y + first * rows.width));
  });
}

}  // namespace pagelift
