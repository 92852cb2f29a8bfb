#include <bit>

#include "base/hash.h"
#include "base/verify.h"
#include "base/words.h"
#include "stage/schedule.h"
#include "support/verify.h"

namespace stitch {

// Of the text without the lines around it, and without the name.
std::string hash_of(const std::string& text) {
  const size_t begin = text.find('\n') + 1, macro = text.find("STITCH_KERNEL(");
  const size_t frame = text.find(')', macro) + 1, end = text.rfind("}  // namespace stitch\n");
  return sha256_hex(text.substr(begin, macro - begin) + text.substr(frame, end - frame))
      .substr(0, 10);
}

static bool has_brackets(const std::string& text) {
  std::string open;
  for (const char c : text) {
    const size_t opens = std::string_view("({[").find(c), closes = std::string_view(")}]").find(c);
    if (opens < 3) open.push_back(")}]"[opens]);
    if (closes > 2) continue;
    if (!open.ends_with(c)) return false;
    open.pop_back();
  }
  return open.empty();
}

void verify_source(const KernelSource& source, const DeviceSpec& device) {
  const auto hold = rules_of("source", source.name);
  const std::vector<KernelArgument>& pointers = source.pointers;
  const auto has = [](const std::string& text, const std::string& part) {
    return text.find(part) != std::string::npos;
  };
  const std::string macro = concat("STITCH_KERNEL(", source.name, ", ", source.threads, ", ");
  hold(has(source.text, macro), "kernel-is-named");
  const std::string frame = source.text.substr(source.text.find(macro));
  const std::string list = frame.substr(0, frame.find('\n'));
  // A kernel of the host finds its arguments in arrays.
  const auto has_parameter = [&](const char* name, size_t i) {
    return device.is_cuda ? has(list, concat(name, i, ", ")) : has(frame, concat(name, i, " = "));
  };
  hold(source.name.ends_with("_" + hash_of(source.text)), "name-has-hash");
  hold(has_brackets(source.text), "brackets-match");
  hold(std::ranges::all_of(source.tensors, [&](size_t at) { return at < pointers.size(); }),
       "tensor-is-pointer");
  for (size_t i = 0; i <= pointers.size(); ++i) {
    const bool is_tabled = i < pointers.size() && pointers[i].is_tabled;
    const int alignment = i < pointers.size() ? pointers[i].alignment_bytes : 1;
    hold(has_parameter(" p", i) == (i < pointers.size() && !is_tabled), "pointer-is-parameter");
    // What is stored over an input is where the table has that.
    hold(!is_tabled || pointers[i].is_store || std::ranges::count(source.tensors, i) > 0,
         "tabled-is-in-table");
    hold(std::has_single_bit(static_cast<unsigned>(alignment)), "alignment-power-of-two");
  }
  for (size_t i = 0; i <= source.sizes.size(); ++i)
    hold(has_parameter("i64 n", i) == (i < source.sizes.size()), "size-is-parameter");
  hold(has(list, "i32 end_phase, ") == (source.phases.size() > 1), "phases-are-parameters");
  hold(has(list, "u32* barrier, ") == (source.phases.size() > 1 || source.finishes),
       "barrier-is-parameter");
  hold(source.tensors.empty() || has(source.text, concat("at[", source.tensors.size(), "];")),
       "table-is-parameter");
  hold(std::has_single_bit(static_cast<unsigned>(source.threads)) &&
           source.threads <= (device.is_cuda ? kMostThreads : 1),
       "threads-of-block");
  hold(!device.is_cuda || source.shared_bytes <= device.shared_bytes_per_block,
       "shared-within-device");
  hold(std::ranges::all_of(source.in_turns, [&](size_t p) { return p < source.phases.size(); }),
       "turns-of-phase");
}

}  // namespace stitch
