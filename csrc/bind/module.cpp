// The Python module pagelift.backends.cpu._kernels.
#include "bind/bind.h"

namespace nb = nanobind;

namespace {

void raise(const char* name, const char* message) {
  PyErr_SetString(nb::module_::import_("pagelift.core.errors").attr(name).ptr(), message);
}

}  // namespace

NB_MODULE(_kernels, module) {
  nb::register_exception_translator([](const std::exception_ptr& failure, void*) {
    try {
      std::rethrow_exception(failure);
    } catch (const pagelift::bind::ShapeError& error) {
      raise("ShapeError", error.what());
    } catch (const pagelift::CacheError& error) {
      raise("EngineError", error.what());
    }
  });
  nb::set_leak_warnings(false);  // backends live as long as the process, which is no leak
  pagelift::bind::bind_weights(module);
  pagelift::bind::bind_operations(module);
}
