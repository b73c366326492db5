// The inner loops: plain functions over raw memory, single-threaded, compiled once per instruction set (csrc/level).
//
// The result for one row, head or channel is the same whatever else is computed in the same call: sums run in an order that is
// fixed by the row alone. That is what makes results independent of batch and threads, bit for bit.
#pragma once

#include <cstdint>
#include <vector>

namespace pagelift {

enum class Float { f32, f16, bf16 };
enum class Number { int8, bf16, f32 };  // what matrix instructions multiply
enum class Dense { none, f32, bf16 };   // what a level takes rows of x as to multiply them by dense tiles, if it has a kernel for that

// A matrix (out, in) as it lies in a checkpoint. Dense: `values` are floats of `type`, bits is 0. Packed (MLX affine format):
// `values` are little-endian bit streams of `bits` per weight, one stream per row; scales and offsets (out, in / group_size) of
// `type`; a weight is scale * code + offset. Nothing needs to be aligned.
struct Matrix {
  int64_t out = 0, in = 0;
  int bits = 0, group_size = 0;
  Float type = Float::f32;
  const uint8_t* values = nullptr;
  const uint8_t* scales = nullptr;
  const uint8_t* offsets = nullptr;
  const uint8_t* tiles = nullptr;  // the same weights in the layout of csrc/tiles.h, or nullptr
};

// y (rows, count) = x (rows, in) @ matrix[columns].T + bias + residual. columns: nullptr for all, else `count` row numbers of
// the matrix. bias: nullptr or one float per row of the matrix. residual: nullptr or laid out like y. prompt: (rows,) which of them
// belong to a prompt, or nullptr for none; kernels that take x as it is do not look at it.
struct LinearJob {
  const Matrix* matrix;
  const float* x;
  int64_t rows;
  const int64_t* columns;
  int64_t count;
  const float* bias;
  const float* residual;
  float* y;
  const bool* prompt = nullptr;
};

// The same over tiles. rows: nullptr, or where in y and the residual each row of x belongs. tiles: nullptr for all, else numbers of
// tiles, whose sixteen columns of y follow each other. stride: floats from row to row of y and of the residual.
struct RowCodes;
struct TileJob {
  const Matrix* matrix;
  const RowCodes& x;
  const int64_t* rows;
  const int64_t* tiles;
  const float* bias;
  const float* residual;
  float* y;
  int64_t stride;
};

constexpr int64_t tile_scratch(int64_t rows) { return (rows + 31) / 16 * 256 + 8192; }

constexpr int64_t kPanelTiles = 16;    // that meet all rows, unpacked to bf16 where they are packed,
constexpr int64_t kPanelInputs = 512;  // for so many inputs: the weights stay in the second-level cache, a block of x in the first
constexpr int64_t dense_scratch(int64_t rows) { return (rows + 31) / 32 * kPanelTiles * 512 + kPanelTiles * 8 * kPanelInputs + 16; }

constexpr int64_t kLinearBlock = 1024;  // weights of a row that are unpacked at a time; sums are rounded at these borders
constexpr int64_t kLinearPanel = 32;    // at most so many weight rows are unpacked at a time
constexpr int64_t kLinearScratch = kLinearBlock * kLinearPanel;

// Keys and values lie in blocks of kKeys tokens; in a block, those of one KV head together, as tiles that a matrix unit can load:
// keys (kKeys / 16 tiles, key_width / 2, 16 tokens, 2 features), then values (kKeys / 32 tiles of tokens, value_width / 16 tiles
// of features, 16, 16 features, 2 tokens). f32 has no pairs: tiles of (key_width, 16 tokens) and (32 tokens, 16 features). After
// codes of 8 bits, what one is worth: kKeys floats for the keys, then kKeys floats for the values.
enum class KvType { f32, bf16, i8 };
constexpr int64_t kKeys = 64;
constexpr int64_t key_width(int64_t dim) { return (dim + 31) / 32 * 32; }
constexpr int64_t value_width(int64_t dim) { return (dim + 15) / 16 * 16; }
constexpr int64_t kv_size(KvType type) { return type == KvType::f32 ? 4 : type == KvType::bf16 ? 2 : 1; }
constexpr int64_t head_bytes(KvType type, int64_t dim) {
  return kKeys * ((key_width(dim) + value_width(dim)) * kv_size(type) + (type == KvType::i8 ? 2 * (int64_t)sizeof(float) : 0));
}

// Write `count` tokens of one head into its part of a block, from place `slot` on. k, v: rows of dim floats.
struct PackJob {
  KvType type;
  uint8_t* block;
  int64_t dim, slot, count;
  const float *k, *v;
  int64_t k_stride, v_stride;
};

// Rows of queries that look at keys of one KV head: those in blocks first to last - 1 of the sequence. first: multiple of kSpan /
// kKeys. q: rows of dim floats, already scaled. visible[r]: row r looks at tokens 0 to visible[r] - 1. What it saw, not yet divided
// by `total`, is left in `part`.
constexpr int64_t kQueries = 128;
constexpr int64_t kSpan = 256;  // keys between two looks at the running maximum; counted from the sequence's first token
struct AttentionPart {
  float *sums, *largest, *total;  // (rows up to a multiple of 16, value_width), (rows,), (rows,)
};
struct AttentionJob {
  KvType type;
  const uint8_t* const* blocks;  // all of the sequence
  int64_t dim, rows;             // at most kQueries rows
  const float* const* q;
  const int64_t* visible;
  int64_t first, last;
  AttentionPart part;
};
constexpr int64_t kQueryTile = 32;
constexpr int64_t attention_scratch(int64_t dim) {  // floats
  return kQueries * key_width(dim) + 2 * kQueryTile * kSpan + kSpan * (key_width(dim) + value_width(dim)) / 2 + 2 * kSpan + 64;
}

// The gated delta rule for kColumns value columns of one head over consecutive tokens. state: (key_dim, kColumns) afterwards;
// before: the same before the first token, in the same place or elsewhere. Strides are in floats from one token to the next. y may
// be nullptr: then only the state advances, by the same bits.
constexpr int64_t kColumns = 32;
struct DeltaJob {
  const float* before;
  float* state;
  int64_t key_dim, columns, tokens;  // columns: 1 to kColumns, the others are padding
  const float *q, *k, *v, *decay, *beta;
  int64_t key_stride, value_stride, gate_stride;
  float* y;
  int64_t y_stride;
};

// SiLU of a depthwise causal convolution for `channels` channels over consecutive tokens; `stride` floats from token to token.
// weight: (channels, kernel).
constexpr int64_t kTaps = 8;  // the largest kernel
struct ConvJob {
  const float* window;  // (kernel - 1, stride): inputs before the first token
  const float* x;       // (tokens, stride)
  const float* weight;
  float* y;
  int64_t tokens, channels, stride, kernel;
};

// Head rows of a full-attention layer: y = rotary(rms_norm(x)) * scale. norm may be nullptr: then no norm.
struct HeadJob {
  const float* x;
  const float* norm;
  float eps;
  const float *cos, *sin;
  int64_t dim, half;  // half: rotary_dim / 2
  float scale;
  float* y;
};

struct Kernels {
  const char* name;
  // y: (in,) row `row` of the matrix as float32.
  void (*unpack_row)(const Matrix& matrix, int64_t row, float* y);
  // Columns first to last - 1 of the job. scratch: kLinearScratch floats.
  void (*linear)(const LinearJob& job, int64_t first, int64_t last, float* scratch);
  // Tile number `tile` of a matrix to y.
  void (*tile)(const Matrix& matrix, int64_t tile, uint8_t* y);
  // Row number `row` of x (in,) in 8 bits, in the form that meets the matrix's packed tiles.
  void (*quantize_row)(const Matrix& matrix, const float* x, int64_t row, const RowCodes& y);
  // Tiles first to last - 1 of the job, packed, with x in 8 bits. scratch: tile_scratch(rows) floats.
  void (*linear_tiles)(const TileJob& job, int64_t first, int64_t last, float* scratch);
  // The same for dense tiles, with x as `dense` says; with bf16 for packed tiles too. scratch: dense_scratch(rows) floats.
  void (*dense_row)(const float* x, int64_t in, int64_t row, const RowCodes& y);
  void (*linear_dense)(const TileJob& job, int64_t first, int64_t last, float* scratch);
  Dense dense;

  void (*rms_norm)(const float* x, const float* weight, float eps, int64_t n, float* y);
  void (*layer_norm)(const float* x, const float* weight, const float* bias, float eps, int64_t n, float* y);
  void (*gated_rms_norm)(const float* x, const float* gate, const float* weight, float eps, int64_t n, float* y);
  void (*silu_mul)(const float* gate, const float* x, int64_t n, float* y);
  void (*sigmoid_mul)(const float* gate, const float* x, int64_t n, float* y);
  void (*gelu_tanh)(const float* x, int64_t n, float* y);
  void (*head)(const HeadJob& job);
  void (*normalise)(const float* x, float scale, int64_t n, float* y);  // x / sqrt(sum(x^2) + 1e-6) * scale

  void (*pack)(const PackJob& job);
  void (*attention)(const AttentionJob& job, float* scratch);
  // What rows saw in later blocks joins what they saw before.
  void (*join)(const AttentionPart& all, const AttentionPart& part, int64_t rows, int64_t width);
  void (*conv)(const ConvJob& job);
  void (*delta)(const DeltaJob& job);

  // Loops that show the limits of one thread: read n bytes; multiply for `rounds` rounds, which returns the number of operations
  // done, 0 where the level has no instruction for this type.
  void (*read)(const uint8_t* p, int64_t n);
  int64_t (*peak)(Number number, int64_t rounds);
};

// The kernels for this machine: the best level that it has, or the named one. Throws std::invalid_argument for a level that is
// unknown or not supported here.
const Kernels& kernels(const char* level = nullptr);
// The names of the levels that run here, from the plainest to the best.
std::vector<const char*> supported_levels();

}  // namespace pagelift
