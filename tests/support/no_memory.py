"""Allocations of Python objects that fail, one at a time."""

import ctypes
import shlex
import subprocess
import sysconfig

from torch_stitch import _core

# Of this thread's: others may hold the interpreter in between.
SOURCE = """
#include <Python.h>
#include <utility>
static PyMemAllocatorEx real;
static thread_local int left = 0;
static bool fails() { return left > 0 && --left == 0; }
static void* allocate(void* context, size_t size) {
  return fails() ? nullptr : real.malloc(context, size);
}
static void* clear(void* context, size_t count, size_t size) {
  return fails() ? nullptr : real.calloc(context, count, size);
}
static void* resize(void* context, void* held, size_t size) {
  return fails() ? nullptr : real.realloc(context, held, size);
}
extern "C" void install() {
  PyMem_GetAllocator(PYMEM_DOMAIN_OBJ, &real);
  PyMemAllocatorEx own = {real.ctx, allocate, clear, resize, real.free};
  PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &own);
}
extern "C" void restore() { PyMem_SetAllocator(PYMEM_DOMAIN_OBJ, &real); }
extern "C" int fail_at(int n) { return std::exchange(left, n); }
"""


class NoMemory:
    """`with NoMemory(folder) as memory`: memory.fail_at(n) lets the n-th allocation from there
    fail, and says how many were left until one did."""

    def __init__(self, folder):
        source, library = folder / "no_memory.cpp", folder / "no_memory.so"
        source.write_text(SOURCE)
        compiler = shlex.split(_core.get_option({}, "cxx"))
        headers = sysconfig.get_paths()["include"]
        flags = ["-shared", "-fPIC", "-I", headers, "-o", library, source]
        subprocess.run([*compiler, *flags], check=True)
        self.library = ctypes.PyDLL(library)

    def __enter__(self):
        self.library.install()
        return self.library

    def __exit__(self, *_):
        self.library.fail_at(0)
        self.library.restore()
