// The operations as methods of one object, which holds the threads and the level of kernels. Every array is checked here; the
// global interpreter lock is released while kernels run.
#include <cmath>

#include "bind/bind.h"
#include "measure.h"
#include "ops.h"

namespace pagelift::bind {

namespace {

using Segments = std::vector<std::tuple<int64_t, int64_t, bool>>;
using Release = nb::gil_scoped_release;

// Leading axes are rows, the last one is features.
Rows rows_of(const In& x) {
  expect(x.ndim() >= 1 && x.shape(x.ndim() - 1) > 0, "rows have at least one feature");
  const int64_t width = x.shape(x.ndim() - 1);
  return {(int64_t)x.size() / width, width};
}

// With the mask of those that belong to a prompt.
Rows rows_of(const In& x, const std::optional<Mask>& prompt) {
  Rows rows = rows_of(x);
  expect(!prompt || (int64_t)prompt->size() == rows.count, "the mask of a prompt's rows has one value per row");
  rows.prompt = prompt ? prompt->data() : nullptr;
  return rows;
}

int64_t axis(const In& x, size_t i) { return (int64_t)x.shape(i); }
bool has_size(const In& x, int64_t size) { return (int64_t)x.size() == size; }
bool has_size(const Out& x, int64_t size) { return (int64_t)x.size() == size; }

std::vector<Segment> segments_of(const Segments& parts, int64_t rows) {
  std::vector<Segment> segments;
  int64_t end = 0;
  for (const auto& [start, length, draft] : parts) {
    expect(start == end && length > 0, "segments follow each other and have at least one row");
    segments.push_back({start, length, draft});
    end += length;
  }
  expect(end == rows && rows > 0, "segments cover all rows");
  return segments;
}

// Distinct caches of one shape, one per segment.
template <class Cache, class Same>
void check_caches(const std::vector<Cache*>& caches, size_t segments, Same same) {
  expect(caches.size() == segments, "there is one cache per segment");
  for (size_t i = 0; i < caches.size(); ++i) {
    expect(caches[i] && same(*caches[i]), "caches do not fit the layer");
    for (size_t j = 0; j < i; ++j) expect(caches[i] != caches[j], "two segments share a cache");
  }
}

class Operations {
 public:
  Operations(int threads, std::optional<std::string> level) : pool_(threads), on_{pool_, kernels(level ? level->c_str() : nullptr)} {}

  int threads() const { return pool_.threads(); }
  std::string level() const { return on_.kernels.name; }

  double bandwidth_gbs(int64_t bytes) {
    expect(bytes >= 1 << 20, "bandwidth is measured over at least a mebibyte");
    Release release;
    return measure_bandwidth_gbs(on_, bytes);
  }

  double matmul_gflops(const std::string& kind) {
    expect(kind == "int8" || kind == "bf16" || kind == "f32", "the kinds of matrix products are int8, bf16 and f32");
    Release release;
    return measure_matmul_gflops(on_, kind == "int8" ? Number::int8 : kind == "bf16" ? Number::bf16 : Number::f32);
  }

  bool tile(Weight& weight) {
    if (!weight.matrix.values || !has_tiles(on_.kernels, weight.matrix)) return false;
    Memory tiles;
    {
      Release release;
      tiles = pagelift::tile(on_, weight.matrix);
    }
    weight.take_tiles(std::move(tiles));
    return true;
  }

  void linear(const In& x, const Weight& weight, const std::optional<Ids>& columns, const std::optional<In>& residual,
              const std::optional<Mask>& prompt, const Out& y) {
    const Rows rows = rows_of(x, prompt);
    const int64_t count = columns ? (int64_t)columns->size() : weight.matrix.out;
    expect(rows.width == weight.matrix.in, "rows and linear layer differ in their number of features");
    expect(has_size(y, rows.count * count) && (!residual || has_size(*residual, rows.count * count)),
           "residual or result has a wrong shape");
    if (columns) check_ids(*columns, weight.matrix.out);
    const LinearJob job{&weight.matrix,
                        x.data(),
                        rows.count,
                        columns ? columns->data() : nullptr,
                        count,
                        weight.bias,
                        residual ? residual->data() : nullptr,
                        y.data(),
                        rows.prompt};
    Release release;
    pagelift::linear(on_, job);
  }

  void embedding(const Weight& weight, const Ids& ids, const Out& y) {
    check_ids(ids, weight.matrix.out);
    expect(weight.matrix.values, "an embedding table is not in tiles");
    expect(has_size(y, (int64_t)ids.size() * weight.matrix.in), "result has a wrong shape");
    Release release;
    pagelift::embedding(on_, weight.matrix, ids.data(), (int64_t)ids.size(), y.data());
  }

  void rms_norm(const In& x, const In& weight, float eps, const Out& y) {
    const Rows rows = rows_of(x);
    expect(has_size(weight, rows.width) && y.size() == x.size(), "norm and rows differ in their number of features");
    Release release;
    pagelift::rms_norm(on_, rows, {weight.data(), nullptr, eps}, x.data(), y.data());
  }

  void layer_norm(const In& x, const In& weight, const In& bias, float eps, const Out& y) {
    const Rows rows = rows_of(x);
    expect(has_size(weight, rows.width) && has_size(bias, rows.width) && y.size() == x.size(),
           "norm and rows differ in their number of features");
    Release release;
    pagelift::layer_norm(on_, rows, {weight.data(), bias.data(), eps}, x.data(), y.data());
  }

  void gated_rms_norm(const In& x, const In& gate, const In& weight, float eps, const Out& y) {
    const Rows rows = rows_of(x);
    expect(has_size(weight, rows.width) && gate.size() == x.size() && y.size() == x.size(), "norm, gate and rows differ in their shape");
    Release release;
    pagelift::gated_rms_norm(on_, rows, {weight.data(), nullptr, eps}, x.data(), gate.data(), y.data());
  }

  void silu_mul(const In& gate, const In& x, const Out& y) {
    const Rows rows = rows_of(x);
    expect(gate.size() == x.size() && y.size() == x.size(), "gate and rows differ in their shape");
    Release release;
    pagelift::silu_mul(on_, rows, gate.data(), x.data(), y.data());
  }

  // gate: (rows, gate features) of which the last ones are used.
  void sigmoid_mul(const In& gate, const In& x, const Out& y) {
    const Rows rows = rows_of(x), gates = rows_of(gate);
    expect(gates.count == rows.count && gates.width >= rows.width && y.size() == x.size(), "gate and rows differ in their shape");
    Release release;
    pagelift::sigmoid_mul(on_, rows, gate.data() + gates.width - rows.width, gates.width, x.data(), y.data());
  }

  void gelu(const In& x, bool exact, const Out& y) {
    const Rows rows = rows_of(x);
    expect(y.size() == x.size(), "result has a wrong shape");
    Release release;
    (exact ? gelu_erf : gelu_tanh)(on_, rows, x.data(), y.data());
  }

  // norm: weight, bias or nothing (then rms_norm), eps.
  using NormWeights = std::tuple<In, std::optional<In>, float>;

  void norm_linears(const In& x, const NormWeights& norm, const std::vector<const Weight*>& weights, const std::optional<Mask>& prompt,
                    const std::vector<Out>& y) {
    const Rows rows = rows_of(x, prompt);
    expect(weights.size() == y.size(), "there is one result per layer");
    std::vector<Layer> layers;
    std::vector<float*> results;
    for (size_t i = 0; i < y.size(); ++i) {
      layers.push_back(layer_of(weights[i], rows.width, weights[i]->matrix.out));
      expect(has_size(y[i], rows.count * weights[i]->matrix.out), "result has a wrong shape");
      results.push_back(y[i].data());
    }
    const Norm by = norm_of(norm, rows.width);
    Release release;
    pagelift::norm_linears(on_, rows, by, x.data(), layers, results);
  }

  // weights: gate, up, down.
  void swiglu_block(const In& x, const NormWeights& norm, const std::tuple<const Weight*, const Weight*, const Weight*>& weights,
                    const std::optional<Mask>& prompt, const Out& y) {
    const Rows rows = rows_of(x, prompt);
    const auto& [gate, up, down] = weights;
    const int64_t inner = down->matrix.in;
    expect(y.size() == x.size(), "result has a wrong shape");
    const Swiglu block{layer_of(gate, rows.width, inner), layer_of(up, rows.width, inner), layer_of(down, inner, rows.width)};
    const Norm by = norm_of(norm, rows.width);
    Release release;
    pagelift::swiglu_block(on_, rows, by, x.data(), block, y.data());
  }

  // weights: first, second.
  void gelu_block(const In& x, const NormWeights& norm, const std::tuple<const Weight*, const Weight*>& weights, bool exact,
                  const std::optional<Mask>& prompt, const Out& y) {
    const Rows rows = rows_of(x, prompt);
    const auto& [first, second] = weights;
    const int64_t inner = second->matrix.in;
    expect(y.size() == x.size(), "result has a wrong shape");
    const GeluMlp block{layer_of(first, rows.width, inner), layer_of(second, inner, rows.width), exact};
    const Norm by = norm_of(norm, rows.width);
    Release release;
    pagelift::gelu_block(on_, rows, by, x.data(), block, y.data());
  }

  // The first y.shape(2) features of each head of x (T, heads, features), normalised, rotated, scaled.
  void prepare_heads(const In& x, const std::optional<In>& norm, float eps, const std::tuple<In, In>& table, float scale, const Out& y) {
    const auto& [cos, sin] = table;
    expect(x.ndim() == 3 && y.ndim() == 3 && y.shape(0) == x.shape(0) && y.shape(1) == x.shape(1) && y.shape(2) <= x.shape(2),
           "heads differ in their shape");
    expect(cos.ndim() == 2 && cos.shape(0) == x.shape(0) && sin.size() == cos.size() && 2 * cos.shape(1) <= y.shape(2),
           "rotary table does not fit the heads");
    const int64_t dim = (int64_t)y.shape(2);
    expect(!norm || has_size(*norm, dim), "norm and heads differ in their number of features");
    const Heads heads{x.data(), axis(x, 0), axis(x, 1), dim,          axis(x, 2), norm ? norm->data() : nullptr,
                      eps,      cos.data(), sin.data(), axis(cos, 1), scale};
    Release release;
    pagelift::prepare_heads(on_, heads, y.data());
  }

  void attention(const In& q, const In& k, const In& v, const Segments& parts, const std::vector<KvCache*>& caches, const Out& y) {
    expect(q.ndim() == 3 && k.ndim() == 3 && q.shape(0) == k.shape(0) && q.shape(2) == k.shape(2) && v.size() == k.size() &&
               y.size() == q.size(),
           "q, k and v differ in their shape");
    expect(k.shape(1) > 0 && q.shape(1) % k.shape(1) == 0, "query heads are a multiple of the KV heads");
    const auto segments = segments_of(parts, axis(q, 0));
    check_caches(caches, segments.size(),
                 [&](const KvCache& cache) {
      return cache.kv_heads() == axis(k, 1) && cache.dim() == axis(k, 2) && cache.type() == caches[0]->type();
    });
    Release release;
    pagelift::attention(on_, {axis(q, 1), q.data(), k.data(), v.data()}, segments, caches, y.data());
  }

  // qkv: projections of T tokens. norms: of q and k, each with its eps.
  void head_attention(const std::tuple<In, In, In>& qkv, int64_t heads, const std::tuple<In, float, In, float>& norms,
                      const std::tuple<In, In>& table, const Segments& parts, const std::vector<KvCache*>& caches, const Out& y) {
    const auto& [q, k, v] = qkv;
    const auto& [q_norm, q_eps, k_norm, k_eps] = norms;
    const auto& [cos, sin] = table;
    expect(!caches.empty() && caches[0] && heads > 0 && heads % caches[0]->kv_heads() == 0, "query heads are a multiple of the KV heads");
    const int64_t kv_heads = caches[0]->kv_heads(), dim = caches[0]->dim(), width = heads * dim;
    expect(q.ndim() == 2 && (axis(q, 1) == width || axis(q, 1) == 2 * width), "q does not fit the heads");
    const int64_t rows = axis(q, 0);
    expect(has_size(k, rows * kv_heads * dim) && has_size(v, rows * kv_heads * dim) && has_size(y, rows * width),
           "q, k and v differ in their shape");
    expect(has_size(q_norm, dim) && has_size(k_norm, dim), "norm and heads differ in their number of features");
    expect(cos.ndim() == 2 && axis(cos, 0) == rows && sin.size() == cos.size() && 2 * axis(cos, 1) <= dim,
           "rotary table does not fit the heads");
    const auto segments = segments_of(parts, rows);
    check_caches(caches, segments.size(), [&](const KvCache& cache) {
      return cache.kv_heads() == kv_heads && cache.dim() == dim && cache.type() == caches[0]->type();
    });
    const Projections x{q.data(),
                        k.data(),
                        v.data(),
                        heads,
                        axis(q, 1) == 2 * width,
                        {q_norm.data(), nullptr, q_eps},
                        {k_norm.data(), nullptr, k_eps},
                        cos.data(),
                        sin.data(),
                        axis(cos, 1)};
    Release release;
    pagelift::head_attention(on_, x, segments, caches, y.data());
  }

  // Features [q | k | v] of x (N, 3 * heads * dim) become y (N, heads, dim). type: of keys and values while they are looked at.
  void picture_attention(const In& x, int64_t heads, const std::tuple<In, In>& table, const std::vector<int64_t>& lengths,
                         const std::string& type, const Out& y) {
    const auto& [cos, sin] = table;
    expect(x.ndim() == 2 && heads > 0 && axis(x, 1) % (3 * heads) == 0 && has_size(y, axis(x, 0) * axis(x, 1) / 3),
           "q, k and v differ in their shape");
    const int64_t rows = axis(x, 0), width = axis(x, 1) / 3, dim = width / heads;
    expect(cos.ndim() == 2 && axis(cos, 0) == rows && sin.size() == cos.size() && 2 * axis(cos, 1) <= dim,
           "rotary table does not fit the heads");
    int64_t total = 0;
    for (int64_t length : lengths) {
      expect(length > 0, "a run has at least one row");
      total += length;
    }
    expect(total == rows, "runs cover all rows");
    const float scale = 1.0f / std::sqrt((float)dim);
    const auto part = [&](int64_t i) { return Features{x.data() + i * width, 3 * width}; };
    const Runs runs{kv_type(type), part(0), part(1), part(2), heads, dim, cos.data(), sin.data(), axis(cos, 1), scale, lengths};
    Release release;
    pagelift::full_attention(on_, runs, y.data());
  }

  void causal_conv1d(const In& x, const In& weight, const Segments& parts, const std::vector<DeltaState*>& states, const Out& y) {
    const DeltaShape shape = shape_of(x, parts, states);
    expect(has_size(weight, shape.channels() * shape.kernel) && y.size() == x.size(), "convolution and rows differ in their channels");
    const auto segments = segments_of(parts, axis(x, 0));
    Release release;
    pagelift::causal_conv1d(on_, x.data(), weight.data(), segments, states, y.data());
  }

  // gates: a, b, a_log, dt_bias. weights: of the convolution and of the norm.
  void delta_net(const std::tuple<In, In>& projected, const std::tuple<In, In, In, In>& gates, const std::tuple<In, In, float>& weights,
                 const Segments& parts, const std::vector<DeltaState*>& states, const Out& y) {
    const auto& [qkv, z] = projected;
    const auto& [conv, norm, eps] = weights;
    const DeltaShape shape = shape_of(qkv, parts, states);
    const int64_t rows = axis(qkv, 0);
    expect(has_size(conv, shape.channels() * shape.kernel), "convolution and rows differ in their channels");
    expect(has_size(z, rows * shape.values()) && has_size(y, rows * shape.values()) && has_size(norm, shape.value_dim),
           "norm, gate and rows differ in their shape");
    const auto segments = segments_of(parts, rows);
    const DeltaProjections x{qkv.data(), z.data(), gates_of(gates, rows, shape), conv.data(), {norm.data(), nullptr, eps}};
    Release release;
    pagelift::delta_net(on_, x, segments, states, y.data());
  }

  void gated_delta_rule(const In& qkv, const std::tuple<In, In, In, In>& gates, const Segments& parts,
                        const std::vector<DeltaState*>& states, const Out& y) {
    const DeltaShape shape = shape_of(qkv, parts, states);
    const int64_t rows = axis(qkv, 0);
    const DeltaGates inputs = gates_of(gates, rows, shape);
    expect(has_size(y, rows * shape.values()), "result has a wrong shape");
    const auto segments = segments_of(parts, rows);
    Release release;
    pagelift::gated_delta_rule(on_, qkv.data(), inputs, segments, states, y.data());
  }

  void keep(DeltaState& state, int64_t count, int64_t block) {
    Release release;
    state.keep(on_.pool, on_.kernels, count, block);
  }

 private:
  static void check_ids(const Ids& ids, int64_t limit) {
    for (size_t i = 0; i < ids.size(); ++i) expect(ids.data()[i] >= 0 && ids.data()[i] < limit, "a row number is outside the matrix");
  }

  static Layer layer_of(const Weight* weight, int64_t in, int64_t out) {
    expect(weight->matrix.in == in && weight->matrix.out == out, "rows and linear layer differ in their number of features");
    return {&weight->matrix, weight->bias};
  }

  static Norm norm_of(const NormWeights& norm, int64_t width) {
    const auto& [weight, bias, eps] = norm;
    expect(has_size(weight, width) && (!bias || has_size(*bias, width)), "norm and rows differ in their number of features");
    return {weight.data(), bias ? bias->data() : nullptr, eps};
  }

  static DeltaGates gates_of(const std::tuple<In, In, In, In>& gates, int64_t rows, const DeltaShape& shape) {
    const auto& [a, b, a_log, dt_bias] = gates;
    const int64_t heads = shape.value_heads;
    expect(has_size(a, rows * heads) && has_size(b, rows * heads) && has_size(a_log, heads) && has_size(dt_bias, heads),
           "gates do not fit the heads");
    return {a.data(), b.data(), a_log.data(), dt_bias.data()};
  }

  static DeltaShape shape_of(const In& x, const Segments& parts, const std::vector<DeltaState*>& states) {
    expect(!states.empty() && states[0], "there is one state per segment");
    const DeltaShape shape = states[0]->shape;
    expect(x.ndim() == 2 && axis(x, 1) == shape.channels(), "rows and state differ in their channels");
    check_caches(states, parts.size(), [&](const DeltaState& state) { return state.shape == shape; });
    return shape;
  }

  ThreadPool pool_;
  Context on_;
};

}  // namespace

void bind_operations(nb::module_& module) {
  module.def("supported_levels", [] {
    std::vector<std::string> names;
    for (const char* name : supported_levels()) names.push_back(name);
    return names;
  });
  using O = Operations;
  const auto none = nb::arg().none();
  nb::class_<O>(module, "Operations")
      .def(nb::init<int, std::optional<std::string>>(), nb::arg("threads"), nb::arg("level").none() = nb::none())
      .def_prop_ro("threads", &O::threads)
      .def_prop_ro("level", &O::level)
      .def("bandwidth_gbs", &O::bandwidth_gbs, nb::arg())
      .def("matmul_gflops", &O::matmul_gflops, nb::arg())
      .def("tile", &O::tile, nb::arg())
      .def("linear", &O::linear, nb::arg(), nb::arg(), none, none, none, nb::arg().noconvert())
      .def("embedding", &O::embedding, nb::arg(), nb::arg(), nb::arg().noconvert())
      .def("rms_norm", &O::rms_norm, nb::arg(), nb::arg(), nb::arg(), nb::arg().noconvert())
      .def("layer_norm", &O::layer_norm, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().noconvert())
      .def("gated_rms_norm", &O::gated_rms_norm, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().noconvert())
      .def("silu_mul", &O::silu_mul, nb::arg(), nb::arg(), nb::arg().noconvert())
      .def("sigmoid_mul", &O::sigmoid_mul, nb::arg(), nb::arg(), nb::arg().noconvert())
      .def("gelu", &O::gelu, nb::arg(), nb::arg(), nb::arg().noconvert())
      .def("norm_linears", &O::norm_linears, nb::arg(), nb::arg(), nb::arg(), none, nb::arg().noconvert())
      .def("swiglu_block", &O::swiglu_block, nb::arg(), nb::arg(), nb::arg(), none, nb::arg().noconvert())
      .def("gelu_block", &O::gelu_block, nb::arg(), nb::arg(), nb::arg(), nb::arg(), none, nb::arg().noconvert())
      .def("prepare_heads", &O::prepare_heads, nb::arg(), none, nb::arg(), nb::arg(), nb::arg(), nb::arg().noconvert())
      .def("attention", &O::attention, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().noconvert())
      .def("head_attention", &O::head_attention, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().noconvert())
      .def("picture_attention", &O::picture_attention, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().noconvert())
      .def("causal_conv1d", &O::causal_conv1d, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().noconvert())
      .def("delta_net", &O::delta_net, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().noconvert())
      .def("gated_delta_rule", &O::gated_delta_rule, nb::arg(), nb::arg(), nb::arg(), nb::arg(), nb::arg().noconvert())
      .def("keep", &O::keep, nb::arg(), nb::arg(), nb::arg());
}

}  // namespace pagelift::bind
