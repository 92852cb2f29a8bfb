# %% [markdown]
# # Your model
#
# Replace the cell below by your own model and inputs, and run the rest as it is: what is faster
# here, by how much, what a first call costs, whether results are as exact, and what limits it.

# %%
import json

import pandas as pd
import torch
import torch.nn.functional as F
from torch import nn

import torch_stitch

device = "cuda" if torch.cuda.is_available() else "cpu"


# %% [markdown]
# ## The cell to replace
#
# `model` is a module or a function, `inputs` is a tuple of what it is called with.


# %%
class Block(nn.Module):
    """A layer of a transformer."""

    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(2))
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x):
        split = self.qkv(self.norms[0](x)).unflatten(-1, (3, self.heads, -1))
        q, k, v = split.permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norms[1](x))))


torch.manual_seed(0)
model = Block(width=128, heads=4).to(device)
inputs = (torch.randn(8, 128, 128, device=device),)

# %% [markdown]
# ## Inference
#
# `peak MB` is memory during a call above what lives between calls, `launches` are kernels and
# library calls, `rmse` and `worst` are errors against the same model in fp64. The lines below the
# table say which differences the rounds can tell from noise.

# %%
inference = torch_stitch.benchmark(model, *inputs, seconds=4)
inference

# %%
inference.plot()

# %% [markdown]
# ## Training
#
# A step is a forward and a backward pass; errors are those of results, gradients and buffers.

# %%
training = torch_stitch.benchmark(model, *inputs, training=True, seconds=4)
training

# %% [markdown]
# ## What limits it?
#
# The plan for this device. Graph breaks are places where Python stands between two graphs; what
# library calls there are says how much of the time no kernel of ours can change.

# %%
report = torch_stitch.explain(model, *inputs)
plan = json.loads(report.to_json())
calls = pd.Series([call["name"] for call in plan["library_calls"]], dtype=str)
print(f"{plan['graph_breaks']} graph breaks, {len(plan['kernels'])} kernels, {len(calls)} calls")
calls.value_counts().rename("library calls").to_frame()

# %%
print(report)

# %% [markdown]
# ## The same on a GPU that is not here
#
# Kernels, launches and predicted time of kernels for each GPU of the device table.

# %%
plans = {}
for target in ("a100", "h100", "h200", "b200"):
    found = json.loads(torch_stitch.explain(model, *inputs, target=target).to_json())
    plans[target] = {
        "kernels": len(found["kernels"]),
        "launches": found["launches"],
        "predicted us of kernels": round(sum(k["predicted_us"] for k in found["kernels"]), 1),
    }
pd.DataFrame.from_dict(plans, orient="index")
