// The operations of the backend: kernels spread over threads. Arrays are float32, row-major and dense unless said otherwise.
#pragma once

#include <cstdint>
#include <vector>

#include "caches.h"
#include "kernels.h"
#include "memory.h"
#include "threads.h"

namespace pagelift {

struct Context {
  ThreadPool& pool;
  const Kernels& kernels;
};

// Consecutive rows of one sequence in a step.
struct Segment {
  int64_t start, length;
  bool draft;
};

// Whether linear layers gain by tiles: packed ones always, dense ones of 16 bits where the level has a kernel that keeps their values.
bool has_tiles(const Kernels& kernels, const Matrix& matrix);
// The weights of a matrix that has tiles in the layout of csrc/tiles.h.
Memory tile(const Context& on, const Matrix& matrix);
// Over tiles where the matrix has them: then x is rounded to bf16 at levels with a matrix unit, for a dense matrix and for rows of a
// prompt; at other levels dense tiles take x as it is; else it is quantized to 8 bits per group. Without tiles x is taken as it is.
void linear(const Context& on, const LinearJob& job);
// Several layers over the same rows: x of all jobs is one. It is quantized once for those that take it in the same form.
void linears(const Context& on, const std::vector<LinearJob>& jobs);
// y (count, in): the chosen rows of the matrix.
void embedding(const Context& on, const Matrix& matrix, const int64_t* rows, int64_t count, float* y);

struct Rows {  // `count` rows of `width` floats
  int64_t count, width;
  const bool* prompt = nullptr;  // (count,) which of them belong to a prompt, or nullptr for none; for linear layers
};
struct Norm {
  const float* weight;  // (width,)
  const float* bias;    // of layer_norm only
  float eps;
};
void rms_norm(const Context& on, Rows rows, const Norm& norm, const float* x, float* y);
void layer_norm(const Context& on, Rows rows, const Norm& norm, const float* x, float* y);
void gated_rms_norm(const Context& on, Rows rows, const Norm& norm, const float* x, const float* gate, float* y);
void silu_mul(const Context& on, Rows rows, const float* gate, const float* x, float* y);
// The gates of a row start `gate_stride` floats after those of the row before.
void sigmoid_mul(const Context& on, Rows rows, const float* gate, int64_t gate_stride, const float* x, float* y);
void gelu_tanh(const Context& on, Rows rows, const float* x, float* y);
void gelu_erf(const Context& on, Rows rows, const float* x, float* y);

// A linear layer. bias: (matrix->out,), or nullptr.
struct Layer {
  const Matrix* matrix;
  const float* bias;
};
// Several layers over the same normalised rows: y[i] (rows, out of layer i). layer_norm if the norm has a bias, else rms_norm.
void norm_linears(const Context& on, Rows rows, const Norm& norm, const float* x, const std::vector<Layer>& layers,
                  const std::vector<float*>& y);
// x + down(silu(gate(n)) * up(n)), and x + second(gelu(first(n))), with n = norm(x).
struct Swiglu {
  Layer gate, up, down;
};
void swiglu_block(const Context& on, Rows rows, const Norm& norm, const float* x, const Swiglu& block, float* y);
struct GeluMlp {
  Layer first, second;
  bool exact;  // erf, not tanh
};
void gelu_block(const Context& on, Rows rows, const Norm& norm, const float* x, const GeluMlp& block, float* y);

// How heads are prepared for attention: (tokens, heads, dim) rows, `stride` floats from head to head.
struct Heads {
  const float* x;
  int64_t tokens, heads, dim, stride;
  const float* norm;  // (dim,), or nullptr
  float eps;
  const float *cos, *sin;  // (tokens, half)
  int64_t half;
  float scale;
};
// y (tokens, heads, dim): normalised, rotated and scaled.
void prepare_heads(const Context& on, const Heads& heads, float* y);

// q (T, heads, dim), already scaled; k and v (T, kv_heads, dim).
struct HeadRows {
  int64_t heads;
  const float *q, *k, *v;
};
// Append k and v to the caches, then attend: y (T, heads, dim).
void attention(const Context& on, const HeadRows& rows, const std::vector<Segment>& segments, const std::vector<KvCache*>& caches,
               float* y);
// From projections to the input of the output projection: norms of q and k, rotary positions, attention, gate. q: (T, heads, dim),
// or with a gate (T, heads, 2 * dim) as [q | gate]; k and v: (T, kv_heads, dim).
struct Projections {
  const float *q, *k, *v;
  int64_t heads;
  bool gated;
  Norm q_norm, k_norm;
  const float *cos, *sin;  // (T, half)
  int64_t half;
};
void head_attention(const Context& on, const Projections& x, const std::vector<Segment>& segments, const std::vector<KvCache*>& caches,
                    float* y);
// Inside consecutive runs of rows, without a mask. Heads are features `stride` floats apart from row to row; q and k are rotated on
// the way, q is scaled too. y: (N, heads, dim).
struct Features {
  const float* x;
  int64_t stride;
};
struct Runs {
  KvType type;  // of keys and values while they are looked at
  Features q, k, v;
  int64_t heads, dim;
  const float *cos, *sin;  // (N, half)
  int64_t half;
  float scale;
  const std::vector<int64_t>& lengths;

  // One head of one row, rotated and multiplied by `factor`.
  void rotate(const Context& on, const Features& from, int64_t row, int64_t head, float factor, float* to) const;
};
void full_attention(const Context& on, const Runs& runs, float* y);

// x and y: (T, channels) of the states' shape.
void causal_conv1d(const Context& on, const float* x, const float* weight, const std::vector<Segment>& segments,
                   const std::vector<DeltaState*>& states, float* y);
struct DeltaGates {
  const float *a, *b;            // (T, value_heads)
  const float *a_log, *dt_bias;  // (value_heads,)
};
// From projections to the input of the output projection: convolution, gated delta rule, norm with the gate z (T, values).
struct DeltaProjections {
  const float *qkv, *z;
  DeltaGates gates;
  const float* conv;
  Norm norm;  // (value_dim,)
};
void delta_net(const Context& on, const DeltaProjections& x, const std::vector<Segment>& segments,
               const std::vector<DeltaState*>& states, float* y);
// qkv: (T, channels) after the convolution. y: (T, values).
void gated_delta_rule(const Context& on, const float* qkv, const DeltaGates& gates, const std::vector<Segment>& segments,
                      const std::vector<DeltaState*>& states, float* y);

}  // namespace pagelift
