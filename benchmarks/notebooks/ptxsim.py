# %% [markdown]
# # ptxsim
#
# A simulator that runs a GPU's kernels on the CPU, warp by warp and under several orders of
# warps, and reports what a GPU hides: races, accesses out of bounds, reads of what nobody wrote.
# No GPU is needed, only NVRTC. This notebook finds a race in a kernel and mends it.

# %%
import pandas as pd
import torch

from torch_stitch import ptxsim

# %% [markdown]
# ## A kernel with a race
#
# Each block sums 128 numbers: threads write to shared memory, then half of them add what the
# other half has, and so on. Something is missing.

# %%
RACY = """extern "C" __global__ void sum_rows(float* out, const float* in) {
  __shared__ float part[128];
  int t = threadIdx.x;
  part[t] = in[blockIdx.x * 128 + t];
  for (int half = 64; half > 0; half /= 2) {
    __syncthreads();
    if (t < half) part[t] += part[t + half];
  }
  if (t == 127) out[blockIdx.x] = part[0];
}
"""

rows = torch.rand(4, 128)


def run(source):
    """The sums, and what was found; argument 1 is only read, argument 0 is written whole."""
    sums = torch.empty(len(rows))
    result = ptxsim.run(source, "sum_rows", len(rows), 128, [sums, rows], inputs=[1], outputs=[0])
    return sums, result


def table(result):
    """The findings with the line of the kernel each is about."""
    shown = [(f.kind, f.line, f.block, f.thread, f.message) for f in result.findings]
    return pd.DataFrame(shown, columns=["kind", "line", "block", "thread", "message"])


# %%
sums, racy = run(RACY)
print(racy)

# %% [markdown]
# The finding names the line and the two threads. The last step is done by thread 0, but thread
# 127 stores the result, in another warp, and nothing makes it wait.

# %%
with pd.option_context("display.max_colwidth", None):
    display(table(racy))  # noqa: F821 - of the notebook
lines = RACY.splitlines()
for line in sorted({finding.line for finding in racy.findings}):
    print(f"line {line}: {lines[line - 1].strip()}")

# %% [markdown]
# ## Mended
#
# The thread that made the sum stores it.

# %%
MENDED = RACY.replace("if (t == 127)", "if (t == 0)")
sums, mended = run(MENDED)
print(mended)
print(f"largest error against torch: {(sums - rows.sum(1)).abs().max().item():.1e}")

# %% [markdown]
# ## A barrier too few
#
# With the barrier gone as well, warps read what others have not written yet.

# %%
_, unordered = run(MENDED.replace("    __syncthreads();\n", ""))
table(unordered)["kind"].value_counts().to_frame()

# %% [markdown]
# ## Out of bounds
#
# Every tensor is a view with bounds, so that one element too far is found although the memory
# behind it exists.

# %%
_, beyond = run(MENDED.replace("+ t];", "+ t + 1];"))
table(beyond)[["kind", "line", "block", "thread"]]

# %% [markdown]
# ## The kernels of a compiled model
#
# With `simulate` a model on CPU tensors runs through the kernels of a GPU, all checks on: a
# defect would be an error here.


# %%
def norm(x):
    return torch.nn.functional.layer_norm(x, (x.shape[-1],))


options = {"target": "h200", "simulate": True, "strict": True}
x = torch.randn(6, 300)
simulated = torch.compile(norm, backend="stitch", options=options)(x)
print(f"largest difference from eager: {(simulated - norm(x)).abs().max().item():.1e}")
