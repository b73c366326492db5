// Attention and gated DeltaNet by their definitions in double precision, over ragged steps, copies and drafts.
#include <algorithm>

#include "tests.h"

using namespace pagelift;
using namespace pagelift::tests;

namespace {

constexpr int64_t kHeads = 6, kKvHeads = 2, kDim = 20;

// softmax(q k^T) v for one query row over `count` keys; key(i) and value(i) give rows.
template <class Key, class Value>
std::vector<double> attend(const float* q, int64_t count, Key key, Value value) {
  std::vector<double> weights;
  double total = 0;
  for (int64_t i = 0; i < count; ++i) {
    double score = 0;
    for (int64_t d = 0; d < kDim; ++d) score += (double)q[d] * key(i)[d];
    weights.push_back(std::exp(score));
    total += weights.back();
  }
  std::vector<double> y(kDim);
  for (int64_t i = 0; i < count; ++i)
    for (int64_t d = 0; d < kDim; ++d) y[d] += weights[i] / total * value(i)[d];
  return y;
}

struct Tokens {  // all tokens of one sequence
  std::vector<float> q, k, v;
  explicit Tokens(int64_t n, uint32_t seed)
      : q(normal(n * kHeads * kDim, seed)), k(normal(n * kKvHeads * kDim, seed + 1)), v(normal(n * kKvHeads * kDim, seed + 2)) {
    for (float& value : q) value *= 0.3f;
  }
};

// Rows `first` to `first + count - 1` of a sequence through the cache.
std::vector<float> step(const Context& on, KvCache& cache, const Tokens& tokens, int64_t first, int64_t count) {
  std::vector<float> y(count * kHeads * kDim);
  attention(on,
            {kHeads, tokens.q.data() + first * kHeads * kDim, tokens.k.data() + first * kKvHeads * kDim,
             tokens.v.data() + first * kKvHeads * kDim},
            {{0, count, false}}, {&cache}, y.data());
  return y;
}

std::vector<double> expected_rows(const Tokens& tokens, int64_t first, int64_t count) {
  std::vector<double> all;
  for (int64_t t = first; t < first + count; ++t)
    for (int64_t h = 0; h < kHeads; ++h) {
      const auto row = [&](const std::vector<float>& x) {
        return [&x, h](int64_t i) { return x.data() + (i * kKvHeads + h / (kHeads / kKvHeads)) * kDim; };
      };
      const auto y = attend(tokens.q.data() + (t * kHeads + h) * kDim, t + 1, row(tokens.k), row(tokens.v));
      all.insert(all.end(), y.begin(), y.end());
    }
  return all;
}

const DeltaShape kShape{2, 4, 12, 20, 4};

struct Net {
  std::vector<float> conv = normal(kShape.channels() * kShape.kernel, 1), a_log = normal(kShape.value_heads, 2),
                     dt_bias = normal(kShape.value_heads, 3);
};

struct DeltaTokens {
  std::vector<float> qkv, a, b;
  DeltaTokens(int64_t n, uint32_t seed)
      : qkv(normal(n * kShape.channels(), seed)),
        a(normal(n * kShape.value_heads, seed + 1)),
        b(normal(n * kShape.value_heads, seed + 2)) {}
};

std::vector<float> step(const Context& on, const Net& net, DeltaState& state, const DeltaTokens& x, int64_t first, int64_t count,
                        bool draft) {
  std::vector<float> mixed(count * kShape.channels()), y(count * kShape.values());
  const std::vector<Segment> segments{{0, count, draft}};
  causal_conv1d(on, x.qkv.data() + first * kShape.channels(), net.conv.data(), segments, {&state}, mixed.data());
  const int64_t gate = first * kShape.value_heads;
  gated_delta_rule(on, mixed.data(), {x.a.data() + gate, x.b.data() + gate, net.a_log.data(), net.dt_bias.data()}, segments, {&state},
                   y.data());
  return y;
}

std::vector<double> expected_delta(const Net& net, const DeltaTokens& x, int64_t tokens) {
  const int64_t channels = kShape.channels(), keys = kShape.keys(), kd = kShape.key_dim, vd = kShape.value_dim, heads = kShape.value_heads;
  std::vector<double> states(heads * kd * vd), y;
  for (int64_t t = 0; t < tokens; ++t) {
    std::vector<double> mixed(channels);
    for (int64_t c = 0; c < channels; ++c) {
      for (int64_t j = 0; j < kShape.kernel; ++j)
        if (t + j >= kShape.kernel - 1)
          mixed[c] += (double)x.qkv[(t + j - kShape.kernel + 1) * channels + c] * net.conv[c * kShape.kernel + j];
      mixed[c] /= 1 + std::exp(-mixed[c]);
    }
    for (int64_t h = 0; h < heads; ++h) {
      const double *q = mixed.data() + h / 2 * kd, *k = q + keys, *v = mixed.data() + 2 * keys + h * vd;
      double q_size = 1e-6, k_size = 1e-6;
      for (int64_t i = 0; i < kd; ++i) q_size += q[i] * q[i], k_size += k[i] * k[i];
      const double decay = std::exp(-std::exp(net.a_log[h]) * std::log1p(std::exp((double)x.a[t * heads + h] + net.dt_bias[h])));
      const double beta = 1 / (1 + std::exp(-(double)x.b[t * heads + h]));
      for (int64_t j = 0; j < vd; ++j) {
        double *state = states.data() + h * kd * vd + j, read = 0, out = 0;
        for (int64_t i = 0; i < kd; ++i) state[i * vd] *= decay, read += state[i * vd] * k[i] / std::sqrt(k_size);
        for (int64_t i = 0; i < kd; ++i) {
          state[i * vd] += k[i] / std::sqrt(k_size) * beta * (v[j] - read);
          out += state[i * vd] * q[i] / std::sqrt(q_size * kd);
        }
        y.push_back(out);
      }
    }
  }
  return y;
}

}  // namespace

TEST(cached_attention_in_steps) {
  const Tokens tokens(150, 1);
  for (const auto& [type, tolerance] : {std::pair{KvType::f32, 1e-5}, {KvType::bf16, 1e-2}, {KvType::i8, 2e-2}}) {
    KvCache cache(type, kKvHeads, kDim);
    int64_t first = 0;
    for (int64_t count : {1, 60, 5, 70, 14}) {
      check_close(step(on, cache, tokens, first, count), expected_rows(tokens, first, count), tolerance, "attention");
      first += count;
    }
    check(cache.length() == 150 && cache.nbytes() == 3 * kKvHeads * head_bytes(type, kDim), "the cache has 150 tokens in three blocks");
  }
}

// Longer than a split, so that steps of one token share it among threads and steps of many do not.
TEST(attention_has_the_bits_of_any_cut) {
  const int64_t count = 2100;
  const Tokens tokens(count, 1);
  for (KvType type : {KvType::f32, KvType::bf16, KvType::i8}) {
    KvCache whole(type, kKvHeads, kDim);
    const std::vector<float> all = step(on, whole, tokens, 0, count);
    const std::vector<double> last = expected_rows(tokens, count - 1, 1);
    check_close({all.end() - kHeads * kDim, all.end()}, last, type == KvType::f32 ? 1e-5 : 2e-2, "the last row");
    KvCache cut(type, kKvHeads, kDim);
    int64_t first = 0;
    for (int64_t rows : {1, 255, 2, 300, 1489, 1, 1, 7, 40, 4}) {
      const std::vector<float> some = step(on, cut, tokens, first, rows);
      check(std::equal(some.begin(), some.end(), all.begin() + first * kHeads * kDim), "a cut at " + std::to_string(first) + " changes no bit");
      first += rows;
    }
    check(first == count, "all rows were looked at");
  }
}

TEST(two_sequences_in_one_step_have_the_bits_of_one) {
  const Tokens a(70, 1), b(9, 5);
  KvCache alone_a(KvType::f32, kKvHeads, kDim), alone_b(alone_a), a_cache(alone_a), b_cache(alone_a);
  Tokens both = b;
  both.q.insert(both.q.end(), a.q.begin(), a.q.end());
  both.k.insert(both.k.end(), a.k.begin(), a.k.end());
  both.v.insert(both.v.end(), a.v.begin(), a.v.end());
  std::vector<float> y(79 * kHeads * kDim);
  attention(on, {kHeads, both.q.data(), both.k.data(), both.v.data()}, {{0, 9, false}, {9, 70, false}}, {&b_cache, &a_cache}, y.data());
  std::vector<float> apart = step(on, alone_b, b, 0, 9);
  const std::vector<float> rest = step(on, alone_a, a, 0, 70);
  apart.insert(apart.end(), rest.begin(), rest.end());
  check(y == apart, "a batch changes no bit");
}

TEST(copies_and_rejected_drafts_of_attention) {
  const Tokens tokens(90, 1), other(90, 7);
  Tokens mixed = other;  // what the original sees: 50 common tokens, then its own
  std::copy_n(tokens.k.begin(), 50 * kKvHeads * kDim, mixed.k.begin());
  std::copy_n(tokens.v.begin(), 50 * kKvHeads * kDim, mixed.v.begin());
  KvCache cache(KvType::f32, kKvHeads, kDim);
  step(on, cache, tokens, 0, 50);
  KvCache copy = cache.copy();
  check_close(step(on, cache, mixed, 50, 10), expected_rows(mixed, 50, 10), 1e-5, "attention of the original");
  check_close(step(on, copy, tokens, 50, 30), expected_rows(tokens, 50, 30), 1e-5, "attention of a copy");
  check_close(step(on, cache, mixed, 60, 30), expected_rows(mixed, 60, 30), 1e-5, "attention of the original beside its copy");
  cache.keep(0, 40);
  check_close(step(on, cache, tokens, 50, 40), expected_rows(tokens, 50, 40), 1e-5, "attention after a rejected draft");
  bool refused = false;
  try {
    cache.keep(2, 1);
  } catch (const CacheError&) {
    refused = true;
  }
  check(refused, "more than the block cannot be kept");
}

TEST(attention_without_a_mask) {
  const std::vector<int64_t> lengths{3, 77, 1};
  const int64_t rows = 81, width = 2 * kDim, stride = 2 * width + 5;
  std::vector<float> q = normal(rows * width, 1), kv = normal(rows * stride, 2), y(rows * width);
  full_attention(on, {KvType::f32, {q.data(), width}, {kv.data(), stride}, {kv.data() + width + 5, stride}, 2, kDim, nullptr, nullptr, 0, 1.0f, lengths}, y.data());
  std::vector<double> expected;
  int64_t first = 0;
  for (int64_t length : lengths) {
    for (int64_t r = first; r < first + length; ++r)
      for (int64_t h = 0; h < 2; ++h) {
        const float* key = kv.data() + first * stride + h * kDim;
        const auto one = attend(
            q.data() + r * width + h * kDim, length, [&](int64_t i) { return key + i * stride; },
            [&](int64_t i) { return key + width + 5 + i * stride; });
        expected.insert(expected.end(), one.begin(), one.end());
      }
    first += length;
  }
  check_close(y, expected, 1e-5, "full_attention");
  full_attention(on, {KvType::bf16, {q.data(), width}, {kv.data(), stride}, {kv.data() + width + 5, stride}, 2, kDim, nullptr, nullptr, 0, 1.0f, lengths}, y.data());
  check_close(y, expected, 3e-2, "full_attention over bf16");
}

TEST(delta_net_in_steps) {
  const Net net;
  const DeltaTokens x(40, 1);
  DeltaState state(kShape);
  std::vector<float> found;
  int64_t first = 0;
  for (int64_t count : {1, 2, 30, 1, 6}) {
    const auto y = step(on, net, state, x, first, count, false);
    found.insert(found.end(), y.begin(), y.end());
    first += count;
  }
  check_close(found, expected_delta(net, x, 40), 1e-5, "gated_delta_rule");
}

TEST(drafts_of_delta_net_leave_the_bits_of_a_step) {
  const Net net;
  const DeltaTokens x(20, 1);
  for (int64_t kept : {0, 1, 2, 7}) {
    DeltaState drafted(kShape), plain(kShape);
    step(on, net, drafted, x, 0, 5, false);
    step(on, net, plain, x, 0, 5, false);
    step(on, net, drafted, x, 5, 7, true);
    drafted.keep(on.pool, on.kernels, kept, 7);
    if (kept) step(on, net, plain, x, 5, kept, false);
    check(drafted.state == plain.state && drafted.window == plain.window, "state after keeping " + std::to_string(kept));
    DeltaState copy = drafted.copy();
    check(step(on, net, copy, x, 12, 8, false) == step(on, net, plain, x, 12, 8, false), "rows after keeping " + std::to_string(kept));
  }
}
