// Memory that a thread keeps for its next piece of work.
#pragma once

#include <cstdint>
#include <memory>

namespace pagelift {

// Who asks: a kernel, the operation that runs it, or what is fused of operations.
enum class Use { kernel, operation, fused };

// At least `floats` floats, not initialised; valid until the same thread asks again for the same use.
inline float* scratch(int64_t floats, Use use = Use::kernel) {
  struct Memory {
    std::unique_ptr<float[]> floats;
    int64_t size = 0;
  };
  thread_local Memory memories[3];
  Memory& memory = memories[(int)use];
  if (memory.size < floats) {
    memory.floats.reset();
    memory.floats.reset(new float[floats]);
    memory.size = floats;
  }
  return memory.floats.get();
}

}  // namespace pagelift
