// Which level's kernels run on this machine.
#include <stdexcept>
#include <string>

#include "kernels.h"

#if defined(__linux__)
#include <sys/syscall.h>
#include <unistd.h>
#endif
#if defined(__linux__) && defined(__aarch64__)
#include <asm/hwcap.h>
#include <sys/auxv.h>
#endif

namespace pagelift {

#define PAGELIFT_DECLARE(level) \
  namespace level {             \
  extern const Kernels table;   \
  }
PAGELIFT_DECLARE(portable)
#if defined(PAGELIFT_HAS_avx2)
PAGELIFT_DECLARE(avx2)
#endif
#if defined(PAGELIFT_HAS_avx512)
PAGELIFT_DECLARE(avx512)
#endif
#if defined(PAGELIFT_HAS_avx512vnni)
PAGELIFT_DECLARE(avx512vnni)
#endif
#if defined(PAGELIFT_HAS_amx)
PAGELIFT_DECLARE(amx)
#endif
#if defined(PAGELIFT_HAS_neon)
PAGELIFT_DECLARE(neon)
#endif

namespace {

struct Level {
  const Kernels* table;
  bool supported;
};

#if defined(__x86_64__)

// Whether this processor has AMX and the system lets this process use it. The system saves the large tile registers only for
// processes that have asked for them; the answer holds for all threads and for forked children.
[[maybe_unused]] bool has_amx() {
#if defined(__linux__) && defined(SYS_arch_prctl)
  constexpr int kRequestPermission = 0x1023, kTileData = 18;  // ARCH_REQ_XCOMP_PERM, XFEATURE_XTILEDATA
  unsigned a, b, c, d;
  asm volatile("cpuid" : "=a"(a), "=b"(b), "=c"(c), "=d"(d) : "a"(7), "c"(0));
  const bool instructions = d >> 22 & d >> 24 & d >> 25 & 1;  // AMX-BF16, AMX-TILE, AMX-INT8
  return instructions && syscall(SYS_arch_prctl, kRequestPermission, kTileData) == 0;
#else
  return false;
#endif
}

// From the plainest to the best.
std::vector<Level> find_levels() {
  const bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi2");
  const bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
                          __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
  [[maybe_unused]] const bool has_vnni = has_avx512 && __builtin_cpu_supports("avx512vnni");
  std::vector<Level> found = {{&portable::table, true}};
#if defined(PAGELIFT_HAS_avx2)
  found.push_back({&avx2::table, has_avx2});
#endif
#if defined(PAGELIFT_HAS_avx512)
  found.push_back({&avx512::table, has_avx512});
#endif
#if defined(PAGELIFT_HAS_avx512vnni)
  found.push_back({&avx512vnni::table, has_vnni});
#endif
#if defined(PAGELIFT_HAS_amx)
  found.push_back({&amx::table, has_vnni && has_amx()});
#endif
  return found;
}

#elif defined(PAGELIFT_HAS_neon)

std::vector<Level> find_levels() {
#if defined(__linux__)
  const bool has_dot_product = getauxval(AT_HWCAP) & HWCAP_ASIMDDP;
#else
  const bool has_dot_product = true;  // every Apple processor of 64 bits that Python 3.11 runs on
#endif
  return {{&portable::table, true}, {&neon::table, has_dot_product}};
}

#else

std::vector<Level> find_levels() { return {{&portable::table, true}}; }

#endif

const std::vector<Level>& levels() {
  static const std::vector<Level> found = find_levels();
  return found;
}

}  // namespace

const Kernels& kernels(const char* level) {
  const auto& all = levels();
  for (auto one = all.rbegin(); one != all.rend(); ++one)
    if (one->supported && (!level || std::string(level) == one->table->name)) return *one->table;
  std::string known;
  for (const char* name : supported_levels()) known += std::string(known.empty() ? "" : ", ") + name;
  throw std::invalid_argument("this machine cannot run kernels of level '" + std::string(level) + "'; it has " + known);
}

std::vector<const char*> supported_levels() {
  std::vector<const char*> names;
  for (const Level& level : levels())
    if (level.supported) names.push_back(level.table->name);
  return names;
}

}  // namespace pagelift
