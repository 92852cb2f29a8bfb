// run: one call of a Program.
//
// The only code of the project on the hot path: it allocates no strings and reads no settings.
#pragma once

#include "runtime/program.h"

namespace stitch {

// The little that the executor needs of the tensor library (bindings/ implements it).
// A Frame holds the tensors of one running call by BufferId; the executor only sees addresses.
// It knows the Program and holds the call's arguments when the executor gets it.
class Frame {
 public:
  virtual ~Frame() = default;
  // Comes first.  The arguments must have the sizes of their buffers' types; one with other strides
  // is replaced by a copy with the right ones.  `symbols` outlive the frame; calls define some.
  virtual void start(std::vector<int64_t>& symbols) = 0;
  // One block of bytes for the intermediates; its tensors share this storage.
  virtual void allocate_slab(int64_t bytes) = 0;
  virtual void place_in_slab(BufferId id, int64_t offset_bytes) = 0;
  // A tensor of its own from the caching pool of the program's device; in the memory of `over`,
  // which is still read, where that is as many bytes and nobody else holds it.
  virtual void allocate(BufferId id, BufferId over) = 0;
  // A copy of the tensor at an aligned address replaces it for the rest of the call.
  virtual void align(BufferId id, int bytes) = 0;
  // Gives an argument that `start` or `align` replaced the contents of its replacement.
  virtual void write_back(BufferId id) = 0;
  virtual void* data(BufferId id) = 0;
  virtual void release(BufferId id) = 0;
  virtual void copy(BufferId from, BufferId to) = 0;
  // Runs row `step.call` of the call table; results replace the outputs, restrided where a
  // result's strides are not those its buffer's type promises.
  virtual void call(const CallStep& step) = 0;
  // Runs body over [0, count) in pieces of at least `grain` on the library's own threads.
  virtual void parallel_for(int64_t count, int64_t grain,
                            const std::function<void(int64_t, int64_t)>& body) = 0;
  virtual void* stream() = 0;  // CUDA: the current stream
  // CUDA: the counter at which the blocks of this call's launches meet, device/stitch/grid.cuh.
  // Launches that may run at once have different ones.
  virtual void* barrier() = 0;
};

// Runs all steps.  Afterwards the frame holds the tensors of program.outputs; returns the values of
// the program's symbols, for its integer outputs.  `integers`: the arguments at integer_positions.
std::vector<int64_t> run(const Program& program, Frame& frame,
                         const std::vector<int64_t>& integers);

}  // namespace stitch
