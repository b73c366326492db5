// Attention over caches and inside pictures.
#include <algorithm>
#include <cmath>

#include "ops.h"
#include "scratch.h"

namespace pagelift {

namespace {

// A long sequence is looked at in splits of so many tokens, counted from its first one, whose results are joined in their order.
// Threads may share the splits of a few query rows; the bits are the same when one thread takes all.
constexpr int64_t kSplit = 2048;
constexpr int64_t kSplitBlocks = kSplit / kKeys;
static_assert(kSplit % kSpan == 0);

// Up to kQueries query rows of one KV head. rows: token by token, in each the query heads of the group.
struct Task {
  const std::vector<const uint8_t*>* blocks;
  int64_t segment, head, first, rows, splits;
};

int64_t part_floats(int64_t rows, int64_t dim) { return (rows + 15) / 16 * 16 * value_width(dim) + 2 * rows; }

AttentionPart part_in(float* memory, int64_t rows, int64_t dim) {
  float* ends = memory + (rows + 15) / 16 * 16 * value_width(dim);
  return {memory, ends, ends + rows};
}

struct QueryRows {
  const float* q[kQueries];
  float* y[kQueries];
  int64_t visible[kQueries];
};

void finish(const AttentionPart& part, int64_t rows, int64_t dim, float* const* y) {
  for (int64_t r = 0; r < rows; ++r) {
    const float* sums = part.sums + r * value_width(dim);
    const float factor = 1.0f / part.total[r];
    for (int64_t i = 0; i < dim; ++i) y[r][i] = sums[i] * factor;
  }
}

// One step of attention: its operands, and how its rows are grouped.
class CachedAttention {
 public:
  CachedAttention(const Context& on, const HeadRows& rows, const std::vector<Segment>& segments, const std::vector<KvCache*>& caches,
                  float* y)
      : on_(on),
        rows_(rows),
        segments_(segments),
        caches_(caches),
        y_(y),
        type_(caches[0]->type()),
        kv_heads_(caches[0]->kv_heads()),
        dim_(caches[0]->dim()),
        group_(rows.heads / kv_heads_) {}

  void run() {
    append();
    plan();
    const int64_t threads = on_.pool.threads();
    if (most_splits_ > 1 && (int64_t)tasks_.size() < 4 * threads)
      run_split();
    else
      run_whole();
  }

 private:
  void append() {
    int64_t longest = 0;
    for (size_t s = 0; s < segments_.size(); ++s) {
      caches_[s]->extend(segments_[s].length);
      longest = std::max(longest, segments_[s].length);
    }
    on_.pool.run((int64_t)segments_.size() * kv_heads_, 1, dim_ * longest * 2, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        const Segment& segment = segments_[i / kv_heads_];
        KvCache& cache = *caches_[i / kv_heads_];
        const int64_t head = i % kv_heads_, at = (segment.start * kv_heads_ + head) * dim_;
        cache.write(on_.kernels, cache.length() - segment.length, segment.length, head, rows_.k + at, rows_.v + at, kv_heads_ * dim_);
      }
    });
  }

  void plan() {
    blocks_.reserve(segments_.size() * kv_heads_);
    for (int64_t s = 0; s < (int64_t)segments_.size(); ++s) {
      const int64_t all = segments_[s].length * group_, past = caches_[s]->length() - segments_[s].length;
      for (int64_t head = 0; head < kv_heads_; ++head) {
        blocks_.push_back(caches_[s]->blocks(head));
        for (int64_t first = 0; first < all; first += kQueries) {
          const int64_t rows = std::min(kQueries, all - first), visible = past + (first + rows - 1) / group_ + 1;
          tasks_.push_back({&blocks_.back(), s, head, first, rows, (visible + kSplit - 1) / kSplit});
          most_splits_ = std::max(most_splits_, tasks_.back().splits);
          most_visible_ = std::max(most_visible_, visible);
        }
      }
    }
  }

  void fill(const Task& task, QueryRows& rows) const {
    const Segment& segment = segments_[task.segment];
    const int64_t past = caches_[task.segment]->length() - segment.length;
    for (int64_t r = 0; r < task.rows; ++r) {
      const int64_t token = (task.first + r) / group_, head = task.head * group_ + (task.first + r) % group_;
      const int64_t at = ((segment.start + token) * rows_.heads + head) * dim_;
      rows.q[r] = rows_.q + at;
      rows.y[r] = y_ + at;
      rows.visible[r] = past + token + 1;
    }
  }

  void attend(const Task& task, int64_t split, const QueryRows& rows, const AttentionPart& part, float* memory) const {
    const int64_t first = split * kSplitBlocks, last = std::min(first + kSplitBlocks, (int64_t)task.blocks->size());
    on_.kernels.attention({type_, task.blocks->data(), dim_, task.rows, rows.q, rows.visible, first, last, part}, memory);
  }

  // A thread takes all splits of a task.
  void run_whole() const {
    on_.pool.run((int64_t)tasks_.size(), 1, most_visible_ * dim_ * group_, [&](int64_t begin, int64_t end) {
      const int64_t floats = part_floats(kQueries, dim_);
      float* memory = scratch(2 * floats + attention_scratch(dim_));
      QueryRows rows;
      for (int64_t i = begin; i < end; ++i) {
        const Task& task = tasks_[i];
        fill(task, rows);
        const AttentionPart all = part_in(memory, task.rows, dim_), part = part_in(memory + floats, task.rows, dim_);
        for (int64_t split = 0; split < task.splits; ++split) {
          attend(task, split, rows, split ? part : all, memory + 2 * floats);
          if (split) on_.kernels.join(all, part, task.rows, value_width(dim_));
        }
        finish(all, task.rows, dim_, rows.y);
      }
    });
  }

  // Threads share the splits; then the results are joined.
  void run_split() const {
    std::vector<std::pair<int64_t, int64_t>> pieces;  // task, split
    std::vector<int64_t> places;                      // of each piece's part
    int64_t floats = 0;
    for (int64_t i = 0; i < (int64_t)tasks_.size(); ++i)
      for (int64_t split = 0; split < tasks_[i].splits; ++split) {
        pieces.emplace_back(i, split);
        places.push_back(floats);
        floats += part_floats(tasks_[i].rows, dim_);
      }
    float* parts = scratch(floats, Use::operation);
    on_.pool.run((int64_t)pieces.size(), 1, kSplit * dim_ * group_, [&](int64_t begin, int64_t end) {
      QueryRows rows;
      for (int64_t i = begin; i < end; ++i) {
        const Task& task = tasks_[pieces[i].first];
        fill(task, rows);
        attend(task, pieces[i].second, rows, part_in(parts + places[i], task.rows, dim_), scratch(attention_scratch(dim_)));
      }
    });
    QueryRows rows;
    for (size_t i = 0; i < pieces.size(); ++i) {
      const Task& task = tasks_[pieces[i].first];
      const size_t first = i - pieces[i].second;
      const AttentionPart all = part_in(parts + places[first], task.rows, dim_);
      if (i > first) on_.kernels.join(all, part_in(parts + places[i], task.rows, dim_), task.rows, value_width(dim_));
      if (pieces[i].second + 1 < task.splits) continue;
      fill(task, rows);
      finish(all, task.rows, dim_, rows.y);
    }
  }

  const Context& on_;
  const HeadRows& rows_;
  const std::vector<Segment>& segments_;
  const std::vector<KvCache*>& caches_;
  float* y_;
  KvType type_;
  int64_t kv_heads_, dim_, group_, most_splits_ = 1, most_visible_ = 1;
  std::vector<std::vector<const uint8_t*>> blocks_;
  std::vector<Task> tasks_;
};

// Keys and values of all heads of one run, rotated and laid out in blocks: block b of head h at (h * count + b) * head_bytes.
void pack_run(const Context& on, const Runs& runs, int64_t first, int64_t length, uint8_t* memory) {
  const int64_t count = (length + kKeys - 1) / kKeys, size = head_bytes(runs.type, runs.dim);
  on.pool.run(runs.heads * count, 1, kKeys * runs.dim * 8, [&](int64_t begin, int64_t end) {
    float* rotated = scratch(kKeys * runs.dim);
    for (int64_t i = begin; i < end; ++i) {
      const int64_t head = i / count, row = first + i % count * kKeys, some = std::min(kKeys, first + length - row);
      uint8_t* block = memory + i * size;
      if (some < kKeys) std::fill_n(block, size, 0);
      for (int64_t t = 0; t < some; ++t) runs.rotate(on, runs.k, row + t, head, 1.0f, rotated + t * runs.dim);
      const float* v = runs.v.x + row * runs.v.stride + head * runs.dim;
      on.kernels.pack({runs.type, block, runs.dim, 0, some, rotated, v, runs.dim, runs.v.stride});
    }
  });
}

void attend_run(const Context& on, const Runs& runs, int64_t first, int64_t length, const uint8_t* memory, float* y) {
  const int64_t dim = runs.dim, count = (length + kKeys - 1) / kKeys, groups = (length + kQueries - 1) / kQueries;
  on.pool.run(runs.heads * groups, 1, kQueries * length * dim, [&](int64_t begin, int64_t end) {
    const int64_t floats = part_floats(kQueries, dim);
    float *parts = scratch(floats + kQueries * dim + attention_scratch(dim)), *queries = parts + floats;
    std::vector<const uint8_t*> blocks(count);
    QueryRows rows;
    for (int64_t i = begin; i < end; ++i) {
      const int64_t head = i / groups, row = i % groups * kQueries, some = std::min(kQueries, length - row);
      for (int64_t b = 0; b < count; ++b) blocks[b] = memory + (head * count + b) * head_bytes(runs.type, dim);
      for (int64_t r = 0; r < some; ++r) {
        runs.rotate(on, runs.q, first + row + r, head, runs.scale, queries + r * dim);
        rows.q[r] = queries + r * dim;
        rows.y[r] = y + ((first + row + r) * runs.heads + head) * dim;
        rows.visible[r] = length;
      }
      const AttentionPart part = part_in(parts, some, dim);
      on.kernels.attention({runs.type, blocks.data(), dim, some, rows.q, rows.visible, 0, count, part}, queries + kQueries * dim);
      finish(part, some, dim, rows.y);
    }
  });
}

}  // namespace

void prepare_heads(const Context& on, const Heads& h, float* y) {
  on.pool.run(h.tokens, 1, h.heads * h.dim * 4, [&](int64_t first, int64_t last) {
    for (int64_t t = first; t < last; ++t)
      for (int64_t i = t * h.heads; i < (t + 1) * h.heads; ++i)
        on.kernels.head({h.x + i * h.stride, h.norm, h.eps, h.cos + t * h.half, h.sin + t * h.half, h.dim, h.half, h.scale, y + i * h.dim});
  });
}

void attention(const Context& on, const HeadRows& rows, const std::vector<Segment>& segments, const std::vector<KvCache*>& caches,
               float* y) {
  CachedAttention(on, rows, segments, caches, y).run();
}

void head_attention(const Context& on, const Projections& x, const std::vector<Segment>& segments, const std::vector<KvCache*>& caches,
                    float* y) {
  const int64_t tokens = segments.back().start + segments.back().length, dim = caches[0]->dim(), kv_heads = caches[0]->kv_heads();
  const int64_t width = x.heads * dim, stride = x.gated ? 2 * dim : dim;
  float *q = scratch(tokens * (width + kv_heads * dim), Use::fused), *k = q + tokens * width;
  const float scale = 1.0f / std::sqrt((float)dim);
  prepare_heads(on, {x.q, tokens, x.heads, dim, stride, x.q_norm.weight, x.q_norm.eps, x.cos, x.sin, x.half, scale}, q);
  prepare_heads(on, {x.k, tokens, kv_heads, dim, dim, x.k_norm.weight, x.k_norm.eps, x.cos, x.sin, x.half, 1.0f}, k);
  attention(on, {x.heads, q, k, x.v}, segments, caches, y);
  if (!x.gated) return;
  on.pool.run(tokens, 1, width * 4, [&](int64_t first, int64_t last) {
    for (int64_t i = first * x.heads; i < last * x.heads; ++i)
      on.kernels.sigmoid_mul(x.q + i * stride + dim, y + i * dim, dim, y + i * dim);
  });
}

void Runs::rotate(const Context& on, const Features& from, int64_t row, int64_t head, float factor, float* to) const {
  on.kernels.head({from.x + row * from.stride + head * dim, nullptr, 0, cos + row * half, sin + row * half, dim, half, factor, to});
}

void full_attention(const Context& on, const Runs& runs, float* y) {
  int64_t first = 0;
  for (int64_t length : runs.lengths) {
    const int64_t bytes = runs.heads * ((length + kKeys - 1) / kKeys) * head_bytes(runs.type, runs.dim);
    uint8_t* memory = (uint8_t*)(((uintptr_t)scratch(bytes / 4 + 16, Use::operation) + 63) / 64 * 64);
    pack_run(on, runs, first, length, memory);
    attend_run(on, runs, first, length, memory, y);
    first += length;
  }
}

}  // namespace pagelift
