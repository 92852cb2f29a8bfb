"""Graph text of any size without a library call, for the time that planning takes.

A shape is a head and steps: what each step makes is named after its number, `last` is what the
step before returned.
"""

import re

ROWS, COLUMNS = 512, 768


def reduce(op, value, name, axis=1, rows=ROWS):
    """Broadcasts along the axis that is reduced."""
    kept, shape = ((rows, f"{rows},1"), (COLUMNS, f"1,{COLUMNS}"))[1 - axis]
    return [
        f"%of_{name} = {op}({value}){{ints=[{axis}]}} : f32[{kept}]",
        f"%{name} = reshape(%of_{name}) : f32[{shape}]",
    ]


def chain(step, last):
    """Reductions, each of what is made of the one before."""
    lines = [
        *reduce("sum", last, f"sum{step}"),
        f"%shifted{step} = sub({last}, mul(%sum{step}, 0.0013))",
        f"%chain{step} = exp(%shifted{step})",
    ]
    return lines, f"%chain{step}"


def wide(step, last):
    """Softmaxes of tensors of their own; every one is an output."""
    rows = 64 + step % 7
    lines = [
        f"%x{step} = input : f32[{rows},{COLUMNS}]",
        f"%exp{step} = exp(%x{step})",
        *reduce("sum", f"%exp{step}", f"total{step}", rows=rows),
        f"%wide{step} = div(%exp{step}, %total{step})",
    ]
    return lines, None


def norm(name, value):
    return [
        *reduce("sum", value, f"sum_{name}"),
        f"%off_{name} = sub({value}, mul(%sum_{name}, 0.0013))",
        *reduce("sum", f"mul(%off_{name}, %off_{name})", f"squares_{name}"),
        f"%var_{name} = mul(%squares_{name}, 0.0013)",
        f"%unit_{name} = mul(%off_{name}, rsqrt(add(%var_{name}, 1e-5)))",
        f"%{name} = add(mul(%unit_{name}, %weight), %bias)",
    ]


def layers(step, last):
    """What is between the library calls of a transformer's layer, without the calls."""
    lines = [
        f"%score{step} = add(mul({last}, 0.125), %mask)",
        *reduce("amax", f"%score{step}", f"most{step}"),
        f"%exp{step} = exp(sub(%score{step}, %most{step}))",
        *reduce("sum", f"%exp{step}", f"total{step}"),
        f"%prob{step} = div(%exp{step}, %total{step})",
        f"%first{step} = add(%prob{step}, {last})",
        *norm(f"attended{step}", f"%first{step}"),
        f"%half{step} = mul(%attended{step}, 0.5)",
        f"%gelu{step} = mul(%half{step}, add(erf(mul(%attended{step}, 0.7071)), 1))",
        f"%second{step} = add(%gelu{step}, %attended{step})",
        *norm(f"layer{step}", f"%second{step}"),
    ]
    return lines, f"%layer{step}"


def mixed(step, last):
    """Rows, columns and values of several steps before, some of them outputs."""
    older = f"%mixed{step - 4}" if step >= 4 else "%x"
    lines = [
        *reduce("amax", f"add({last}, {older})", f"row{step}"),
        *reduce("sum", f"mul({older}, %mask)", f"column{step}", axis=0),
        f"%mixed{step} = tanh(add(mul({last}, %row{step}), %column{step}))",
    ]
    return lines, f"%mixed{step}"


HEAD = [
    f"%x = input : f32[{ROWS},{COLUMNS}]",
    f"%mask = input : f32[{ROWS},{COLUMNS}]",
    f"%weight = input : f32[{COLUMNS}]",
    f"%bias = input : f32[{COLUMNS}]",
]
SHAPES = {shape.__name__: shape for shape in (chain, wide, layers, mixed)}
OUTPUT_EVERY = 20  # steps of `mixed`


def large_graph(shape, nodes):
    """Text of a graph of about so many values."""
    lines, outputs, last, made, step = list(HEAD), [], "%x", len(HEAD), 0
    while made < nodes:
        own, result = SHAPES[shape](step, last)
        lines += own
        made += len(re.findall(r"input|[a-z]\(|, \d", " ".join(own)))
        last = result or last
        if result is None or (shape == "mixed" and step % OUTPUT_EVERY == 0):
            outputs.append(f"%{shape}{step}")
        step += 1
    if last not in (*outputs, "%x"):
        outputs.append(last)
    return "\n".join([*lines, f"outputs ({', '.join(outputs)})"])
