#include "base/log.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include <cstdio>

namespace stitch {
namespace {

// What comes in until it ends in `end`, or nothing more does within the time.
std::string read_until(int reader, const std::string& end, int wait_ms) {
  std::string text;
  pollfd source = {reader, POLLIN, 0};
  while (!text.ends_with(end) && poll(&source, 1, wait_ms) > 0) {
    char letter = 0;
    if (read(reader, &letter, 1) != 1) break;
    text += letter;
  }
  return text;
}

// What a ProgressLine without delay and one of two seconds write while stderr is `terminal`.
std::string shown_on(int terminal, int reader, int wait_ms) {
  std::fflush(stderr);
  const int saved = dup(STDERR_FILENO);
  dup2(terminal, STDERR_FILENO);
  std::string text;
  {
    const ProgressLine line("compiling", std::chrono::milliseconds(1));
    text = read_until(reader, "compiling", wait_ms);
  }
  text += read_until(reader, "\033[K", wait_ms);
  {
    const ProgressLine line("short");
  }
  text += read_until(reader, "short", wait_ms / 100);
  dup2(saved, STDERR_FILENO);
  close(saved);
  return text;
}

TEST(ProgressLine, ShowsWhatTakesLongOnATerminal) {
  const int reader = posix_openpt(O_RDWR | O_NOCTTY);
  if (reader < 0 || grantpt(reader) || unlockpt(reader)) GTEST_SKIP() << "no terminals here";
  const int terminal = open(ptsname(reader), O_RDWR | O_NOCTTY);
  EXPECT_EQ(shown_on(terminal, reader, 10000), "compiling\r\033[K");
  close(terminal);
  close(reader);
}

TEST(ProgressLine, IsSilentElsewhere) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  EXPECT_EQ(shown_on(ends[1], ends[0], 100), "");
  close(ends[0]);
  close(ends[1]);
}

}  // namespace
}  // namespace stitch
