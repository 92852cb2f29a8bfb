#include "base/stage.h"

#include <algorithm>
#include <chrono>

#include "base/error.h"
#include "base/files.h"
#include "base/log.h"
#include "base/words.h"

namespace stitch {

void run_stage(const std::string& name, StageLog& log, const std::function<void()>& work) {
  check_stopping();
  const ErrorContext context("while running stage " + name);
  const auto start = std::chrono::steady_clock::now();
  work();
  const std::chrono::duration<double, std::micro> elapsed =
      std::chrono::steady_clock::now() - start;
  log.times.push_back({name, elapsed.count()});
}

void write_dump(const StageLog& log, const std::string& stage,
                const std::function<std::string()>& print) {
  size_t position = log.times.size();  // of the stage's last run, from 1; 0 if it has not ended
  while (position > 0 && log.times[position - 1].name != stage) --position;
  const std::vector<std::string> names = split_words(log.dump);
  const bool is_dumped = std::ranges::any_of(
      names, [&](const std::string& name) { return name == stage || name == "all"; });
  if (position == 0 || !is_dumped) return;
  const std::string name = log.subject + "." + std::to_string(position) + "." + stage + ".txt";
  if (write_text_file(log.dump_dir, name, print()).empty())
    warn_once("dump " + log.dump_dir, "cannot write dumps to '" + log.dump_dir +
                                          "'; set dump_dir to a directory you may write to");
}

}  // namespace stitch
