// The pool: every item once, exceptions reach the caller, callers take turns.
#include <atomic>
#include <stdexcept>
#include <thread>

#include "tests.h"

using namespace pagelift;
using namespace pagelift::tests;

TEST(every_item_is_done_once) {
  for (int64_t count : {0, 1, 7, 64, 1000}) {
    std::vector<int> done(count);
    on.pool.run(count, 4, 1'000'000, [&](int64_t first, int64_t last) {
      check(first % 4 == 0 && last <= count, "a range starts at a multiple of the grain and ends in time");
      for (int64_t i = first; i < last; ++i) ++done[i];
    });
    for (int times : done) check(times == 1, "an item is done once");
  }
}

TEST(many_small_jobs) {
  std::atomic<int64_t> sum{0};
  for (int i = 0; i < 2000; ++i) on.pool.run(3, 1, 1'000'000, [&](int64_t first, int64_t last) { sum += last - first; });
  check(sum == 6000, "all items of all jobs are done");
}

TEST(exceptions_reach_the_caller) {
  bool caught = false;
  try {
    on.pool.run(100, 1, 1'000'000, [](int64_t first, int64_t) {
      if (first > 10) throw std::runtime_error("no");
    });
  } catch (const std::runtime_error&) {
    caught = true;
  }
  check(caught || on.pool.threads() == 1, "the exception reaches the caller");
  std::atomic<int> after{0};
  on.pool.run(100, 1, 1'000'000, [&](int64_t first, int64_t last) { after += (int)(last - first); });
  check(after == 100, "the pool works after an exception");
}

TEST(callers_take_turns) {
  std::vector<std::thread> callers;
  std::atomic<int64_t> sum{0};
  for (int c = 0; c < 4; ++c)
    callers.emplace_back([&] {
      for (int i = 0; i < 200; ++i) on.pool.run(10, 1, 1'000'000, [&](int64_t first, int64_t last) { sum += last - first; });
    });
  for (std::thread& caller : callers) caller.join();
  check(sum == 4 * 200 * 10, "all items of all callers are done");
}
