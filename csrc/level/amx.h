// AMX tiles by their instructions: the intrinsics of g++ 12 and 13 do not tell the compiler what memory they touch.
// Tile registers have 16 rows of 64 bytes. Every function that uses them configures them first and releases them at its end,
// so that it does not matter which thread runs it, or what else in the process uses tiles.
#pragma once

#include "level/simd.h"

#if defined(__AMX_INT8__)

namespace pagelift::PAGELIFT_NAMESPACE {

struct alignas(64) TileConfig {
  uint8_t palette = 1, start_row = 0, reserved[14] = {};
  uint16_t row_bytes[16] = {};
  uint8_t rows[16] = {};
};

#define PAGELIFT_TILE_LOAD(tile, p, stride) \
  asm volatile("tileloadd (%0,%1,1), %%tmm" #tile ::"r"((const void*)(p)), "r"((int64_t)(stride)) : "memory")
// The same for what will not be needed again soon: it takes no place in the first-level cache.
#define PAGELIFT_TILE_LOAD_ONCE(tile, p, stride) \
  asm volatile("tileloaddt1 (%0,%1,1), %%tmm" #tile ::"r"((const void*)(p)), "r"((int64_t)(stride)) : "memory")
#define PAGELIFT_TILE_STORE(tile, p, stride) \
  asm volatile("tilestored %%tmm" #tile ", (%0,%1,1)" ::"r"((void*)(p)), "r"((int64_t)(stride)) : "memory")
#define PAGELIFT_TILE_ZERO(tile) asm volatile("tilezero %%tmm" #tile ::)
// c += a * b: signed by unsigned bytes, and bf16.
#define PAGELIFT_TILE_DOT_BYTES(c, a, b) asm volatile("tdpbsud %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::)
#define PAGELIFT_TILE_DOT_BF16(c, a, b) asm volatile("tdpbf16ps %%tmm" #b ", %%tmm" #a ", %%tmm" #c ::)

inline void configure_tiles(const TileConfig& config) { asm volatile("ldtilecfg %0" ::"m"(config) : "memory"); }
inline void release_tiles() { asm volatile("tilerelease" ::: "memory"); }

}  // namespace pagelift::PAGELIFT_NAMESPACE

#endif
