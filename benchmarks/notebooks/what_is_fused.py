# %% [markdown]
# # What is fused
#
# A report of `explain`, read line by line: which ops share a kernel, what stays on chip between
# them, why something was not joined, how many bytes move, and how near each kernel is to what
# memory allows. Everything here is planned for an H200, which need not be in this machine.

# %%
import json

import matplotlib.pyplot as plt
import pandas as pd
import torch
import torch.nn.functional as F

import torch_stitch

TARGET = "h200"


# %% [markdown]
# ## The function
#
# A feed-forward block of a transformer: a norm, a product with a GELU behind it, a second
# product, and the residual.


# %%
def feed_forward(x, weight, bias, up, down):
    hidden = F.layer_norm(x, (x.shape[-1],), weight, bias)
    return x + F.gelu(hidden @ up) @ down


width, tokens = 1024, 4096
inputs = (
    torch.randn(tokens, width),
    torch.ones(width),
    torch.zeros(width),
    torch.randn(width, 4 * width) * width**-0.5,
    torch.randn(4 * width, width) * (4 * width) ** -0.5,
)
report = torch_stitch.explain(feed_forward, *inputs, target=TARGET)
print(report)

# %% [markdown]
# ## Kernels
#
# The same numbers as a table. *grid x block* are blocks and threads of a block; *spills* are
# bytes that registers could not hold, and none is what a good kernel has.

# %%
plan = json.loads(report.to_json())
kernels = pd.DataFrame(plan["kernels"])
kernels["ops_inside"] = kernels["ops"].map(len)
columns = ["name", "ops_inside", "grid", "block", "registers", "spill_bytes", "predicted_us"]
kernels[columns]

# %% [markdown]
# Which ops are inside, and from which line of which file each comes:

# %%
for kernel in plan["kernels"]:
    print(kernel["name"])
    for op in kernel["ops"]:
        print(f"    {op['op']:32} {op['location']}")

# %% [markdown]
# ## What stays on chip
#
# How a value passes from one op to the next inside a kernel. *local*: in a register of the same
# thread. *regional*: between the threads of a block, through shared memory. *global*: past a
# barrier of the whole grid. *store*: to memory, for what reads it later.

# %%
for kernel in plan["kernels"]:
    schemes = pd.Series(kernel["scheme"], dtype=str).value_counts().to_dict()
    print(f"{kernel['name']}: {schemes or 'nothing passes'}")

# %% [markdown]
# ## What runs between the kernels
#
# Matrix products are calls of the library; kernels on either side of one stay apart.

# %%
print(pd.DataFrame(plan["library_calls"]).to_string(index=False))

# %% [markdown]
# ## What was not joined
#
# A *cut* names two values, of which one kernel makes the first and another the second, the rule by
# which they are two kernels, and a remedy where there is one. `docs/debugging.md` explains the
# numbers of the rules. Devices differ in what they can join:


# %%
def normalise_columns(x):
    return (x - x.mean(0)) * (x.var(0) + 1e-5).rsqrt(), x.sum()


cuts = []
for target in ("cpu", TARGET):
    other = torch_stitch.explain(normalise_columns, torch.empty(2048, 2048), target=target)
    found = json.loads(other.to_json())
    print(f"{target}: {len(found['kernels'])} kernels")
    cuts += [{"target": target, **cut} for cut in found["cuts"]]
pd.DataFrame(cuts)

# %% [markdown]
# ## Bytes
#
# *compulsory*: what no plan can avoid. *planned*: what these kernels move, again for every pass.
# *unfused*: what one kernel per op would move. *touched* counts the library calls too.

# %%
kinds = ["compulsory", "planned", "touched", "unfused"]
moved = pd.Series({kind: plan[f"bytes_{kind}"] / 1e6 for kind in kinds})
figure, axes = plt.subplots(figsize=(7, 2.2), layout="constrained")
bars = axes.barh(moved.index, moved)
axes.bar_label(bars, fmt=" %.0f")
axes.invert_yaxis()
axes.set_xlim(right=1.12 * moved.max())
axes.set_xlabel("MB")
plt.show()

# %% [markdown]
# ## The roofline
#
# A kernel that is limited by memory takes as long as a plain kernel that moves as many bytes. The
# line is made of such kernels: ReLU on tensors of growing sizes, planned for the same GPU. A
# point on it cannot be faster without moving fewer bytes; one above it is limited by something
# else, such as arithmetic. Beside our plan stands the one with a kernel per op.


# %%
def points(fn, *inputs, policy="auto"):
    """Megabytes and predicted microseconds of each kernel."""
    found = json.loads(torch_stitch.explain(fn, *inputs, target=TARGET, policy=policy).to_json())
    return [(kernel["bytes_planned"] / 1e6, kernel["predicted_us"]) for kernel in found["kernels"]]


roof = [points(torch.relu, torch.empty(1 << size))[0] for size in range(14, 27, 2)]
plans = {
    "a kernel per op": points(feed_forward, *inputs, policy="none"),
    "stitched": points(feed_forward, *inputs),
}

# %%
figure, axes = plt.subplots(figsize=(7, 4), layout="constrained")
axes.loglog(*zip(*roof), color="gray", label="the roof: reading and writing alone")
for (name, found), marker, size in zip(plans.items(), "oX", (5, 10)):
    total = sum(us for _, us in found)
    label = f"{name}: {len(found)} kernels, {total:.0f} us in all"
    axes.plot(*zip(*found), marker, markersize=size, label=label)
axes.set_xlabel("MB that the kernel moves")
axes.set_ylabel("predicted us")
axes.legend()
plt.show()
