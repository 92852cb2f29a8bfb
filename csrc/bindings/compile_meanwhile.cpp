// Meanwhile(stand_in, make): calls stand_in until make(), on a thread of its own, has returned the
// callable to swap to.  What make() raises, each later call raises.  In a child that was forked
// while callables were being made, stand_in it stays.
#include <pthread.h>

#include <chrono>
#include <thread>

#include "bindings/python_types.h"

namespace stitch {
namespace {

// Touched by threads that hold the interpreter's lock.
struct Swap {
  py::object now;    // what a call runs
  py::object error;  // null: none
};

std::atomic<int> g_running = 0;  // threads of make()
// In a child forked while they ran: their locks, as the cache's and NVRTC's, are held for ever.
std::atomic<bool> g_is_cut_off = false;

void run_make(PyObject* make, std::shared_ptr<Swap> swap) {
  {
    py::gil_scoped_acquire gil;
    try {
      swap->now = py::reinterpret_steal<py::object>(make)();
    } catch (py::error_already_set& error) {
      if (!error.matches(PyExc_SystemExit)) swap->error = error.value();
    }
    swap.reset();  // it may have been the last to hold them
  }
  --g_running;
}

std::shared_ptr<Swap> start(py::object stand_in, py::object make) {
  static const int registered = pthread_atfork(nullptr, nullptr, [] {
    g_is_cut_off = g_is_cut_off || g_running > 0;
    g_running = 0;
  });
  STITCH_CHECK(registered == 0, "pthread_atfork: error " << registered);
  auto swap = std::make_shared<Swap>(Swap{std::move(stand_in), {}});
  if (g_is_cut_off) return swap;
  ++g_running;
  std::thread(run_make, make.release().ptr(), swap).detach();
  return swap;
}

py::object call(const Swap& swap, const py::object& arguments) {
  if (swap.error) {
    PyErr_SetObject(reinterpret_cast<PyObject*>(Py_TYPE(swap.error.ptr())), swap.error.ptr());
    throw py::error_already_set();
  }
  const py::object now = swap.now;  // the other may come while this one runs
  return now(arguments);
}

// Called before the interpreter ends: what threads use is taken down afterwards.
void stop_threads() {
  if (g_running == 0) return;
  is_stopping = true;
  py::gil_scoped_release no_gil;
  while (g_running > 0) std::this_thread::sleep_for(std::chrono::milliseconds(2));
}

}  // namespace

void bind_meanwhile(py::module_& module) {
  py::class_<Swap, std::shared_ptr<Swap>>(module, "Meanwhile")
      .def(py::init(&start), py::arg("stand_in"), py::arg("make"))
      .def("__call__", &call)
      .def_static("running", [] { return g_running.load(); }, "Threads that still make kernels.");
  py::module_::import("atexit").attr("register")(py::cpp_function(&stop_threads));
}

}  // namespace stitch
