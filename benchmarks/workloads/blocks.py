"""Blocks of today's models: transformers of text and images, U-Net, mixer, a router of experts."""

import torch
import torch.nn.functional as F
from torch import nn

from benchmarks.workloads.layers import FeedForward, attend, causal_mask, join_heads, split_heads


def tanh_gelu(x):
    return F.gelu(x, approximate="tanh")


class Block(nn.Module):
    """Norms first; keys of one product; causal for text."""

    def __init__(self, width, heads, is_causal):
        super().__init__()
        self.heads, self.is_causal = heads, is_causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.feed = FeedForward(width, 4 * width, tanh_gelu if is_causal else F.gelu)
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)

    def forward(self, x):
        qkv = (split_heads(part, self.heads) for part in self.qkv(self.norm1(x)).chunk(3, -1))
        mask = causal_mask(x.shape[1], x.device) if self.is_causal else None
        x = x + self.out(join_heads(attend(*qkv, mask)))
        return x + self.feed(self.norm2(x))


class RmsNorm(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))

    def forward(self, x):
        return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * self.weight


def rotate(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


class LlamaBlock(nn.Module):
    """RMS norms, rotary positions, keys and values shared by groups of heads, SwiGLU."""

    def __init__(self, width, heads, groups, hidden):
        super().__init__()
        self.heads, self.groups = heads, groups
        of_keys = width // heads * groups
        self.query, self.out = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.key, self.value = (nn.Linear(width, of_keys, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, hidden, bias=False) for _ in range(2))
        self.down = nn.Linear(hidden, width, bias=False)
        self.norm1, self.norm2 = RmsNorm(width), RmsNorm(width)

    def forward(self, x, cos, sin):
        y = self.norm1(x)
        query = rotate(split_heads(self.query(y), self.heads), cos, sin)
        key, value = (split_heads(f(y), self.groups) for f in (self.key, self.value))
        shared = self.heads // self.groups
        key, value = (z.repeat_interleave(shared, 1) for z in (rotate(key, cos, sin), value))
        mask = causal_mask(x.shape[1], x.device)
        x = x + self.out(join_heads(attend(query, key, value, mask)))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class UnetBlock(nn.Module):
    def __init__(self, channels, out, groups, embedding):
        super().__init__()
        self.norm1, self.norm2 = nn.GroupNorm(groups, channels), nn.GroupNorm(groups, out)
        self.conv1 = nn.Conv2d(channels, out, 3, padding=1)
        self.conv2 = nn.Conv2d(out, out, 3, padding=1)
        self.time, self.skip = nn.Linear(embedding, out), nn.Conv2d(channels, out, 1)

    def forward(self, x, time):
        y = self.conv1(F.silu(self.norm1(x))) + self.time(F.silu(time))[:, :, None, None]
        return self.skip(x) + self.conv2(F.silu(self.norm2(y)))


class MixerBlock(nn.Module):
    def __init__(self, patches, width, of_patches, of_channels):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.tokens = FeedForward(patches, of_patches)
        self.channels = FeedForward(width, of_channels)

    def forward(self, x):
        x = x + self.tokens(self.norm1(x).transpose(1, 2)).transpose(1, 2)
        return x + self.channels(self.norm2(x))


class Router(nn.Module):
    """Each token's two experts, their weights, its place in their queues, and the balance loss."""

    def __init__(self, width, experts):
        super().__init__()
        self.gate = nn.Linear(width, experts, bias=False)

    def forward(self, x):
        probabilities = self.gate(x).softmax(-1)
        weights, chosen = probabilities.topk(2, -1)
        weights = weights / weights.sum(-1, keepdim=True)
        experts = probabilities.shape[-1]
        is_chosen = chosen[..., None] == torch.arange(experts, device=x.device)
        places = (is_chosen.flatten(0, 1).long().cumsum(0) - 1).view_as(is_chosen)
        place = (places * is_chosen).sum(-1)
        load = is_chosen.any(1).to(x.dtype).mean(0)
        balance = (load * probabilities.mean(0)).sum() * experts
        return weights, chosen, place, balance


def gpt2_block(batch, length, width, heads):
    return Block(width, heads, is_causal=True), (torch.randn(batch, length, width),)


def vit_block(batch, length, width, heads):
    return Block(width, heads, is_causal=False), (torch.randn(batch, length, width),)


def llama_block(batch, length, width, heads, groups, hidden):
    per_head = width // heads
    rates = 10000.0 ** (-torch.arange(0, per_head, 2) / per_head)
    angles = (torch.arange(length)[:, None] * rates).repeat(1, 2)
    inputs = torch.randn(batch, length, width), angles.cos(), angles.sin()
    return LlamaBlock(width, heads, groups, hidden), inputs


def unet_resblock(batch, channels, out, size, groups, embedding):
    x, time = torch.randn(batch, channels, size, size), torch.randn(batch, embedding)
    return UnetBlock(channels, out, groups, embedding), (x, time)


def mixer_block(batch, patches, width, of_patches, of_channels):
    block = MixerBlock(patches, width, of_patches, of_channels)
    return block, (torch.randn(batch, patches, width),)


def moe_router(tokens, width, experts):
    return Router(width, experts), (torch.randn(tokens, width),)
