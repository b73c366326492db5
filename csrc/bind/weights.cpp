// Weights and caches.
#include "bind/bind.h"
#include "tiles.h"

namespace pagelift::bind {

namespace {

Float type_of(const std::string& name) {
  if (name == "f32") return Float::f32;
  if (name == "f16") return Float::f16;
  expect(name == "bf16", "weights are of type f32, f16 or bf16");
  return Float::bf16;
}

int64_t size_of(Float type) { return type == Float::f32 ? 4 : 2; }

DeltaShape delta_shape(int64_t key_heads, int64_t value_heads, int64_t key_dim, int64_t value_dim, int64_t kernel) {
  const bool whole = key_heads > 0 && value_heads > 0 && value_heads % key_heads == 0 && key_dim > 0 && value_dim > 0;
  expect(whole, "a gated DeltaNet layer needs value heads that are a multiple of its key heads");
  expect(kernel >= 2 && kernel <= kTaps, "the convolution of a gated DeltaNet layer has 2 to 8 taps");
  return {key_heads, value_heads, key_dim, value_dim, kernel};
}

}  // namespace

KvType kv_type(const std::string& name) {
  if (name == "f32") return KvType::f32;
  if (name == "bf16") return KvType::bf16;
  expect(name == "int8", "keys and values are of type f32, bf16 or int8");
  return KvType::i8;
}

Weight::Weight(int64_t out, int64_t in, const std::string& type, Bytes values, std::optional<In> bias) {
  matrix.out = out;
  matrix.in = in;
  matrix.type = type_of(type);
  matrix.values = values.data();
  held_.push_back(values);
  expect(out > 0 && in > 0, "a matrix has at least one row and one column");
  expect(!bias || (int64_t)bias->size() == out, "a bias has one number per output");
  held_bias_ = bias;
  if (bias) this->bias = bias->data();
}

void Weight::pack(int bits, int group_size, Bytes scales, Bytes offsets) {
  expect(bits >= 2 && bits <= 8 && bits != 7 && (group_size == 32 || group_size == 64 || group_size == 128), "unknown packed format");
  const int64_t floats = matrix.out * (matrix.in / group_size) * size_of(matrix.type);
  expect(matrix.in % group_size == 0 && (int64_t)held_[0].size() == matrix.out * matrix.in / 8 * bits, "codes do not fit the matrix");
  expect((int64_t)scales.size() == floats && (int64_t)offsets.size() == floats, "scales or offsets do not fit the matrix");
  matrix.bits = bits;
  matrix.group_size = group_size;
  matrix.scales = scales.data();
  matrix.offsets = offsets.data();
  held_.push_back(scales);
  held_.push_back(offsets);
}

void Weight::take_tiles(Memory tiles) {
  tiles_ = std::move(tiles);
  matrix.tiles = tiles_.bytes();
  matrix.values = matrix.scales = matrix.offsets = nullptr;
  held_.clear();
}

void Weight::take_tiles(Bytes tiles) {
  expect((int64_t)tiles.size() == tile_bytes() && (uintptr_t)tiles.data() % kTileVector == 0, "tiles do not fit the matrix, or lie askew");
  matrix.tiles = tiles.data();
  matrix.values = matrix.scales = matrix.offsets = nullptr;
  held_ = {tiles};
}

int64_t Weight::tile_bytes() const { return TileShape(matrix).bytes; }

void bind_weights(nb::module_& module) {
  nb::class_<Weight>(module, "Weight")
      .def_static(
          "dense",
          [](int64_t out, int64_t in, const std::string& type, Bytes values, std::optional<In> bias) {
            Weight weight(out, in, type, values, bias);
            expect((int64_t)values.size() == out * in * size_of(weight.matrix.type), "values do not fit the matrix");
            return weight;
          },
          nb::arg("out"), nb::arg("in_"), nb::arg("type"), nb::arg("values"), nb::arg("bias").none())
      .def_static(
          "packed",
          [](std::tuple<int64_t, int64_t, int, int> format, const std::string& type, Bytes codes, Bytes scales, Bytes offsets,
             std::optional<In> bias) {
            const auto [out, in, bits, group_size] = format;
            Weight weight(out, in, type, codes, bias);
            weight.pack(bits, group_size, scales, offsets);
            return weight;
          },
          nb::arg("format"), nb::arg("type"), nb::arg("codes"), nb::arg("scales"), nb::arg("offsets"), nb::arg("bias").none())
      .def("take_tiles", [](Weight& weight, Bytes tiles) { weight.take_tiles(tiles); }, nb::arg("tiles"))
      .def_prop_ro("tiles",
                   [](nb::object self) -> nb::object {
                     const Weight& weight = nb::cast<const Weight&>(self);
                     if (!weight.matrix.tiles) return nb::none();
                     using Tiles = nb::ndarray<nb::numpy, const uint8_t, nb::ndim<1>>;
                     return nb::cast(Tiles(weight.matrix.tiles, {(size_t)weight.tile_bytes()}, self));
                   })
      .def_prop_ro("shape", [](const Weight& weight) { return std::make_tuple(weight.matrix.out, weight.matrix.in); });

  nb::class_<KvCache>(module, "KvCache")
      .def(
          "__init__",
          [](KvCache* self, const std::string& type, int64_t kv_heads, int64_t dim) {
            expect(kv_heads > 0 && dim > 0, "a cache needs at least one head and one feature");
            new (self) KvCache(kv_type(type), kv_heads, dim);
          },
          nb::arg("type"), nb::arg("kv_heads"), nb::arg("dim"))
      .def_prop_ro("length", &KvCache::length)
      .def_prop_ro("nbytes", &KvCache::nbytes)
      .def("keep", &KvCache::keep, nb::arg("count"), nb::arg("block"))
      .def("copy", &KvCache::copy);

  nb::class_<DeltaState>(module, "DeltaState")
      .def(
          "__init__",
          [](DeltaState* self, int64_t key_heads, int64_t value_heads, int64_t key_dim, int64_t value_dim, int64_t kernel) {
            new (self) DeltaState(delta_shape(key_heads, value_heads, key_dim, value_dim, kernel));
          },
          nb::arg("key_heads"), nb::arg("value_heads"), nb::arg("key_dim"), nb::arg("value_dim"), nb::arg("kernel"))
      .def_prop_ro("nbytes", &DeltaState::nbytes)
      .def("copy", &DeltaState::copy);
}

}  // namespace pagelift::bind
