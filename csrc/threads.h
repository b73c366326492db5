// A small pool of worker threads. Work is split by rows, never inside a sum, so results do not depend on the number of threads.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <memory>

namespace pagelift {

class ThreadPool {
 public:
  // The calling thread is one of `threads`; at least 1.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const { return threads_; }

  // Runs body(first, last) over disjoint ranges that cover 0 to count; returns when all are done. `cost` is the rough number
  // of elementary operations per item: work that is not worth a second thread is done by the caller. Ranges start at multiples
  // of `grain`. Exceptions of the body reach the caller. Calls from several threads take turns; a body may not call run().
  void run(int64_t count, int64_t grain, int64_t cost, const std::function<void(int64_t, int64_t)>& body);

 private:
  struct Shared;
  Shared& shared();

  const int threads_;
  std::unique_ptr<Shared> shared_;
  std::atomic<int64_t> process_{0};  // where shared_ was made: a forked child has no workers and makes its own
};

}  // namespace pagelift
