// What a layer remembers of a sequence between steps.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <stdexcept>
#include <utility>
#include <vector>

#include "kernels.h"
#include "threads.h"

namespace pagelift {

// A request that a cache cannot meet.
struct CacheError : std::runtime_error {
  using std::runtime_error::runtime_error;
};

// Keys and values of one full-attention layer, in blocks of kKeys tokens (see kernels.h). Growing never moves what is there, and a
// copy shares all blocks until one of the two writes to one.
class KvCache {
 public:
  KvCache(KvType type, int64_t kv_heads, int64_t dim);

  KvType type() const { return type_; }
  int64_t length() const { return length_; }
  int64_t kv_heads() const { return kv_heads_; }
  int64_t dim() const { return dim_; }
  int64_t nbytes() const;

  // Room for `count` more tokens at positions length() and on; they count from now on.
  void extend(int64_t count);
  // Keys and values of one head for `count` tokens inside the last extension: rows of dim floats, `stride` floats apart. Heads and
  // blocks may be written by different threads.
  void write(const Kernels& kernels, int64_t position, int64_t count, int64_t head, const float* k, const float* v, int64_t stride);
  // For the attention kernel: where the head lies in each block.
  std::vector<const uint8_t*> blocks(int64_t head) const;

  void keep(int64_t count, int64_t block);
  KvCache copy() const { return *this; }

 private:
  using Block = std::shared_ptr<uint8_t>;
  int64_t block_bytes() const { return kv_heads_ * head_bytes(type_, dim_); }
  Block new_block() const;

  KvType type_;
  int64_t kv_heads_, dim_, length_ = 0;
  std::vector<Block> blocks_;
};

// The shape of a gated DeltaNet layer.
struct DeltaShape {
  int64_t key_heads, value_heads, key_dim, value_dim, kernel;

  bool operator==(const DeltaShape&) const = default;
  int64_t keys() const { return key_heads * key_dim; }
  int64_t values() const { return value_heads * value_dim; }
  int64_t channels() const { return 2 * keys() + values(); }
  int64_t chunks() const { return (value_dim + kColumns - 1) / kColumns; }  // column chunks of a head's state
  int64_t state_floats() const { return value_heads * chunks() * key_dim * kColumns; }
};

// Inputs of the recurrence for consecutive tokens: k (tokens, keys), v (tokens, values), decay and beta (tokens, value_heads).
// Strides are in floats from token to token. q and y may be nullptr: then only the state advances.
struct DeltaInputs {
  const float *q, *k, *v, *decay, *beta;
  int64_t key_stride, value_stride, tokens;
  float* y;
};

// Floats of a recurrent state, not initialised. Freed memory is kept for the next one of the same size, as drafts come and go.
class StateFloats {
 public:
  explicit StateFloats(int64_t size);
  ~StateFloats();
  StateFloats(const StateFloats& other);
  StateFloats(StateFloats&& other) noexcept { swap(other); }
  StateFloats& operator=(StateFloats other) noexcept {
    swap(other);
    return *this;
  }
  bool operator==(const StateFloats& other) const;

  int64_t size() const { return size_; }
  float* data() { return floats_; }
  const float* data() const { return floats_; }

 private:
  void swap(StateFloats& other) noexcept {
    std::swap(size_, other.size_);
    std::swap(floats_, other.floats_);
  }

  int64_t size_ = 0;
  float* floats_ = nullptr;
};

// State of one gated DeltaNet layer.
class DeltaState {
 public:
  explicit DeltaState(const DeltaShape& shape);

  // The record of a drafted block.
  struct Draft {
    std::vector<float> inputs;         // (kernel - 1 + tokens, channels) of the convolution
    std::optional<StateFloats> state;  // before the block
    std::vector<float> k, v, decay, beta;
    int64_t tokens = 0;
  };

  const DeltaShape shape;
  std::vector<float> window;  // (kernel - 1, channels)
  StateFloats state;          // (value_heads, chunks, key_dim, kColumns)
  std::optional<Draft> draft;

  int64_t nbytes() const;
  // Lets one chunk of one head take part in the tokens.
  void advance(const Kernels& kernels, const DeltaInputs& inputs, int64_t head, int64_t chunk);
  // Remembers what `keep` needs; the inputs must then go through `advance`.
  void record(const DeltaInputs& inputs);
  void keep(ThreadPool& pool, const Kernels& kernels, int64_t count, int64_t block);
  DeltaState copy() const;
};

}  // namespace pagelift
