// Linear layers and embeddings against sums in double precision over weights unpacked bit by bit.
#include <cstring>
#include <memory>

#include "tests.h"

using namespace pagelift;
using namespace pagelift::tests;

namespace {

// A matrix in memory of exactly its size, at an odd address, so that a sanitizer sees every read beyond it.
struct Made {
  Matrix matrix;
  std::vector<double> values;  // (out, in)
  std::vector<std::unique_ptr<uint8_t[]>> memory;

  const uint8_t* hold(const void* bytes, size_t size) {
    memory.emplace_back(new uint8_t[size + 1]);
    std::memcpy(memory.back().get() + 1, bytes, size);
    return memory.back().get() + 1;
  }
};

double half_value(uint16_t h) {
  const int exponent = h >> 10 & 31, fraction = h & 1023;
  const double size = exponent ? std::ldexp(1024 + fraction, exponent - 25) : std::ldexp(fraction, -24);
  return h & 0x8000 ? -size : size;
}

double bf16_value(uint16_t h) {
  const uint32_t bits = (uint32_t)h << 16;
  float value;
  std::memcpy(&value, &bits, 4);
  return value;
}

// n random floats of a type: their bytes go to the matrix, their values are returned.
std::vector<double> floats(Made& made, Float type, int64_t n, std::mt19937& random, const uint8_t*& where) {
  std::vector<double> values;
  if (type == Float::f32) {
    const std::vector<float> raw = normal(n, random());
    where = made.hold(raw.data(), n * 4);
    return {raw.begin(), raw.end()};
  }
  std::vector<uint16_t> raw(n);
  for (uint16_t& h : raw) {
    // Finite, small, now and then subnormal.
    h = type == Float::f16 ? (uint16_t)(random() & 0xbfff) : (uint16_t)((random() & 0x81ff) | 0x3e00);
    values.push_back(type == Float::f16 ? half_value(h) : bf16_value(h));
  }
  where = made.hold(raw.data(), n * 2);
  return values;
}

Made make(int64_t out, int64_t in, int bits, int group, Float type) {
  Made made;
  std::mt19937 random((uint32_t)(bits * 1000 + group + (int)type));
  made.matrix = {out, in, bits, group, type, nullptr, nullptr, nullptr};
  if (bits == 0) {
    made.values = floats(made, type, out * in, random, made.matrix.values);
    return made;
  }
  std::vector<uint8_t> codes(out * in * bits / 8);
  for (uint8_t& code : codes) code = (uint8_t)random();
  const auto scales = floats(made, type, out * in / group, random, made.matrix.scales);
  const auto offsets = floats(made, type, out * in / group, random, made.matrix.offsets);
  for (int64_t i = 0; i < out * in; ++i) {
    int code = 0;
    for (int bit = 0; bit < bits; ++bit) code |= (codes[(i * bits + bit) / 8] >> (i * bits + bit) % 8 & 1) << bit;
    made.values.push_back(scales[i / group] * code + offsets[i / group]);
  }
  made.matrix.values = made.hold(codes.data(), codes.size());
  return made;
}

void compare(const Context& on, const Made& made, int64_t rows) {
  const Matrix& m = made.matrix;
  const std::vector<float> x = normal(rows * m.in, 1), bias = normal(m.out, 2), residual = normal(rows * m.out, 3);
  std::vector<float> y(rows * m.out);
  linear(on, {&m, x.data(), rows, nullptr, m.out, bias.data(), residual.data(), y.data()});
  std::vector<double> expected(rows * m.out);
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t n = 0; n < m.out; ++n) {
      double sum = (double)bias[n] + residual[r * m.out + n];
      for (int64_t k = 0; k < m.in; ++k) sum += x[r * m.in + k] * made.values[n * m.in + k];
      expected[r * m.out + n] = sum;
    }
  const std::string what = std::to_string(m.bits) + " bits, " + std::to_string(rows) + " rows";
  check_close(y, expected, 2e-4 * std::sqrt((double)m.in), "linear of " + what);

  const std::vector<int64_t> columns = {m.out - 1, 0, m.out / 2};
  std::vector<float> some(rows * 3);
  linear(on, {&m, x.data(), rows, columns.data(), 3, bias.data(), nullptr, some.data()});
  std::vector<float> without(rows * m.out);
  linear(on, {&m, x.data(), rows, nullptr, m.out, bias.data(), nullptr, without.data()});
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < 3; ++c) check(some[r * 3 + c] == without[r * m.out + columns[c]], "chosen columns have the same bits, " + what);
}

}  // namespace

TEST(dense_linear) {
  for (Float type : {Float::f32, Float::f16, Float::bf16})
    for (int64_t in : {1, 33, 1031})
      for (int64_t rows : {1, 5}) compare(on, make(37, in, 0, 1, type), rows);
}

TEST(packed_linear) {
  for (int bits : {2, 3, 4, 5, 6, 8})
    for (int group : {32, 64, 128})
      for (Float type : {Float::f32, Float::f16, Float::bf16}) compare(on, make(9, 1152, bits, group, type), group == 32 ? 6 : 1);
}

TEST(more_rows_than_a_block) { compare(on, make(33, 64, 4, 64, Float::bf16), 515); }

TEST(embedding_rows) {
  for (int bits : {0, 3, 8}) {
    const Made made = make(6, 160, bits, 32, Float::f16);
    const std::vector<int64_t> ids = {5, 0, 5};
    std::vector<float> y(3 * 160);
    embedding(on, made.matrix, ids.data(), 3, y.data());
    std::vector<double> expected;
    for (int64_t id : ids) expected.insert(expected.end(), made.values.begin() + id * 160, made.values.begin() + (id + 1) * 160);
    check_close(y, expected, 1e-6, "embedding of " + std::to_string(bits) + " bits");
  }
}

namespace {

using Mask = std::unique_ptr<bool[]>;  // which rows belong to a prompt

Mask mask(int64_t rows, bool (*is_prompt)(int64_t row)) {
  Mask prompt(new bool[rows]);
  for (int64_t r = 0; r < rows; ++r) prompt[r] = is_prompt(r);
  return prompt;
}

std::vector<float> over_tiles(const Context& on, const Matrix& m, const std::vector<float>& x, const std::vector<float>& bias,
                              const bool* prompt) {
  const int64_t rows = (int64_t)x.size() / m.in;
  std::vector<float> y(rows * m.out);
  linear(on, {&m, x.data(), rows, nullptr, m.out, bias.data(), nullptr, y.data(), prompt});
  return y;
}

// Over tiles the result is near to the exact one, and a row has the same bits alone as among others of both kinds.
void compare_tiles(const Context& on, const Made& made, int64_t rows, const Mask& prompt, double most) {
  Matrix m = made.matrix;
  const std::vector<float> x = normal(rows * m.in, 5), bias = normal(m.out, 6);
  const std::vector<float> exact = over_tiles(on, m, x, bias, nullptr);
  const Memory tiles = tile(on, m);
  m.tiles = tiles.bytes();
  m.values = m.scales = m.offsets = nullptr;
  const std::vector<float> y = over_tiles(on, m, x, bias, prompt.get());
  const std::string what = "tiles of " + std::to_string(m.bits) + " bits in groups of " + std::to_string(m.group_size);
  double error = 0, size = 0;
  for (size_t i = 0; i < y.size(); ++i) {
    error += ((double)y[i] - exact[i]) * ((double)y[i] - exact[i]);
    size += (double)exact[i] * exact[i];
  }
  check(error <= most * most * size, what + " are as near as " + std::to_string(most) + ", not " + std::to_string(std::sqrt(error / size)));
  for (int64_t count : {int64_t{1}, int64_t{2}, int64_t{17}})
    for (int64_t r = 0; r + count <= rows; r += 16) {
      const std::vector<float> some = over_tiles(on, m, {x.begin() + r * m.in, x.begin() + (r + count) * m.in}, bias, prompt.get() + r);
      check(std::memcmp(some.data(), y.data() + r * m.out, some.size() * sizeof(float)) == 0, what + " give a row the same bits in any call");
    }
  const std::vector<int64_t> columns = {m.out - 1, 0, m.out / 2, 0};
  std::vector<float> chosen(rows * 4);
  linear(on, {&m, x.data(), rows, columns.data(), 4, bias.data(), nullptr, chosen.data(), prompt.get()});
  for (int64_t r = 0; r < rows; ++r)
    for (int64_t c = 0; c < 4; ++c) check(chosen[r * 4 + c] == y[r * m.out + columns[c]], what + " give chosen columns the same bits");
}

bool none(int64_t) { return false; }
bool all(int64_t) { return true; }
bool two_of_three(int64_t row) { return row % 3 > 0; }

constexpr double kNear = 1e-2, kNearBf16 = 3e-3;  // relative, root mean square

}  // namespace

TEST(packed_tiles) {
  for (int bits : {2, 3, 4, 5, 6, 8})
    for (int group : {32, 64, 128}) {
      const int64_t rows = group == 64 ? 35 : 18;
      compare_tiles(on, make(37, 1152, bits, group, Float::bf16), rows, mask(rows, none), kNear);
    }
  compare_tiles(on, make(16, 1280, 4, 64, Float::f16), 5, mask(5, none), kNear);
  compare_tiles(on, make(33, 96, 8, 32, Float::f32), 19, mask(19, none), kNear);
}

TEST(packed_tiles_and_prompts) {
  const double near = on.kernels.dense == Dense::bf16 ? kNearBf16 : kNear;
  for (int bits : {2, 3, 4, 5, 6, 8})
    for (int group : {32, 64, 128}) {
      const int64_t rows = group == 64 ? 67 : 18;
      compare_tiles(on, make(37, 1152, bits, group, Float::bf16), rows, mask(rows, all), near);
    }
  compare_tiles(on, make(300, 1280, 4, 64, Float::f16), 50, mask(50, two_of_three), kNear);
  compare_tiles(on, make(33, 96, 8, 32, Float::f32), 19, mask(19, two_of_three), kNear);
}

TEST(more_rows_of_both_kinds_than_a_piece) {
  compare_tiles(on, make(33, 64, 4, 64, Float::bf16), 1700, mask(1700, two_of_three), kNear);
}

TEST(dense_tiles) {
  const Dense dense = on.kernels.dense;
  for (Float type : {Float::f16, Float::bf16})
    for (int64_t in : {1, 33, 1031}) {
      const int64_t rows = in == 33 ? 50 : 17;
      const Made made = make(37, in, 0, 1, type);
      check(has_tiles(on.kernels, made.matrix) == (dense == Dense::bf16 || (dense == Dense::f32 && type == Float::bf16)), "dense tiles");
      if (has_tiles(on.kernels, made.matrix)) compare_tiles(on, made, rows, mask(rows, none), dense == Dense::bf16 ? kNearBf16 : 1e-6);
    }
}
