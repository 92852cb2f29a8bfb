#include "base/error.h"

#include "base/words.h"

namespace stitch {

static std::vector<std::string>& context_frames() {
  thread_local std::vector<std::string> frames;
  return frames;
}

static std::string with_context(std::string message) {
  const auto& frames = context_frames();
  for (auto frame = frames.rbegin(); frame != frames.rend(); ++frame) message += "\n  " + *frame;
  return message;
}

Error::Error(const std::string& message) : std::runtime_error(with_context(message)) {}

Verdict Verdict::no(int rule, std::string why, std::string remedy) {
#define STITCH_RULE(number, name, own_why, own_remedy) \
  if (rule == number) {                                \
    if (why.empty()) why = own_why;                    \
    if (remedy.empty()) remedy = own_remedy;           \
  }
#include "base/rules.def"
#undef STITCH_RULE
  return {false, rule, std::move(why), std::move(remedy)};
}

ErrorContext::ErrorContext(std::string frame) { context_frames().push_back(std::move(frame)); }
ErrorContext::~ErrorContext() { context_frames().pop_back(); }

void throw_check_failed(const char* file, int line, const char* condition,
                        const std::string& message) {
  const std::string_view path = file;
  throw InternalError(
      concat(message, " [", path.substr(path.rfind('/') + 1), ":", line, ": ", condition, "]"));
}

}  // namespace stitch
