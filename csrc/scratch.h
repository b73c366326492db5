// Memory that a thread keeps for its next piece of work.
#pragma once

#include <cstdint>
#include <memory>

namespace pagelift {

// At least `floats` floats, not initialised; valid until the same thread asks again.
inline float* scratch(int64_t floats) {
  thread_local std::unique_ptr<float[]> memory;
  thread_local int64_t size = 0;
  if (size < floats) {
    memory.reset(new float[floats]);
    size = floats;
  }
  return memory.get();
}

}  // namespace pagelift
