// Memory that a thread keeps for its next piece of work.
#pragma once

#include <cstdint>
#include <memory>

namespace pagelift {

// Who asks: an operation, or a kernel that runs inside one.
enum class Use { kernel, operation };

// At least `floats` floats, not initialised; valid until the same thread asks again for the same use.
inline float* scratch(int64_t floats, Use use = Use::kernel) {
  struct Memory {
    std::unique_ptr<float[]> floats;
    int64_t size = 0;
  };
  thread_local Memory memories[2];
  Memory& memory = memories[use == Use::operation];
  if (memory.size < floats) {
    memory.floats.reset();
    memory.floats.reset(new float[floats]);
    memory.size = floats;
  }
  return memory.floats.get();
}

}  // namespace pagelift
