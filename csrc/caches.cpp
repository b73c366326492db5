#include "caches.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <mutex>
#include <new>
#include <string>

namespace pagelift {

namespace {

[[noreturn]] void refuse_keep(int64_t count, int64_t block) {
  throw CacheError("no block of " + std::to_string(block) + " tokens is recorded of which " + std::to_string(count) + " could be kept");
}

int64_t bytes(const std::vector<float>& floats) { return (int64_t)(floats.capacity() * sizeof(float)); }
int64_t bytes(const StateFloats& floats) { return floats.size() * (int64_t)sizeof(float); }

// Freed states, at most kKept of a size: those of the layers of one sequence.
constexpr size_t kKept = 32;
constexpr std::align_val_t kLine{64};

struct FreeStates {
  std::mutex lock;
  std::map<int64_t, std::vector<float*>> of_size;
};
FreeStates& free_states() {
  static FreeStates* states = new FreeStates;  // never destroyed: threads may end after it
  return *states;
}

float* new_state(int64_t size) {
  {
    FreeStates& free = free_states();
    std::lock_guard guard(free.lock);
    std::vector<float*>& kept = free.of_size[size];
    if (!kept.empty()) {
      float* floats = kept.back();
      kept.pop_back();
      return floats;
    }
  }
  return static_cast<float*>(::operator new(size * sizeof(float), kLine));
}

void free_state(float* floats, int64_t size) {
  {
    FreeStates& free = free_states();
    std::lock_guard guard(free.lock);
    std::vector<float*>& kept = free.of_size[size];
    if (kept.size() < kKept) return kept.push_back(floats);
  }
  ::operator delete(floats, kLine);
}

}  // namespace

KvCache::KvCache(KvType type, int64_t kv_heads, int64_t dim) : type_(type), kv_heads_(kv_heads), dim_(dim) {}

int64_t KvCache::nbytes() const { return (int64_t)blocks_.size() * block_bytes(); }

KvCache::Block KvCache::new_block() const {
  constexpr std::align_val_t line{64};
  return Block(static_cast<uint8_t*>(::operator new(block_bytes(), line)), [](uint8_t* memory) { ::operator delete(memory, line); });
}

void KvCache::extend(int64_t count) {
  const int64_t end = length_ + count;
  if (length_ % kKeys && blocks_[length_ / kKeys].use_count() > 1) {
    Block own = new_block();
    std::memcpy(own.get(), blocks_[length_ / kKeys].get(), block_bytes());
    blocks_[length_ / kKeys] = std::move(own);
  }
  blocks_.resize((length_ + kKeys - 1) / kKeys);
  while ((int64_t)blocks_.size() * kKeys < end) {
    blocks_.push_back(new_block());
    std::memset(blocks_.back().get(), 0, block_bytes());  // places without a token are read too, and count nothing
  }
  length_ = end;
}

void KvCache::write(const Kernels& kernels, int64_t position, int64_t count, int64_t head, const float* k, const float* v,
                    int64_t stride) {
  for (int64_t t = 0; t < count;) {
    const int64_t slot = (position + t) % kKeys, some = std::min(count - t, kKeys - slot);
    uint8_t* block = blocks_[(position + t) / kKeys].get() + head * head_bytes(type_, dim_);
    kernels.pack({type_, block, dim_, slot, some, k + t * stride, v + t * stride, stride, stride});
    t += some;
  }
}

std::vector<const uint8_t*> KvCache::blocks(int64_t head) const {
  std::vector<const uint8_t*> result;
  for (const Block& block : blocks_) result.push_back(block.get() + head * head_bytes(type_, dim_));
  return result;
}

void KvCache::keep(int64_t count, int64_t block) {
  if (count < 0 || count > block || block > length_) refuse_keep(count, block);
  length_ += count - block;
  blocks_.resize((length_ + kKeys - 1) / kKeys);
}

StateFloats::StateFloats(int64_t size) : size_(size), floats_(new_state(size)) {}
StateFloats::~StateFloats() {
  if (floats_) free_state(floats_, size_);
}
StateFloats::StateFloats(const StateFloats& other) : StateFloats(other.size_) { std::copy_n(other.floats_, size_, floats_); }
bool StateFloats::operator==(const StateFloats& other) const {
  return size_ == other.size_ && std::equal(floats_, floats_ + size_, other.floats_);
}

DeltaState::DeltaState(const DeltaShape& shape)
    : shape(shape), window((shape.kernel - 1) * shape.channels()), state(shape.state_floats()) {
  std::fill_n(state.data(), state.size(), 0.0f);
}

int64_t DeltaState::nbytes() const {
  int64_t total = bytes(window) + bytes(state);
  if (!draft) return total;
  for (const auto* part : {&draft->inputs, &draft->k, &draft->v, &draft->decay, &draft->beta}) total += bytes(*part);
  return total + (draft->state ? bytes(*draft->state) : 0);
}

void DeltaState::advance(const Kernels& kernels, const DeltaInputs& in, int64_t head, int64_t chunk) {
  const int64_t key_head = head / (shape.value_heads / shape.key_heads), column = chunk * kColumns;
  const int64_t key = key_head * shape.key_dim, value = head * shape.value_dim + column;
  const int64_t place = (head * shape.chunks() + chunk) * shape.key_dim * kColumns;
  DeltaJob job;
  job.state = state.data() + place;
  job.before = draft && draft->state ? draft->state->data() + place : job.state;
  job.key_dim = shape.key_dim;
  job.columns = std::min(kColumns, shape.value_dim - column);
  job.tokens = in.tokens;
  job.k = in.k + key;
  job.q = in.q ? in.q + key : job.k;
  job.v = in.v + value;
  job.decay = in.decay + head;
  job.beta = in.beta + head;
  job.key_stride = in.key_stride;
  job.value_stride = in.value_stride;
  job.gate_stride = shape.value_heads;
  job.y = in.y ? in.y + value : nullptr;
  job.y_stride = shape.values();
  kernels.delta(job);
}

void DeltaState::record(const DeltaInputs& in) {
  if (!draft) throw CacheError("the convolution of a drafted block must run before its recurrence");
  Draft& d = *draft;
  d.state = std::exchange(state, StateFloats(shape.state_floats()));
  d.tokens = in.tokens;
  d.decay.assign(in.decay, in.decay + in.tokens * shape.value_heads);
  d.beta.assign(in.beta, in.beta + in.tokens * shape.value_heads);
  d.k.resize(in.tokens * shape.keys());
  d.v.resize(in.tokens * shape.values());
  for (int64_t t = 0; t < in.tokens; ++t) {
    std::copy_n(in.k + t * in.key_stride, shape.keys(), d.k.data() + t * shape.keys());
    std::copy_n(in.v + t * in.value_stride, shape.values(), d.v.data() + t * shape.values());
  }
}

void DeltaState::keep(ThreadPool& pool, const Kernels& kernels, int64_t count, int64_t block) {
  if (!draft || count < 0 || count > block || block != draft->tokens) refuse_keep(count, block);
  Draft kept = std::move(*draft);
  draft.reset();
  std::copy_n(kept.inputs.data() + count * shape.channels(), window.size(), window.data());
  if (count == block) return;  // the state already has all updates
  state = std::move(*kept.state);
  const DeltaInputs inputs{nullptr,        kept.k.data(), kept.v.data(), kept.decay.data(), kept.beta.data(), shape.keys(),
                           shape.values(), count,         nullptr};
  const int64_t chunks = shape.chunks();
  pool.run(shape.value_heads * chunks, 1, count * shape.key_dim * kColumns, [&](int64_t first, int64_t last) {
    for (int64_t i = first; i < last; ++i) advance(kernels, inputs, i / chunks, i % chunks);
  });
}

DeltaState DeltaState::copy() const {
  if (draft) throw CacheError("a state with an undecided draft cannot be copied");
  return *this;
}

}  // namespace pagelift
