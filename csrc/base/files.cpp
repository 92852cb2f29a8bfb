#include "base/files.h"

#include <dirent.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <fstream>

#include "base/error.h"

namespace stitch {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kTempPrefix = ".tmp-";
constexpr int64_t kTouchInterval_s = 3600;   // entries' times are their last use, to the hour
constexpr int64_t kStaleTemp_s = 24 * 3600;  // younger ones may belong to a living process

// Only names we make: nothing that could leave the directory.
void check_name(const std::string& name) {
  const bool is_plain = !name.empty() && name[0] != '.' && name.find('/') == std::string::npos &&
                        name.find('\0') == std::string::npos;
  STITCH_CHECK(is_plain, "'" << name << "' is not an entry name");
}

std::string unique_temp_name() {
  static std::atomic<uint64_t> counter{0};
  uint64_t random = 0;
  // Uniqueness within the process is the counter's; across processes and hosts the random bits'.
  if (getrandom(&random, sizeof random, GRND_NONBLOCK) != sizeof random) random = time(nullptr);
  return std::string(kTempPrefix) + std::to_string(getpid()) + "-" + std::to_string(random) + "-" +
         std::to_string(counter++);
}

int open_retrying(int directory, const std::string& name, int flags, mode_t mode = 0) {
  return TEMP_FAILURE_RETRY(openat(directory, name.c_str(), flags | O_NOFOLLOW | O_CLOEXEC, mode));
}

// Reads exactly `size` bytes; a file that shrinks meanwhile fails.
bool read_all(int fd, size_t size, std::string& bytes) {
  bytes.resize(size);
  size_t done = 0;
  while (done < size) {
    const ssize_t got = TEMP_FAILURE_RETRY(::read(fd, bytes.data() + done, size - done));
    if (got <= 0) return false;
    done += static_cast<size_t>(got);
  }
  return true;
}

struct EntryInfo {
  std::string name;
  int64_t size_bytes = 0, mtime_s = 0;
};

// Everything in the directory but directories, temporary files included.
std::vector<EntryInfo> list_files(int directory) {
  std::vector<EntryInfo> files;
  Descriptor fd(open_retrying(directory, ".", O_RDONLY | O_DIRECTORY));
  DIR* stream = fd ? fdopendir(fd.get()) : nullptr;
  if (!stream) return files;
  fd.release();  // the stream closes it
  while (const dirent* item = readdir(stream)) {
    struct stat info{};
    if (fstatat(directory, item->d_name, &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    if (S_ISDIR(info.st_mode)) continue;
    files.push_back({item->d_name, info.st_size, info.st_mtime});
  }
  closedir(stream);
  return files;
}

// Opening a directory: a walk from the root that checks every directory on the way.

constexpr int kOpenFlags = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC;

// In a user namespace the files of ids outside it show an overflow id that no process here has.
bool is_outside_namespace(uid_t owner) {
  constexpr unsigned kOverflowUid = 65534;  // /proc/sys/kernel/overflowuid, the kernel's default
  if (owner != kOverflowUid) return false;
  std::ifstream map("/proc/self/uid_map");
  for (unsigned first, outside, count; map >> first >> outside >> count;)
    if (owner >= first && owner - first < count) return false;
  return map.eof();  // read to its end
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
  return (info.st_mode & S_IWGRP) && !is_private_group ? "is writable by its group" : "";
}

// Could another user have written it, file or directory?
std::string find_write_risk(const struct stat& info) {
  if (info.st_uid != geteuid()) return "belongs to another user";
  if (info.st_mode & (S_IWGRP | S_IWOTH)) return "is writable by others (chmod go-w allows it)";
  return "";
}

std::string find_risk(const Descriptor& directory, std::string (*of_open)(const struct stat&)) {
  struct stat info{};
  if (directory && fstat(directory.get(), &info) == 0) return of_open(info);
  if (errno == ELOOP || errno == ENOTDIR) return "is a symbolic link or no directory";
  return std::string("cannot be opened: ") + std::strerror(errno);
}

// The parent with symbolic links resolved, as far as it exists; the rest as written.
std::optional<fs::path> resolve_parent(const fs::path& parent) {
  std::error_code error;
  fs::path existing = parent, missing;
  while (!fs::exists(existing, error) && existing.has_relative_path()) {
    missing = existing.filename() / missing;
    existing = existing.parent_path();
  }
  fs::path resolved = fs::canonical(existing, error);
  if (error) return std::nullopt;
  for (const fs::path& part : missing) {
    if (part == "..") return std::nullopt;
    if (!part.empty()) resolved /= part;
  }
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

Descriptor::~Descriptor() {
  if (fd_ >= 0) close(fd_);
}

bool write_all(int fd, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t written = TEMP_FAILURE_RETRY(::write(fd, bytes.data(), bytes.size()));
    if (written <= 0) return false;
    bytes.remove_prefix(static_cast<size_t>(written));
  }
  return true;
}

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
  std::string risk;
  for (const fs::path& part : (*parent / name).relative_path()) {
    risk = find_risk(fd, find_ancestor_risk);
    if (!risk.empty()) break;
    current /= part;
    fd = open_or_create(fd.get(), part);
  }
  if (risk.empty()) risk = find_risk(fd, find_write_risk);
  if (risk.empty()) return PrivateDirectory(std::move(fd), current);
  why = "'" + current.string() + "' " + risk;
  return std::nullopt;
}

std::optional<std::string> PrivateDirectory::read_entry(const std::string& name,
                                                        size_t max_bytes) const {
  check_name(name);
  // Non-blocking: opening a FIFO or a device must not wait.
  const Descriptor fd(open_retrying(fd_.get(), name, O_RDONLY | O_NONBLOCK | O_NOCTTY));
  struct stat info{};
  if (!fd || fstat(fd.get(), &info) != 0) {
    const bool is_planted = errno == ELOOP || errno == ENXIO || errno == ENODEV;
    return is_planted ? std::optional("") : std::nullopt;
  }
  const auto size = static_cast<size_t>(info.st_size);
  // Without a name: replaced since it was opened.
  const bool is_alone = S_ISREG(info.st_mode) && info.st_nlink <= 1;
  if (!is_alone || !find_write_risk(info).empty() || size > max_bytes) return "";
  std::string bytes;
  if (!read_all(fd.get(), size, bytes)) return std::nullopt;
  // Clocks of machines that share a home may differ: a time in the future is refreshed as well.
  const int64_t age_s = static_cast<int64_t>(time(nullptr)) - info.st_mtime;
  if (age_s > kTouchInterval_s || age_s < -kTouchInterval_s) futimens(fd.get(), nullptr);
  return bytes;
}

std::string PrivateDirectory::write_entry(const std::string& name, std::string_view bytes) const {
  check_name(name);
  const std::string temp = unique_temp_name();
  const Descriptor fd(open_retrying(fd_.get(), temp, O_WRONLY | O_CREAT | O_EXCL, 0600));
  if (!fd) return std::strerror(errno);
  const bool is_written = fchmod(fd.get(), 0600) == 0 && write_all(fd.get(), bytes) &&
                          TEMP_FAILURE_RETRY(fsync(fd.get())) == 0 &&
                          renameat(fd_.get(), temp.c_str(), fd_.get(), name.c_str()) == 0;
  if (is_written) return "";
  const std::string why = std::strerror(errno);
  unlinkat(fd_.get(), temp.c_str(), 0);
  return why;
}

void PrivateDirectory::set_aside(const std::string& name) const {
  check_name(name);
  renameat(fd_.get(), name.c_str(), fd_.get(), unique_temp_name().c_str());
}

void PrivateDirectory::evict(int64_t max_bytes, size_t max_entries) const {
  std::vector<EntryInfo> files = list_files(fd_.get());
  const int64_t now_s = time(nullptr);
  for (const EntryInfo& file : files) {
    const bool is_stale = now_s - file.mtime_s > kStaleTemp_s;
    if (file.name.starts_with(kTempPrefix) && is_stale) unlinkat(fd_.get(), file.name.c_str(), 0);
  }
  std::erase_if(files, [](const EntryInfo& file) { return file.name[0] == '.'; });
  std::ranges::sort(files, std::greater(), &EntryInfo::mtime_s);
  int64_t kept_bytes = 0;
  size_t kept = 0;
  for (const EntryInfo& file : files) {
    if (kept < max_entries && kept_bytes + file.size_bytes <= max_bytes) {
      ++kept;
      kept_bytes += file.size_bytes;
    } else {
      unlinkat(fd_.get(), file.name.c_str(), 0);  // vanished already: as good
    }
  }
}

std::vector<std::string> list_newest_first(const std::string& directory,
                                           const std::string& prefix) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator item(directory, error), end; !error && item != end;
       item.increment(error))
    if (item->path().filename().string().starts_with(prefix)) found.push_back(item->path());
  std::ranges::sort(found, std::greater());
  return found;
}

WorkDirectory::WorkDirectory() {
  std::error_code error;
  const fs::path base = fs::temp_directory_path(error);
  std::string name = (error ? fs::path("/tmp") : base) / "torch_stitch_XXXXXX";
  if (mkdtemp(name.data())) path = name;
}

WorkDirectory::~WorkDirectory() {
  std::error_code error;
  if (!path.empty()) fs::remove_all(path, error);
}

std::string write_text_file(const std::string& directory, const std::string& name,
                            std::string_view text) {
  std::error_code error;
  fs::create_directories(directory, error);
  const std::string path = directory + "/" + name;
  const Descriptor fd(open_retrying(AT_FDCWD, path, O_WRONLY | O_CREAT | O_TRUNC, 0600));
  return fd && write_all(fd.get(), text) ? path : "";
}

}  // namespace stitch
