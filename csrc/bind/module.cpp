// The Python module pagelift.backends.cpu._kernels.
#include <nanobind/nanobind.h>

#include "threads.h"

namespace nb = nanobind;
using pagelift::ThreadPool;

NB_MODULE(_kernels, module) {
  nb::class_<ThreadPool>(module, "ThreadPool").def(nb::init<int>(), nb::arg("threads")).def_prop_ro("threads", &ThreadPool::threads);
}
