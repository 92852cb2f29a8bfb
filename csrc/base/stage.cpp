#include "base/stage.h"

#include <algorithm>

#include "base/files.h"
#include "base/log.h"
#include "base/words.h"

namespace stitch {

namespace {

// Of the last run of a stage, from 1; 0 if it has not ended.
size_t position_of(const StageLog& log, const std::string& stage) {
  size_t position = log.times.size();
  while (position > 0 && log.times[position - 1].name != stage) --position;
  return position;
}

}  // namespace

bool is_dumped(const StageLog& log, const std::string& stage) {
  const std::vector<std::string> names = split_words(log.dump);
  return position_of(log, stage) > 0 && std::ranges::any_of(names, [&](const std::string& name) {
           return name == stage || name == "all";
         });
}

void write_dump(const StageLog& log, const std::string& stage, const std::string& text) {
  const std::string number = std::to_string(position_of(log, stage));
  const std::string name = log.subject + "." + number + "." + stage + ".txt";
  if (write_text_file(log.dump_dir, name, text).empty()) {
    warn_once("dump " + log.dump_dir, "cannot write dumps to '" + log.dump_dir +
                                          "'; set dump_dir to a directory you may write to");
  }
}

}  // namespace stitch
