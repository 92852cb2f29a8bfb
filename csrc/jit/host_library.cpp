#include "jit/host_library.h"

#include <dlfcn.h>
#include <sys/mman.h>

#include <map>
#include <mutex>

#include "base/error.h"
#include "base/files.h"
#include "base/fork_mutex.h"
#include "base/hash.h"

namespace stitch {
namespace {

// dlopen takes a path it has seen for the object it has loaded, and numbers of closed descriptors
// come back: "./" and "/" in front of the number spell a serial number that changes nothing else.
std::string unique_descriptor_path(int fd, unsigned serial) {
  std::string path = "/proc/self/fd/";
  for (; serial; serial >>= 1) path += serial & 1 ? "./" : "/";
  return path + std::to_string(fd);
}

void* open_from_memory(std::string_view bytes, unsigned serial, std::string& why) {
  const Descriptor fd(memfd_create("stitch_kernels", MFD_CLOEXEC));
  if (!fd || !write_all(fd.get(), bytes)) {
    why = "no anonymous memory file";
    return nullptr;
  }
  void* handle = dlopen(unique_descriptor_path(fd.get(), serial).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) why = dlerror();
  return handle;
}

void* open_from_file(std::string_view bytes, std::string& why) {
  const WorkDirectory work;  // the mapping outlives its name
  if (work.path.empty()) {
    why += "; no temporary directory";
    return nullptr;
  }
  const std::string path = write_text_file(work.path, "kernels.so", bytes);
  void* handle = path.empty() ? nullptr : dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!handle) why += path.empty() ? "; cannot write " + work.path : std::string("; ") + dlerror();
  return handle;
}

}  // namespace

void* load_host_function(std::string_view bytes, const std::string& name) {
  static auto& mutex = *new ForkMutex;
  static auto* handles = new std::map<std::string, void*>;
  static unsigned serial = 0;
  std::lock_guard lock(mutex);
  void*& handle = (*handles)[sha256_hex(bytes)];
  std::string why;
  if (!handle) handle = open_from_memory(bytes, ++serial, why);
  if (!handle) handle = open_from_file(bytes, why);
  STITCH_CHECK(handle, "the compiled kernels cannot be loaded: " << why);
  void* address = dlsym(handle, name.c_str());
  STITCH_CHECK(address, "the compiled kernels do not export '" << name << "'");
  return address;
}

}  // namespace stitch
