// Files that only this user may have written: a private directory, opened once, and its entries.
//
// Everything goes relative to the descriptor of the directory, so a path that is swapped after the
// check changes nothing.  Nothing here throws on what the file system does: failures are values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace stitch {

// An open file descriptor with one owner.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(other.release()) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);  // the old one closes with `other`
    return *this;
  }
  ~Descriptor();
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

// Through interruptions and partial writes; false where the file takes no more.
bool write_all(int fd, std::string_view bytes);

// A fresh directory that only this user can enter; removed with what is in it.
struct WorkDirectory {
  std::string path;  // empty: there is none

  WorkDirectory();
  ~WorkDirectory();
  WorkDirectory(const WorkDirectory&) = delete;
};

// Paths of what the directory holds under names that begin so: libx.so.13 before libx.so.12.
std::vector<std::string> list_newest_first(const std::string& directory,
                                           const std::string& prefix = "");

class PrivateDirectory {
 public:
  // Opens `path` and creates what is missing (mode 0700).  Refused: the directory itself a symlink,
  // owned by another user, or writable by group or others; an ancestor that another user could
  // swap.  `why` then says what to change.
  static std::optional<PrivateDirectory> open(const std::string& path, std::string& why);

  // A hit refreshes the file's time, at most hourly.  Nothing where the entry is not there, or not
  // readable now: leave the name alone.  No bytes where it is there, but no file of ours: symlink,
  // FIFO, hard link, foreign, too large.
  std::optional<std::string> read_entry(const std::string& name, size_t max_bytes) const;
  // Atomic and durable: temporary file, fsync, rename.  Returns an empty string, or what failed.
  std::string write_entry(const std::string& name, std::string_view bytes) const;
  // Moves a bad entry out of the way, whatever it is; eviction removes it after a day.
  void set_aside(const std::string& name) const;
  // Removes least recently used entries beyond the caps, and temporary files older than a day.
  void evict(int64_t max_bytes, size_t max_entries) const;
  const std::string& path() const { return path_; }

 private:
  PrivateDirectory(Descriptor fd, std::string path) : fd_(std::move(fd)), path_(std::move(path)) {}
  Descriptor fd_;
  std::string path_;
};

// A file the user asked for (dumps, sources of failed compiles); creates the directory.
// Returns the path written, or an empty string.
std::string write_text_file(const std::string& directory, const std::string& name,
                            std::string_view text);

}  // namespace stitch
