#include "runtime/program.h"

#include "base/words.h"

namespace stitch {

static std::string to_string(BufferId id) {
  return id.valid() ? "b" + std::to_string(id.value()) : std::string("_");
}

namespace {

std::string describe(const Buffer& buffer) {
  using enum Buffer::Kind;
  static constexpr const char* kNames[] = {"argument ", "fresh", "slot ", "result", "alias of "};
  const std::string name = kNames[static_cast<size_t>(buffer.kind)];
  if (buffer.kind == kArgument || buffer.kind == kSlab) return name + std::to_string(buffer.index);
  if (buffer.kind != kAlias) return name;
  const std::string offset = buffer.offset.is(0) ? "" : " + " + to_string(buffer.offset);
  return name + to_string(buffer.base) + offset;
}

struct StepPrinter {
  const Program& program;

  std::string operator()(const AllocateStep& step) const {
    return "allocate " + to_string(step.buffer) +
           (step.over.valid() ? " over " + to_string(step.over) : "");
  }
  std::string operator()(const LaunchStep& step) const {
    const KernelSource& source = program.sources[step.kernel];
    const std::string sizes = join(source.sizes, ", ");
    return "launch " + source.name + "<" + join(source.phases, ", ") + ">(" +
           join(step.pointers, ", ", &LaunchPointer::buffer) + (sizes.empty() ? "" : "; " + sizes) +
           ")";
  }
  std::string operator()(const CallStep& step) const {
    const std::string call =
        step.call < 0 ? program.made_calls[-1 - step.call].name : std::to_string(step.call);
    return join(step.outputs, ", ") + (step.outputs.empty() ? "" : " = ") + "call " + call + "(" +
           join(step.inputs, ", ") + ")" + (step.stores_over ? " over its first" : "");
  }
  std::string operator()(const CopyStep& step) const {
    return "copy " + to_string(step.from) + " to " + to_string(step.to);
  }
  std::string operator()(const ReleaseStep& step) const {
    return "release " + to_string(step.buffer);
  }
};

std::string describe_output(const ProgramOutput& output) {
  if (output.kind == ProgramOutput::Kind::kTensor) return to_string(output.buffer);
  return output.kind == ProgramOutput::Kind::kInteger ? to_string(output.integer) : "none";
}

}  // namespace

BufferId memory_of(const Program& program, BufferId id) {
  while (program.buffers[id.index()].base.valid()) id = program.buffers[id.index()].base;
  return id;
}

int64_t storage_bytes(const TensorType& type, const std::vector<int64_t>& symbols) {
  int64_t last = 0;
  for (size_t d = 0; d < type.shape.size(); ++d) {
    const int64_t extent = evaluate(type.shape[d], symbols);
    if (extent == 0) return 0;
    last += (extent - 1) * evaluate(type.strides[d], symbols);
  }
  return (last + 1) * info(type.dtype).bytes;
}

std::string to_string(const Program& program) {
  std::ostringstream text;
  text << (program.on_cuda ? "cuda" : "cpu") << " program of " << program.argument_count
       << " arguments\n";
  for (size_t i = 0; i < program.buffers.size(); ++i) {
    const Buffer& buffer = program.buffers[i];
    text << "b" << i << ": " << to_string(buffer.type) << " " << describe(buffer) << "\n";
  }
  for (const Step& step : program.steps) text << std::visit(StepPrinter{program}, step) << "\n";
  text << "return " << join(program.outputs, ", ", describe_output) << "\n";
  return text.str();
}

}  // namespace stitch
