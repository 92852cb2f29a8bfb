# %% [markdown]
# # Training
#
# A small language model learns the licence of this repository, letter by letter: once in eager,
# once compiled, over the same seeds. If compiling changed what is learnt, the curves would part
# by more than seeds do.

# %%
from pathlib import Path

import matplotlib.pyplot as plt
import torch
import torch.nn.functional as F
from torch import nn

import torch_stitch

device = "cuda" if torch.cuda.is_available() else "cpu"
torch.set_num_threads(1)  # ops of so small a model are not worth sharing
SEEDS, STEPS = (0, 1, 2), 50
BATCH, LENGTH, WIDTH, HEADS = 16, 64, 64, 4

text = Path("LICENSE").read_text()
letters = sorted(set(text))
tokens = torch.tensor([letters.index(letter) for letter in text], device=device)
print(
    f"{len(text)} letters, {len(letters)} different ones; it begins {' '.join(text.split()[:4])!r}"
)


# %%
class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(WIDTH) for _ in range(2))
        self.qkv, self.out = nn.Linear(WIDTH, 3 * WIDTH), nn.Linear(WIDTH, WIDTH)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        q, k, v = self.qkv(self.norms[0](x)).unflatten(-1, (3, HEADS, -1)).permute(2, 0, 3, 1, 4)
        mixed = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(mixed.transpose(1, 2).flatten(2))
        return x + self.down(F.gelu(self.up(self.norms[1](x))))


class Model(nn.Module):
    """The loss of guessing each next letter; tokens are [batch, length + 1]."""

    def __init__(self):
        super().__init__()
        self.letters, self.places = nn.Embedding(len(letters), WIDTH), nn.Embedding(LENGTH, WIDTH)
        self.layers = nn.Sequential(Layer(), Layer())
        self.head = nn.Sequential(nn.LayerNorm(WIDTH), nn.Linear(WIDTH, len(letters)))

    def forward(self, tokens):
        places = torch.arange(LENGTH, device=tokens.device)
        x = self.letters(tokens[:, :-1]) + self.places(places)
        guesses = self.head(self.layers(x))
        return F.cross_entropy(guesses.flatten(0, 1), tokens[:, 1:].flatten())


# %% [markdown]
# ## Train
#
# The seed decides the first weights and which pieces of the text are read. The optimiser is the
# same in both: only the model is compiled.


# %%
def train(call, seed):
    """The loss of each step."""
    torch.manual_seed(seed)
    for part in model.modules():
        if hasattr(part, "reset_parameters"):
            part.reset_parameters()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-3)
    losses = []
    for _ in range(STEPS):
        starts = torch.randint(len(tokens) - LENGTH, (BATCH, 1)).to(device)
        loss = call(tokens[starts + torch.arange(LENGTH + 1, device=device)])
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return torch.tensor(losses)


model = Model().to(device)
compiled = torch.compile(model, backend="stitch")
eager = torch.stack([train(model, seed) for seed in SEEDS])
stitch = torch.stack([train(compiled, seed) for seed in SEEDS])

# %% [markdown]
# ## Compare
#
# Left: the curves, of eager as lines and of stitch as points. Right: how far the two are apart
# under the same seed, beside how far two seeds are apart in eager.

# %%
figure, (curves, gaps) = plt.subplots(1, 2, figsize=(11, 3.6), layout="constrained")
for i, seed in enumerate(SEEDS):
    curves.plot(eager[i], color=f"C{i}", label=f"eager, seed {seed}")
    curves.plot(stitch[i], ".", color=f"C{i}", markersize=4, label=f"stitch, seed {seed}")
curves.set_xlabel("step")
curves.set_ylabel("loss")
curves.legend(fontsize="small")
between = (eager.amax(0) - eager.amin(0)).clamp(min=1e-9)
gaps.semilogy(between, color="gray", label="between seeds, eager")
gaps.semilogy((eager - stitch).abs().amax(0).clamp(min=1e-9), label="eager to stitch, same seed")
gaps.set_xlabel("step")
gaps.set_ylabel("largest difference of the loss")
gaps.legend(fontsize="small")
plt.show()

# %%
apart = (eager[:, -1] - stitch[:, -1]).abs().max().item()
print(f"loss of the last step: eager {eager[:, -1].mean():.3f}, stitch {stitch[:, -1].mean():.3f}")
print(f"largest difference there under the same seed: {apart:.1e}, between seeds {between[-1]:.1e}")

# %% [markdown]
# ## How long does a step take?
#
# `benchmark` of the same model, forward and backward; the optimiser's step is no part of it.

# %%
batch = tokens[: BATCH * (LENGTH + 1)].reshape(BATCH, LENGTH + 1)
comparison = torch_stitch.benchmark(
    model, batch, backends=("eager", "stitch"), training=True, seconds=4
)
comparison

# %%
comparison.plot()
