// Gated DeltaNet: the causal convolution and the recurrence.
#include <algorithm>
#include <cmath>

#include "ops.h"
#include "scratch.h"

namespace pagelift {

namespace {

constexpr int64_t kConvChannels = 64;

int64_t longest(const std::vector<Segment>& segments) {
  int64_t length = 0;
  for (const Segment& segment : segments) length = std::max(length, segment.length);
  return length;
}

float softplus(float x) { return std::max(x, 0.0f) + std::log1p(std::exp(-std::fabs(x))); }
float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

}  // namespace

void causal_conv1d(const Context& on, const float* x, const float* weight, const std::vector<Segment>& segments,
                   const std::vector<DeltaState*>& states, float* y) {
  const DeltaShape& shape = states[0]->shape;
  const int64_t channels = shape.channels(), groups = (channels + kConvChannels - 1) / kConvChannels, past = shape.kernel - 1;
  on.pool.run((int64_t)segments.size() * groups, 1, longest(segments) * kConvChannels * 8, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      const Segment& segment = segments[i / groups];
      const int64_t first = i % groups * kConvChannels, at = segment.start * channels + first;
      on.kernels.conv({states[i / groups]->window.data() + first, x + at, weight + first * shape.kernel, y + at, segment.length,
                       std::min(kConvChannels, channels - first), channels, shape.kernel});
    }
  });
  for (size_t s = 0; s < segments.size(); ++s) {
    DeltaState& state = *states[s];
    const float* rows = x + segments[s].start * channels;
    const int64_t length = segments[s].length, added = std::min(length, past);
    state.draft.reset();
    if (segments[s].draft) {
      state.draft.emplace().inputs = state.window;
      state.draft->inputs.insert(state.draft->inputs.end(), rows, rows + length * channels);
    }
    std::copy(state.window.begin() + added * channels, state.window.end(), state.window.begin());
    std::copy_n(rows + (length - added) * channels, added * channels, state.window.end() - added * channels);
  }
}

void gated_delta_rule(const Context& on, const float* qkv, const DeltaGates& gates, const std::vector<Segment>& segments,
                      const std::vector<DeltaState*>& states, float* y) {
  const DeltaShape& shape = states[0]->shape;
  const int64_t tokens = segments.back().start + segments.back().length, keys = shape.keys(), heads = shape.value_heads;
  float *q = scratch(tokens * 2 * (keys + heads), Use::operation), *k = q + tokens * keys, *decay = k + tokens * keys, *beta = decay + tokens * heads;
  const float q_scale = 1.0f / std::sqrt((float)shape.key_dim);
  on.pool.run(tokens, 1, keys * 4 + heads * 64, [&](int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t) {
      for (int64_t h = 0; h < keys; h += shape.key_dim) {
        on.kernels.normalise(qkv + t * shape.channels() + h, q_scale, shape.key_dim, q + t * keys + h);
        on.kernels.normalise(qkv + t * shape.channels() + keys + h, 1.0f, shape.key_dim, k + t * keys + h);
      }
      for (int64_t h = 0; h < heads; ++h) {
        decay[t * heads + h] = std::exp(-std::exp(gates.a_log[h]) * softplus(gates.a[t * heads + h] + gates.dt_bias[h]));
        beta[t * heads + h] = sigmoid(gates.b[t * heads + h]);
      }
    }
  });
  std::vector<DeltaInputs> inputs;
  for (size_t s = 0; s < segments.size(); ++s) {
    const int64_t at = segments[s].start;
    inputs.push_back({q + at * keys, k + at * keys, qkv + at * shape.channels() + 2 * keys, decay + at * heads, beta + at * heads, keys,
                      shape.channels(), segments[s].length, y + at * shape.values()});
    if (segments[s].draft) states[s]->record(inputs.back());
  }
  const int64_t chunks = heads * shape.chunks();
  on.pool.run((int64_t)segments.size() * chunks, 1, longest(segments) * shape.key_dim * kColumns, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i)
      states[i / chunks]->advance(on.kernels, inputs[i / chunks], i % chunks / shape.chunks(), i % shape.chunks());
  });
}

void delta_net(const Context& on, const DeltaProjections& x, const std::vector<Segment>& segments,
               const std::vector<DeltaState*>& states, float* y) {
  const DeltaShape& shape = states[0]->shape;
  const int64_t tokens = segments.back().start + segments.back().length;
  float* mixed = scratch(tokens * shape.channels(), Use::fused);
  causal_conv1d(on, x.qkv, x.conv, segments, states, mixed);
  gated_delta_rule(on, mixed, x.gates, segments, states, y);
  gated_rms_norm(on, {tokens * shape.value_heads, shape.value_dim}, x.norm, y, x.z, y);
}

}  // namespace pagelift
