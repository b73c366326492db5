// Reading tiles of packed weights (csrc/tiles.h) in vectors of one level.
#pragma once

#include "level/dot.h"
#include "level/simd.h"
#include "tiles.h"

namespace pagelift::PAGELIFT_NAMESPACE {

constexpr int kParts = (int)kTileColumns / W;  // vectors of one level that hold sixteen columns

PAGELIFT_INLINE U pick(U bytes, int shift, uint32_t mask) { return (shift < 0 ? bytes << -shift : bytes >> shift) & mask; }

// Vector v (0 to 7) of a step as bytes. step: where the level's part of the first vector begins.
template <int Bits>
PAGELIFT_INLINE U codes_of(const uint8_t* step, int v) {
  const auto plane = [&](int vector) __attribute__((always_inline)) { return load_as<U>(step + vector * kTileVector); };
  if constexpr (Bits == 8) return plane(v);
  if constexpr (Bits == 2) return pick(plane(v / 4), v % 4 * 2, 0x03030303u);
  if constexpr (Bits == 3) return codes_of<2>(step, v) | pick(plane(2), v - 2, 0x04040404u);
  if constexpr (Bits == 4) return pick(plane(v / 2), v % 2 * 4, 0x0f0f0f0fu);
  if constexpr (Bits == 5) return codes_of<4>(step, v) | pick(plane(4), v - 4, 0x10101010u);
  if constexpr (Bits == 6) return codes_of<4>(step, v) | pick(plane(4 + v / 4), v % 4 * 2 - 4, 0x30303030u);
}

// Ask memory for the weights 4 KiB behind these: it answers later than a step's sums take.
PAGELIFT_INLINE void ask_ahead(const uint8_t* weights, int64_t count) {
  for (int64_t i = 0; i < count; i += kTileVector) __builtin_prefetch(weights + 4096 + i);
}

// W floats of any type.
PAGELIFT_INLINE F widen(const uint8_t* p, Float type) {
  if (type == Float::bf16) return widen_bf16(load_as<H>(p));
  return type == Float::f16 ? widen_f16(load_as<H>(p)) : load_as<F>(p);
}

// A group's part of a sum, from the dot product of its codes. Every kernel adds it by these operations in this order.
PAGELIFT_INLINE F add_group(F sum, I dot, F scale, F offset, float x_scale, float x_sum) {
  const F factor = scale * x_scale;
  sum += __builtin_convertvector(dot, F) * factor;
  sum += offset * x_sum;
  return sum;
}

}  // namespace pagelift::PAGELIFT_NAMESPACE
