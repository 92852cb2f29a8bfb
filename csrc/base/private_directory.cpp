// Opening a PrivateDirectory: the walk from the root that checks every directory on the way.
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>

#include "base/files.h"

namespace stitch {
namespace {

namespace fs = std::filesystem;

constexpr int kOpenFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// In a user namespace the files of ids outside it show an overflow id that no process here has.
bool is_outside_namespace(uid_t owner) {
  constexpr unsigned kOverflowUid = 65534;  // /proc/sys/kernel/overflowuid, the kernel's default
  if (owner != kOverflowUid) return false;
  std::FILE* map = std::fopen("/proc/self/uid_map", "re");
  if (!map) return false;
  bool is_mapped = false;
  unsigned first, outside, count;
  while (std::fscanf(map, "%u %u %u", &first, &outside, &count) == 3)
    is_mapped = is_mapped || (owner >= first && owner - first < count);
  std::fclose(map);
  return !is_mapped;
}

// Could another user rename or replace what lies below this ancestor?
std::string find_ancestor_risk(const struct stat& info) {
  const uid_t self = geteuid();
  if (info.st_uid != 0 && info.st_uid != self && !is_outside_namespace(info.st_uid))
    return "belongs to another user";
  if (info.st_mode & S_ISVTX) return "";  // sticky: others can only touch what is theirs
  if (info.st_mode & S_IWOTH) return "is writable by everyone";
  // A group with the user's own number is, by convention, the user's private group.
  const bool is_private_group = info.st_gid == getegid() && info.st_gid == self;
  if ((info.st_mode & S_IWGRP) && !is_private_group) return "is writable by its group";
  return "";
}

std::string find_directory_risk(const struct stat& info) {
  if (info.st_uid != geteuid()) return "belongs to another user";
  if (info.st_mode & (S_IWGRP | S_IWOTH)) return "is writable by others (chmod go-w allows it)";
  return "";
}

std::string describe_open_failure() {
  if (errno == ELOOP || errno == ENOTDIR) return "is a symbolic link or no directory";
  return std::string("cannot be opened: ") + std::strerror(errno);
}

std::string find_risk(const Descriptor& directory, std::string (*of_open)(const struct stat&)) {
  struct stat info{};
  if (!directory || fstat(directory.get(), &info) != 0) return describe_open_failure();
  return of_open(info);
}

// The parent with symbolic links resolved, as far as it exists; the rest as written.
std::optional<fs::path> resolve_parent(const fs::path& parent) {
  std::error_code error;
  fs::path existing = parent, missing;
  while (!fs::exists(existing, error) && existing.has_relative_path()) {
    missing = existing.filename() / missing;
    existing = existing.parent_path();
  }
  for (const fs::path& part : missing)
    if (part == "..") return std::nullopt;
  fs::path resolved = fs::canonical(existing, error);
  if (error) return std::nullopt;
  for (const fs::path& part : missing)
    if (!part.empty()) resolved /= part;
  return resolved;
}

// Opens `name` below `parent` and creates it if it is missing; only descriptors, no paths.
Descriptor open_or_create(int parent, const std::string& name) {
  Descriptor fd(openat(parent, name.c_str(), kOpenFlags));
  if (fd || errno != ENOENT) return fd;
  const bool is_created = mkdirat(parent, name.c_str(), 0700) == 0;
  if (!is_created && errno != EEXIST) return fd;
  fd = Descriptor(openat(parent, name.c_str(), kOpenFlags));
  if (fd && is_created && fchmod(fd.get(), 0700) != 0) return Descriptor();  // against odd umasks
  return fd;
}

}  // namespace

std::optional<PrivateDirectory> PrivateDirectory::open(const std::string& path, std::string& why) {
  std::error_code error;
  fs::path absolute = fs::absolute(path, error);
  if (!absolute.has_filename()) absolute = absolute.parent_path();  // "dir/"
  const std::string name = absolute.filename();
  const auto parent = path.empty() || error ? std::nullopt : resolve_parent(absolute.parent_path());
  if (!parent || name.empty() || name == "." || name == "..") {
    why = "'" + path + "' is not a path of a directory";
    return std::nullopt;
  }
  fs::path current = "/";
  Descriptor fd(::open("/", kOpenFlags));
  const fs::path below_root = (*parent / name).relative_path();
  std::string risk;
  for (const fs::path& part : below_root) {
    risk = find_risk(fd, find_ancestor_risk);
    if (!risk.empty()) break;
    current /= part;
    fd = open_or_create(fd.get(), part);
  }
  if (risk.empty()) risk = find_risk(fd, find_directory_risk);
  if (risk.empty()) return PrivateDirectory(std::move(fd), current);
  why = "'" + current.string() + "' " + risk;
  return std::nullopt;
}

}  // namespace stitch
