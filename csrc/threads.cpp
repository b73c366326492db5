#include "threads.h"

#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <system_error>
#include <thread>
#include <vector>

namespace pagelift {

namespace {

constexpr int64_t kWorthAThread = 40'000;  // elementary operations; below that, waking a thread costs more than it saves
constexpr int kRangesPerThread = 4;        // so that a thread that is held up elsewhere does not hold up the others
constexpr int kSpins = 2'000;              // looks for the next job before a worker goes to sleep; some microseconds

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

}  // namespace

// One job at a time. A job is opened by raising `generation`; whoever takes part counts itself in `busy` under the lock, so that
// the caller knows when nobody touches the job any more.
struct ThreadPool::Shared {
  std::mutex turn;  // held by the caller of run()
  std::mutex lock;
  std::condition_variable wake, idle;
  std::vector<std::thread> workers;

  const std::function<void(int64_t, int64_t)>* body = nullptr;
  int64_t count = 0, step = 1;
  std::atomic<int64_t> next{0};
  std::atomic<uint64_t> generation{0};
  std::atomic<int> busy{0};  // changed under the lock
  bool stop = false;
  std::exception_ptr failure;

  explicit Shared(int extra) {
    try {
      for (int i = 0; i < extra; ++i) workers.emplace_back([this] { work(); });
    } catch (const std::system_error&) {
      // The system gives no more threads; those that there are do the work.
    }
  }

  ~Shared() {
    {
      std::lock_guard guard(lock);
      stop = true;
      generation.fetch_add(1);
    }
    wake.notify_all();
    for (std::thread& worker : workers) worker.join();
  }

  void take_ranges() {
    try {
      for (int64_t first; (first = next.fetch_add(step)) < count;) (*body)(first, std::min(first + step, count));
    } catch (...) {
      next.store(count);
      std::lock_guard guard(lock);
      if (!failure) failure = std::current_exception();
    }
  }

  void work() {
    uint64_t seen = 0;
    for (;;) {
      for (int i = 0; i < kSpins && generation.load(std::memory_order_relaxed) == seen; ++i) relax();
      {
        std::unique_lock guard(lock);
        wake.wait(guard, [&] { return generation.load() != seen; });
        seen = generation.load();
        if (stop) return;
        if (!body) continue;
        ++busy;
      }
      take_ranges();
      std::lock_guard guard(lock);
      if (--busy == 0) idle.notify_one();
    }
  }

  void run(int64_t items, int64_t range, const std::function<void(int64_t, int64_t)>& what) {
    std::lock_guard mine(turn);
    {
      std::lock_guard guard(lock);
      body = &what;
      count = items;
      step = range;
      failure = nullptr;
      next.store(0);
      generation.fetch_add(1);
    }
    wake.notify_all();
    take_ranges();
    for (int i = 0; i < kSpins && busy.load(std::memory_order_relaxed) > 0; ++i) relax();  // the others are about to be done
    std::unique_lock guard(lock);
    idle.wait(guard, [&] { return busy == 0; });
    body = nullptr;
    if (failure) std::rethrow_exception(failure);
  }
};

ThreadPool::ThreadPool(int threads) : threads_(std::max(threads, 1)) {}

ThreadPool::~ThreadPool() {
  if (process_ != getpid()) (void)shared_.release();  // the threads belong to the parent process
}

ThreadPool::Shared& ThreadPool::shared() {
  if (process_ == getpid()) return *shared_;
  static std::mutex making;
  std::lock_guard guard(making);
  if (process_ != getpid()) {
    (void)shared_.release();
    shared_ = std::make_unique<Shared>(threads_ - 1);
    process_ = getpid();
  }
  return *shared_;
}

void ThreadPool::run(int64_t count, int64_t grain, int64_t cost, const std::function<void(int64_t, int64_t)>& body) {
  if (count <= 0) return;
  if (threads_ == 1 || count <= grain || count * cost < kWorthAThread) return body(0, count);
  int64_t ranges = std::min(int64_t{threads_} * kRangesPerThread, (count + grain - 1) / grain);
  int64_t range = (count + ranges - 1) / ranges;
  shared().run(count, (range + grain - 1) / grain * grain, body);
}

}  // namespace pagelift
