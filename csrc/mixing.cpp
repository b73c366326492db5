// Operations that mix tokens: attention and gated DeltaNet.
#include <algorithm>
#include <cmath>

#include "ops.h"
#include "scratch.h"

namespace pagelift {

namespace {

// Up to kQueries query rows of one KV head.
struct AttentionTask {
  const float* const* blocks;
  int64_t segment, head, first, rows;  // rows: token by token, in each the query heads of the group
};

constexpr int64_t kConvChannels = 64;

int64_t longest(const std::vector<Segment>& segments) {
  int64_t length = 0;
  for (const Segment& segment : segments) length = std::max(length, segment.length);
  return length;
}

float softplus(float x) { return std::max(x, 0.0f) + std::log1p(std::exp(-std::fabs(x))); }
float sigmoid(float x) { return 1.0f / (1.0f + std::exp(-x)); }

void append(const Context& on, const HeadRows& rows, const std::vector<Segment>& segments, const std::vector<KvCache*>& caches) {
  const int64_t heads = caches[0]->kv_heads(), dim = caches[0]->dim();
  for (size_t s = 0; s < segments.size(); ++s) caches[s]->extend(segments[s].length);
  on.pool.run((int64_t)segments.size() * heads, 1, dim * longest(segments) * 2, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) {
      const Segment& segment = segments[i / heads];
      KvCache& cache = *caches[i / heads];
      const int64_t start = cache.length() - segment.length;
      for (int64_t t = 0; t < segment.length; ++t) {
        const int64_t row = ((segment.start + t) * heads + i % heads) * dim;
        cache.write(start + t, i % heads, rows.k + row, rows.v + row);
      }
    }
  });
}

// Keys and values of one head of one run, laid out in blocks. Returns the memory; `blocks` gets where each lies.
std::unique_ptr<float[]> pack_run(const Runs& runs, int64_t first, int64_t length, int64_t head, std::vector<const float*>& blocks) {
  const int64_t size = head_block(runs.dim), count = (length + kKeys - 1) / kKeys;
  std::unique_ptr<float[]> memory(new float[count * size]());
  for (int64_t b = 0; b < count; ++b) {
    float *keys = memory.get() + b * size, *values = keys + kKeys * runs.dim;
    blocks.push_back(keys);
    for (int64_t j = 0; j < std::min(kKeys, length - b * kKeys); ++j) {
      const int64_t row = first + b * kKeys + j;
      const float* key = runs.k + row * runs.k_stride + head * runs.dim;
      for (int64_t d = 0; d < runs.dim; ++d) keys[d * kKeys + j] = key[d];
      std::copy_n(runs.v + row * runs.v_stride + head * runs.dim, runs.dim, values + j * padded(runs.dim));
    }
  }
  return memory;
}

void attend_run(const Context& on, const Runs& runs, int64_t first, int64_t length, int64_t head, float* y) {
  std::vector<const float*> blocks;
  const auto memory = pack_run(runs, first, length, head, blocks);
  const float* q[kQueries];
  float* out[kQueries];
  int64_t visible[kQueries];
  for (int64_t r = 0; r < length; r += kQueries) {
    const int64_t rows = std::min(kQueries, length - r);
    for (int64_t i = 0; i < rows; ++i) {
      const int64_t at = ((first + r + i) * runs.heads + head) * runs.dim;
      q[i] = runs.q + at;
      out[i] = y + at;
      visible[i] = length;
    }
    on.kernels.attention({blocks.data(), runs.dim, rows, q, visible, out}, scratch(attention_scratch(runs.dim)));
  }
}

}  // namespace

void prepare_heads(const Context& on, const Heads& h, float* y) {
  on.pool.run(h.tokens, 1, h.heads * h.dim * 4, [&](int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t)
      for (int64_t i = t * h.heads; i < (t + 1) * h.heads; ++i)
        on.kernels.head({h.x + i * h.stride, h.norm, h.eps, h.cos + t * h.half, h.sin + t * h.half, h.dim, h.half, h.scale, y + i * h.dim});
  });
}

void attention(const Context& on, const HeadRows& rows, const std::vector<Segment>& segments, const std::vector<KvCache*>& caches,
               float* y) {
  append(on, rows, segments, caches);
  const int64_t kv_heads = caches[0]->kv_heads(), dim = caches[0]->dim(), heads = rows.heads, group = heads / kv_heads;
  std::vector<std::vector<const float*>> blocks;
  std::vector<AttentionTask> tasks;
  int64_t most = 0;
  blocks.reserve(segments.size() * kv_heads);
  for (int64_t s = 0; s < (int64_t)segments.size(); ++s) {
    most = std::max(most, caches[s]->length());
    for (int64_t head = 0; head < kv_heads; ++head) {
      blocks.push_back(caches[s]->blocks(head));
      const int64_t all = segments[s].length * group;
      for (int64_t first = 0; first < all; first += kQueries)
        tasks.push_back({blocks.back().data(), s, head, first, std::min(kQueries, all - first)});
    }
  }
  on.pool.run((int64_t)tasks.size(), 1, most * dim * group, [&](int64_t begin, int64_t end) {
    const float* queries[kQueries];
    float* out[kQueries];
    int64_t visible[kQueries];
    for (int64_t i = begin; i < end; ++i) {
      const AttentionTask& task = tasks[i];
      const Segment& segment = segments[task.segment];
      const int64_t past = caches[task.segment]->length() - segment.length;
      for (int64_t r = 0; r < task.rows; ++r) {
        const int64_t token = (task.first + r) / group, head = task.head * group + (task.first + r) % group;
        const int64_t at = ((segment.start + token) * heads + head) * dim;
        queries[r] = rows.q + at;
        out[r] = y + at;
        visible[r] = past + token + 1;
      }
      on.kernels.attention({task.blocks, dim, task.rows, queries, visible, out}, scratch(attention_scratch(dim)));
    }
  });
}

void full_attention(const Context& on, const Runs& runs, float* y) {
  std::vector<int64_t> starts;
  int64_t rows = 0, most = 0;
  for (int64_t length : runs.lengths) {
    starts.push_back(rows);
    rows += length;
    most = std::max(most, length);
  }
  on.pool.run((int64_t)starts.size() * runs.heads, 1, most * most * runs.dim, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) attend_run(on, runs, starts[i / runs.heads], runs.lengths[i / runs.heads], i % runs.heads, y);
  });
}

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
  const std::unique_ptr<float[]> memory(new float[tokens * 2 * (keys + heads)]);
  float *q = memory.get(), *k = q + tokens * keys, *decay = k + tokens * keys, *beta = decay + tokens * heads;
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

}  // namespace pagelift
