"""Training steps of any workload: all that they leave."""

import copy

import torch
from torch.utils._pytree import tree_leaves

SPREAD = 0.1  # how far the weights of one draw lie from those of another


def other_weights(module, draw):
    """The state of the module, its floats scaled at random in fp32 whatever their type."""
    random = torch.Generator("cpu").manual_seed(draw)
    state = module.state_dict()
    for name, x in state.items():
        if x.is_floating_point():
            noise = torch.randn(x.shape, generator=random, device="cpu").to(x.device)
            state[name] = x.float() * (1 + SPREAD * noise)
    return state


def named_step(module, call, inputs):
    """name -> result, gradient of a parameter or buffer after call(*inputs), which runs the module.

    The loss is the mean of squares of each float that the module answers with.  A parameter that
    it does not depend on may have None for a gradient.
    """
    module.zero_grad(set_to_none=True)
    results = [x for x in tree_leaves(call(*inputs)) if isinstance(x, torch.Tensor)]
    sum(x.square().mean() for x in results if x.requires_grad).backward()
    left = {f"result {i}": x for i, x in enumerate(results)}
    left |= {f"gradient of {name}": p.grad for name, p in module.named_parameters()}
    left |= {f"buffer {name}": x for name, x in module.named_buffers()}
    return {name: x if x is None else x.detach().clone() for name, x in left.items()}


def training_step(module, call, inputs):
    """What a step leaves, in one order, without gradients that are None."""
    return [x for x in named_step(module, call, inputs).values() if x is not None]


def training_steps(module, inputs, wrap=lambda module: module, draws=1):
    """What steps with other weights each leave, [draws, ...]; the module stays as it is.

    Rounding errors of deep models move together, whole gradients at once: only over several draws
    is their mean a property of the compiler.
    """
    mine = copy.deepcopy(module).train()
    call, rows = wrap(mine), []
    for draw in range(draws):
        mine.load_state_dict(other_weights(module, draw))
        torch.manual_seed(draw)  # of dropout
        rows.append(training_step(mine, call, inputs))
    return [torch.stack(column) for column in zip(*rows, strict=True)]
