// Which level's kernels run on this machine.
#include <stdexcept>
#include <string>

#include "kernels.h"

namespace pagelift {

namespace portable {
extern const Kernels table;
}
#if defined(PAGELIFT_HAS_avx2)
namespace avx2 {
extern const Kernels table;
}
namespace avx512 {
extern const Kernels table;
}
#endif

namespace {

struct Level {
  const Kernels* table;
  bool supported;
};

// From the plainest to the best.
const Level* levels(int& count) {
#if defined(PAGELIFT_HAS_avx2)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  static const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                                 __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  static const Level all[] = {{&portable::table, true}, {&avx2::table, has_avx2}, {&avx512::table, has_avx512}};
  count = 3;
#else
  static const Level all[] = {{&portable::table, true}};
  count = 1;
#endif
  return all;
}

}  // namespace

const Kernels& kernels(const char* level) {
  int count;
  const Level* all = levels(count);
  for (int i = count - 1; i >= 0; --i)
    if (all[i].supported && (!level || std::string(level) == all[i].table->name)) return *all[i].table;
  throw std::invalid_argument("this machine cannot run kernels of level '" + std::string(level) + "'");
}

}  // namespace pagelift
