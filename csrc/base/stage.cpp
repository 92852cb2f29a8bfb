#include "base/stage.h"

#include <algorithm>

#include "base/files.h"
#include "base/log.h"
#include "base/words.h"

namespace stitch {

double StageTimes::us(const std::string& name) const {
  double total = 0;
  for (const StageTime& row : rows) total += row.name == name ? row.us : 0;
  return total;
}

bool is_dumped(const StageLog& log, const std::string& stage) {
  const std::vector<std::string> names = split_words(log.dump);
  return std::any_of(names.begin(), names.end(),
                     [&](const std::string& name) { return name == stage || name == "all"; });
}

void write_dump(const StageLog& log, const std::string& stage, const std::string& text) {
  const std::string number = std::to_string(log.times.rows.size());
  const std::string name = log.subject + "." + number + "." + stage + ".txt";
  if (write_text_file(log.dump_dir, name, text).empty()) {
    warn_once("dump " + log.dump_dir, "cannot write dumps to '" + log.dump_dir +
                                          "'; set dump_dir to a directory you may write to");
  }
}

}  // namespace stitch
