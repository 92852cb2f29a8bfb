#include "base/stage.h"

#include <algorithm>
#include <sstream>

#include "base/files.h"
#include "base/log.h"

namespace stitch {

double StageTimes::us(const std::string& name) const {
  double total = 0;
  for (const StageTime& row : rows) total += row.name == name ? row.us : 0;
  return total;
}

bool is_dumped(const StageLog& log, const std::string& stage) {
  std::string list = log.dump;
  std::replace(list.begin(), list.end(), ',', ' ');
  std::istringstream names(list);
  for (std::string name; names >> name;) {
    if (name == stage || name == "all") return true;
  }
  return false;
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
