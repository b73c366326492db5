// Norms, activations and heads against double precision; widths that do not fill a vector.
#include "tests.h"

using namespace pagelift;
using namespace pagelift::tests;

namespace {

constexpr float kEps = 1e-5f;

double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }

std::vector<float> wide(int64_t n, uint32_t seed) {  // reaches where exp() is cut off
  std::vector<float> x = normal(n, seed);
  for (size_t i = 0; i < x.size(); ++i) x[i] *= i % 5 == 0 ? 60.0f : 3.0f;
  return x;
}

}  // namespace

TEST(norms) {
  for (Rows rows : {Rows{3, 1}, Rows{2, 19}, Rows{300, 130}}) {
    const int64_t n = rows.count * rows.width;
    const auto x = wide(n, 1), gate = wide(n, 2), weight = normal(rows.width, 3), bias = normal(rows.width, 4);
    std::vector<float> y(n), centred(n), gated(n);
    rms_norm(on, rows, {weight.data(), nullptr, kEps}, x.data(), y.data());
    layer_norm(on, rows, {weight.data(), bias.data(), kEps}, x.data(), centred.data());
    gated_rms_norm(on, rows, {weight.data(), nullptr, kEps}, x.data(), gate.data(), gated.data());
    std::vector<double> rms(n), layer(n), both(n);
    for (int64_t r = 0; r < rows.count; ++r) {
      double sum = 0, squares = 0, spread = 0;
      for (int64_t i = 0; i < rows.width; ++i)
        sum += x[r * rows.width + i], squares += (double)x[r * rows.width + i] * x[r * rows.width + i];
      const double mean = sum / rows.width;
      for (int64_t i = 0; i < rows.width; ++i) spread += (x[r * rows.width + i] - mean) * (x[r * rows.width + i] - mean);
      for (int64_t i = 0; i < rows.width; ++i) {
        const int64_t at = r * rows.width + i;
        rms[at] = x[at] / std::sqrt(squares / rows.width + kEps) * weight[i];
        layer[at] = (x[at] - mean) / std::sqrt(spread / rows.width + kEps) * weight[i] + bias[i];
        both[at] = rms[at] * gate[at] * sigmoid(gate[at]);
      }
    }
    check_close(y, rms, 1e-5, "rms_norm");
    check_close(centred, layer, 1e-4, "layer_norm");
    check_close(gated, both, 1e-5, "gated_rms_norm");
  }
}

TEST(activations) {
  const Rows rows{4, 37};
  const int64_t n = rows.count * rows.width;
  const auto gate = wide(n, 1), x = normal(n, 2), wider = wide(rows.count * 50, 3);
  std::vector<float> silu(n), strided(n), tanh(n), erf(n);
  silu_mul(on, rows, gate.data(), x.data(), silu.data());
  sigmoid_mul(on, rows, wider.data() + 13, 50, x.data(), strided.data());
  gelu_tanh(on, rows, gate.data(), tanh.data());
  gelu_erf(on, rows, gate.data(), erf.data());
  std::vector<double> expected[4];
  for (int64_t i = 0; i < n; ++i) {
    const double g = gate[i];
    expected[0].push_back(g * sigmoid(g) * x[i]);
    expected[1].push_back(sigmoid(wider[i / 37 * 50 + 13 + i % 37]) * x[i]);
    expected[2].push_back(0.5 * g * (1 + std::tanh(std::sqrt(2 / M_PI) * (g + 0.044715 * g * g * g))));
    expected[3].push_back(0.5 * g * std::erfc(-g / std::sqrt(2)));
  }
  check_close(silu, expected[0], 1e-5, "silu_mul");
  check_close(strided, expected[1], 1e-5, "sigmoid_mul");
  check_close(tanh, expected[2], 1e-5, "gelu_tanh");
  check_close(erf, expected[3], 1e-5, "gelu_erf");
}

TEST(heads_are_normalised_rotated_and_scaled) {
  const int64_t tokens = 3, heads = 2, dim = 22, stride = 40, half = 5;
  const auto x = normal(tokens * heads * stride, 1), norm = normal(dim, 2), angles = normal(tokens * half, 3);
  std::vector<float> cos, sin, y(tokens * heads * dim);
  for (float angle : angles) cos.push_back(std::cos(angle)), sin.push_back(std::sin(angle));
  prepare_heads(on, {x.data(), tokens, heads, dim, stride, norm.data(), kEps, cos.data(), sin.data(), half, 0.5f}, y.data());
  std::vector<double> expected;
  for (int64_t t = 0; t < tokens; ++t)
    for (int64_t h = 0; h < heads; ++h) {
      const float* row = x.data() + (t * heads + h) * stride;
      double squares = 0;
      for (int64_t i = 0; i < dim; ++i) squares += (double)row[i] * row[i];
      std::vector<double> normed;
      for (int64_t i = 0; i < dim; ++i) normed.push_back(row[i] / std::sqrt(squares / dim + kEps) * norm[i]);
      for (int64_t i = 0; i < dim; ++i) {
        const int64_t pair = i % half, at = t * half + pair;
        const double turned = i < half       ? normed[pair] * cos[at] - normed[pair + half] * sin[at]
                              : i < 2 * half ? normed[pair + half] * cos[at] + normed[pair] * sin[at]
                                             : normed[i];
        expected.push_back(0.5 * turned);
      }
    }
  check_close(y, expected, 1e-5, "prepare_heads");
}
