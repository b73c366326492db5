// What the files of the Python module share.
#pragma once

#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/optional.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/tuple.h>
#include <nanobind/stl/vector.h>

#include <stdexcept>
#include <string>

#include "caches.h"
#include "kernels.h"
#include "memory.h"

namespace pagelift::bind {

namespace nb = nanobind;

using In = nb::ndarray<const float, nb::c_contig, nb::device::cpu>;
using Out = nb::ndarray<float, nb::c_contig, nb::device::cpu>;
using Ids = nb::ndarray<const int64_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Mask = nb::ndarray<const bool, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
using Bytes = nb::ndarray<const uint8_t, nb::ndim<1>, nb::c_contig, nb::device::cpu>;

// Becomes pagelift.core.errors.ShapeError.
struct ShapeError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

inline void expect(bool holds, const char* what) {
  if (!holds) throw ShapeError(what);
}

KvType kv_type(const std::string& name);  // "f32", "bf16", "int8"

// A linear layer or an embedding table, with the arrays that it points into or the tiles made of them.
class Weight {
 public:
  Weight(int64_t out, int64_t in, const std::string& type, Bytes values, std::optional<In> bias);
  void pack(int bits, int group_size, Bytes scales, Bytes offsets);

  // From now on the weights are these tiles; the arrays are let go.
  void take_tiles(Memory tiles);
  void take_tiles(Bytes tiles);
  int64_t tile_bytes() const;  // what tiles of this matrix take

  Matrix matrix;
  const float* bias = nullptr;

 private:
  std::vector<Bytes> held_;
  Memory tiles_;
  std::optional<In> held_bias_;
};

void bind_weights(nb::module_& module);
void bind_operations(nb::module_& module);

}  // namespace pagelift::bind
