# %% [markdown]
# # Policies
#
# How kernels are chosen is a policy. `astitch` and `fusionstitching2020` plan as these papers do,
# `search` joins pairs while the cost model gains, `none` makes a kernel of each op, and `auto`
# takes whichever is predicted to be fastest. `docs/papers.md` says which of
# their mechanisms is where. First come results that are committed, then plans made here.

# %%
import json
from pathlib import Path

import matplotlib.pyplot as plt
import pandas as pd

import torch_stitch
from benchmarks.cases import CASES

# %% [markdown]
# ## Committed: beside XLA, Inductor and the papers
#
# The latest plans of the yardstick's inference graphs for an H200, under each policy alone, over
# what XLA and Inductor plan for the same functions. The papers' own figures are against the XLA
# of their day and on their own models, so that only their order of magnitude compares.

# %%
path = sorted(Path("benchmarks/results").glob("*/policies.json"))[-1]
committed = json.loads(path.read_text())
rows = {row["name"]: row for row in committed["rows"]}
print(f"{path}, torch {committed['torch']}")

# %%
means = {}
for name, row in rows.items():
    policy, figure_name = name.split(", ")
    if figure_name != "worst case":
        means.setdefault(policy, {})[figure_name] = row["value"]
    if paper := (row["detail"] or {}).get("paper"):
        means[policy]["kernels over XLA's, as the paper says"] = paper
means = pd.DataFrame(means).T

# %%
figure, axes = plt.subplots(figsize=(9, 3.4), layout="constrained")
means.plot.bar(ax=axes, rot=0, xlabel="", ylabel="geometric mean, less is better")
axes.axhline(1, color="gray", linewidth=0.8)
for bars in axes.containers:
    axes.bar_label(bars, fmt=lambda x: f"{x:.2f}" if x > 0 else "", fontsize="x-small")
axes.legend(loc="upper right", ncols=2, fontsize="small")
axes.set_ylim(top=1.3)
plt.show()

# %% [markdown]
# Graph by graph, as the papers show it: kernels, over those of Inductor.

# %%
kernels = {}
for name, row in rows.items():
    policy, figure_name = name.split(", ")
    if figure_name == "kernels over Inductor's":
        for graph, found in row["detail"]["rows"].items():
            graph = graph.removesuffix(".inference")
            kernels.setdefault(graph, {})[policy] = found["stitch"][0] / found["inductor"][0]
            if found["xla"]:
                kernels[graph]["XLA"] = found["xla"][0] / found["inductor"][0]
kernels = pd.DataFrame(kernels).T.sort_values("auto")
kernels = kernels[["XLA", *kernels.columns.drop("XLA")]]
figure, axes = plt.subplots(figsize=(11, 4), layout="constrained")
kernels.plot.bar(ax=axes, width=0.8, ylabel="kernels over Inductor's")
axes.axhline(1, color="gray", linewidth=0.8)
plt.show()

# %% [markdown]
# ## Live: the same functions, planned now
#
# Named subgraphs of `benchmarks/cases.py`, at sizes that move some 16 MB, planned for an H200
# under each policy. Nothing runs; kernels are compiled.

# %%
POLICIES = ["none", "search", "fusionstitching2020", "astitch", "auto"]
NAMES = ["masked_softmax", "residual_layernorm", "groupnorm_silu", "sums_and_max"]


def plan_of(name, policy):
    fn, inputs = CASES[name].of_medium_size()
    plan = json.loads(torch_stitch.explain(fn, *inputs, target="h200", policy=policy).to_json())
    return {
        "kernels": len(plan["kernels"]),
        "predicted us": sum(kernel["predicted_us"] for kernel in plan["kernels"]),
        "MB moved / MB that must move": plan["bytes_planned"] / plan["bytes_compulsory"],
    }


plans = pd.DataFrame(
    {(name, policy): plan_of(name, policy) for name in NAMES for policy in POLICIES}
).T
plans.unstack(0)["predicted us"].loc[POLICIES].round(1)

# %%
figure, rows_of_axes = plt.subplots(1, 3, figsize=(12, 3.4), layout="constrained")
for axes, column in zip(rows_of_axes, plans.columns):
    table = plans[column].unstack().loc[NAMES, POLICIES]
    table.plot.bar(ax=axes, rot=20, ylabel=column, width=0.8, logy=True, legend=False)
figure.legend(POLICIES, loc="outside lower center", ncols=len(POLICIES))
plt.show()

# %% [markdown]
# Is `auto` never predicted to be slower than a policy alone?

# %%
us = plans["predicted us"].unstack().loc[NAMES, POLICIES]
best = us.drop(columns="auto").min(axis=1)
pd.DataFrame({"auto, us": us["auto"], "best of the others, us": best}).round(1)
