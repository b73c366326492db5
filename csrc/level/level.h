// What each level's files define; csrc/level/rows.cpp puts it into a table.
#pragma once

#include "kernels.h"
#include "level/simd.h"

namespace pagelift::PAGELIFT_NAMESPACE {

void unpack_row(const Matrix& matrix, int64_t row, float* y);
void tile(const Matrix& matrix, int64_t tile, uint8_t* y);
void quantize_row(const Matrix& matrix, const float* x, int64_t row, const RowCodes& y);
void linear_tiles(const TileJob& job, int64_t first, int64_t last, float* scratch);
void dense_row(const float* x, int64_t in, int64_t row, const RowCodes& y);
void linear_dense(const TileJob& job, int64_t first, int64_t last, float* scratch);
void linear(const LinearJob& job, int64_t first, int64_t last, float* scratch);
void pack(const PackJob& job);
void attention(const AttentionJob& job, float* scratch);
void join(const AttentionPart& all, const AttentionPart& part, int64_t rows, int64_t width);
void conv(const ConvJob& job);
void delta(const DeltaJob& job);
void read(const uint8_t* p, int64_t n);
int64_t peak(Number number, int64_t rounds);

#if defined(__AMX_BF16__)
constexpr Dense kDense = Dense::bf16;
#elif defined(__AVX2__) && !defined(__AVX512F__)
constexpr Dense kDense = Dense::f32;
#else
constexpr Dense kDense = Dense::none;
#endif

extern const Kernels table;

}  // namespace pagelift::PAGELIFT_NAMESPACE
