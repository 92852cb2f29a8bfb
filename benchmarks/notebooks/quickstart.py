# %% [markdown]
# # Quickstart
#
# `torch_stitch` is a backend of `torch.compile`. It joins the ops between matrix products and
# convolutions, which are limited by memory and launches, into few kernels. This notebook compiles
# a function, compares its result with eager's, shows what is launched, and measures it.

# %%
import torch

import torch_stitch

device = "cuda" if torch.cuda.is_available() else "cpu"

# %% [markdown]
# ## Compile
#
# The middle of attention as it is often written: scale the scores, hide what is masked, normalise
# each row. Eager runs one op after the other, and each reads and writes the whole tensor.


# %%
def attend(scores, mask):
    return (scores * 0.125).masked_fill(mask, float("-inf")).softmax(-1)


scores = torch.randn(4, 12, 256, 256, device=device)
mask = torch.rand(4, 1, 1, 256, device=device) < 0.1

fast = torch.compile(attend, backend="stitch")
difference = (fast(scores, mask) - attend(scores, mask)).abs().max().item()
print(f"largest difference from eager: {difference:.1e}")

# %% [markdown]
# ## What is launched
#
# `explain` plans the function without running it: a line per kernel, below it the ops inside,
# each with the file and line that it comes from (here a number stands for the cell). *MB* are the
# bytes that a kernel reads and writes, *us* is the time that the cost model predicts.

# %%
print(torch_stitch.explain(attend, scores, mask))

# %% [markdown]
# The same for a GPU that need not be in this machine. Its kernels are really compiled, so
# registers and spills are the compiler's.

# %%
print(torch_stitch.explain(attend, scores, mask, target="h200"))

# %% [markdown]
# ## Measure
#
# `benchmark` compiles the function with each backend, once with nothing cached (*cold*) and once
# with what the first time left on disk (*warm*). Then it calls all of them in turn, round by
# round, so that what disturbs the machine disturbs all. Errors are against the same function in
# fp64.

# %%
comparison = torch_stitch.benchmark(attend, scores, mask, seconds=4)
comparison

# %%
comparison.plot()

# %% [markdown]
# Whether a difference is one, or lies inside the noise of this machine, is a rule and not a
# matter of taste: 99 of 100 intervals like this one hold the true ratio of the medians, and only
# where the whole interval lies beyond 2 % is one backend called faster.

# %%
print(comparison.verdict("eager", "stitch"))
print(comparison.verdict("inductor", "stitch"))

# %% [markdown]
# All numbers as a table of pandas, to compute with:

# %%
frame = comparison.to_frame()
frame[["median_ms", "moved_bytes"]] / frame.loc["eager", ["median_ms", "moved_bytes"]]

# %% [markdown]
# ## What was built
#
# Counters of this process. `fallback_ops` are ops that the backend had to leave to torch because
# something in it failed; it warns then.

# %%
torch_stitch.counters()
