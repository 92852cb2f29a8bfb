// Program: what one compiled graph does per call, as data.
//
// Buffers name every tensor the program touches; steps run in order.  Nothing here allocates
// strings or reads settings while running.  All sizes are Dims over the graph's symbols and are
// evaluated once per call.  A Program is immutable: any number of threads may run it at once.
#pragma once

#include <variant>

#include "codegen/kernel_source.h"

namespace stitch {

struct BufferTag;
using BufferId = Id<BufferTag>;

struct Buffer {
  enum class Kind {
    kArgument,  // tensor argument `index` of the call
    kFresh,     // a tensor of its own from the pool: graph outputs
    kSlab,      // an intermediate in slot `index` of the slab
    kResult,    // set by a CallStep
    kAlias,     // `base` with this type's sizes and strides, `offset` elements further on
  };
  Kind kind = Kind::kFresh;
  TensorType type;
  int index = -1;
  BufferId base;
  Dim offset;
  // By a kernel, a copy or an alias; what calls alone pass on may have other sizes than traced.
  bool is_addressed = false;
};

class ErrorFlags;  // runtime/error_flags.h
// Not a plain pointer: of those base/archive.h keeps what they point to.
struct SharedFlags : std::shared_ptr<ErrorFlags> {
  using shared_ptr::shared_ptr, shared_ptr::operator=;
};

struct LoadedKernel {
  void* entry = nullptr;    // host function (codegen/kernel_source.h) or CUfunction
  int resident_blocks = 0;  // of a kernel with barriers: the largest cooperative grid, 0: none
};

// What a kernel writes through its error pointer: the constants of device/stitch/load_store.cuh.
enum class KernelFailure { kNone, kIndexOutOfRange, kDivisionByZero, kAssertionFailed, kCount };

struct AllocateStep {  // a fresh buffer, before its first write
  BufferId buffer;
  BufferId over;  // whose memory it takes where nobody else holds it; invalid: nobody's
};
struct IndexedRows {
  Dim rows, indices;
};
// Of KernelSource::pointers, in their order.
struct LaunchPointer {
  BufferId buffer;
  bool keeps_part = false;  // what is stored leaves a part of what is there as it is
};
// What a launch's failures are called.
struct FailureWords {
  std::string kernel;
  bool raises_runtime_error = false;  // where an index is out of range: eager's type of error
  // By failure: the ops it is of, "aten.embedding.default at model.py:31", and what they assert.
  std::array<std::string, static_cast<size_t>(KernelFailure::kCount)> ops = {};
};
struct LaunchStep {
  int kernel;
  std::vector<LaunchPointer> pointers = {};
  Dim bytes = {};  // of all that the pointers reach: decides whether threads pay
  // What it indexes: none where there are indices, which no address is safe for, is out of range.
  std::vector<IndexedRows> indexed = {};
  int flag = -1;                           // its word of `flags`; -1 for kernels that cannot fail
  FailureWords failures = FailureWords();  // with {} archives of Step crash GCC 12
};
struct CallStep {
  int64_t call;  // row of the host's call table; below 0: row -1 - call of Program::made_calls
  std::vector<BufferId> inputs = {};
  std::vector<BufferId> outputs = {};  // by position in the result; invalid: nobody reads it
  bool stores_over = false;  // its first input: a result too, which nobody reads afterwards
};
struct CopyStep {  // to.copy_(from)
  BufferId from, to;
};
struct ReleaseStep {  // the tensor's last use is past
  BufferId buffer;
};
using Step = std::variant<AllocateStep, LaunchStep, CallStep, CopyStep, ReleaseStep>;

struct ProgramOutput {
  using Kind = GraphOutput::Kind;
  Kind kind = Kind::kNone;
  BufferId buffer;
  Dim integer;
};

struct Program {
  bool on_cuda = false;
  int argument_count = 0;
  std::vector<int> integer_positions;  // arguments that are integers: the symbols' inputs
  SymbolTable symbols;
  std::vector<Buffer> buffers;
  std::vector<std::vector<BufferId>> slots;  // slab slots: lifetimes within one never overlap
  std::vector<KernelSource> sources;         // of the kernels
  std::vector<LoadedKernel> kernels;
  std::vector<Node> made_calls;  // for which the host has no row (ops/library_calls.h)
  std::vector<Step> steps;
  std::vector<ProgramOutput> outputs;
  std::vector<BufferId> stored_arguments;  // kernels store into these, instead of a CopyStep
  SharedFlags flags;                       // CUDA, once loaded: of launches that may fail
};

// The buffer whose memory it is: of an alias its base, of a base that is one the base of that.
BufferId memory_of(const Program& program, BufferId id);

// Bytes from the first element to behind the last that the type reaches; 0 without elements.
int64_t storage_bytes(const TensorType& type, const std::vector<int64_t>& symbols);

std::string to_string(const Program& program);

}  // namespace stitch
