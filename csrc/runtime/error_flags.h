// Words by which a GPU's kernels say that their results mean nothing.
//
// They lie in pinned memory that the device sees too, one word for each launch that may fail; a
// kernel stores a code there (KernelFailure), and nobody waits or copies to read it.  The host
// looks before and after each call, and when check_flags has waited for the device.  With the
// setting check_indices=now each call waits for its own launches.
#pragma once

#include "runtime/driver.h"
#include "runtime/program.h"

namespace stitch {

// A kernel met an index outside of its tensor; the results of the call mean nothing.
struct OutOfRangeError : UserError {
  using UserError::UserError;
};

// OutOfRangeError or FailedCallError: what `code` means for this launch of a kernel.
[[noreturn]] void throw_failure(const FailureWords& launch, int code);

class ErrorFlags {
 public:
  // In the current context.  Null where no launch of the program may fail.
  static std::shared_ptr<ErrorFlags> make(const Program& program, bool waits);

  CudaAddress address(int flag) const { return address_ + sizeof(int32_t) * flag; }
  // Throws what the first word that is set means, and clears it.
  void check();
  // The same, after the launches of this stream; not while it is captured.
  void wait_and_check(CudaHandle stream);
  bool waits() const { return waits_; }

 private:
  friend void check_flags();

  std::vector<FailureWords> launches_;  // by flag
  int32_t* words_ = nullptr;
  CudaAddress address_ = 0;
  CudaResult (*synchronize_)() = nullptr;  // the device's, or its stand-in's
  bool waits_ = false;
};

// Waits for the device of this thread, then checks the words of every program that is loaded.
void check_flags();

}  // namespace stitch
