"""Attention written out: recognised, called as the library's, and as near to fp64 as eager is."""

import json
import math

import pytest
import torch
import torch.nn.functional as F

import torch_stitch
from tests.support.compare import compile_strictly, expect_as_exact, expect_equal

pytestmark = pytest.mark.usefixtures("fresh")

BATCH, HEADS, ROWS, WIDTH = 2, 3, 24, 16
CALL = "aten.scaled_dot_product_attention.default"
DTYPES = [torch.float32, torch.bfloat16, torch.float16]
INFINITY = float("inf")


def split_heads(x):
    return x.view(*x.shape[:2], HEADS, WIDTH).transpose(1, 2)


def join_heads(x):
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)


def bert(q, k, v, keep):
    """As in Hugging Face's BertSelfAttention."""
    bias = (1.0 - keep[:, None, None, :].to(q.dtype)) * torch.finfo(q.dtype).min
    q, k, v = map(split_heads, (q, k, v))
    scores = torch.matmul(q, k.transpose(-1, -2)) / math.sqrt(WIDTH) + bias
    return join_heads(torch.matmul(F.softmax(scores, dim=-1), v))


def gpt(q, k, v, keep):
    """As in nanoGPT: a causal mask that is filled in."""
    causal = torch.tril(torch.ones(ROWS, ROWS)).view(1, 1, ROWS, ROWS)
    q, k, v = map(split_heads, (q, k, v))
    scores = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(WIDTH))
    return join_heads(scores.masked_fill(causal == 0, -INFINITY).softmax(-1) @ v)


def llama(q, k, v, keep):
    """The softmax in fp32, and a mask that is selected."""
    q, k, v = map(split_heads, (q, k, v))
    scores = torch.matmul(q, k.transpose(2, 3)) * WIDTH**-0.5
    lowest = torch.finfo(q.dtype).min if q.dtype != torch.float16 else -INFINITY
    scores = torch.where(keep[:, None, None, :], scores, lowest)
    weights = F.softmax(scores, dim=-1, dtype=torch.float32).to(q.dtype)
    return join_heads(torch.matmul(weights, v))


def bart(q, k, v, keep):
    """Queries are scaled, products have three dimensions, the mask is added to four."""
    q = q * WIDTH**-0.5
    q, k, v = (split_heads(x).reshape(-1, ROWS, WIDTH) for x in (q, k, v))
    bias = torch.where(keep, 0.0, -INFINITY)[:, None, None, :].to(q.dtype)
    scores = torch.bmm(q, k.transpose(1, 2)).view(-1, HEADS, ROWS, ROWS) + bias
    weights = scores.view(-1, ROWS, ROWS).softmax(-1)
    return join_heads(torch.bmm(weights, v).view(-1, HEADS, ROWS, WIDTH))


def biased(q, k, v, keep):
    """A bias of its own for each head beside the mask, as in T5; the scale is one."""
    heads = torch.arange(HEADS, dtype=q.dtype)[:, None, None]
    bias = -(torch.arange(ROWS)[:, None] - torch.arange(ROWS)).abs().to(q.dtype) * (heads + 1) / 8
    mask = torch.where(keep, 0.0, -1e4)[:, None, None, :].to(q.dtype)
    q, k, v = map(split_heads, (q, k, v))
    return join_heads(((q @ k.transpose(-1, -2)) + (bias + mask)).softmax(-1) @ v)


FORMS = [bert, gpt, llama, bart, biased]


def make_inputs(dtype=torch.float32):
    q, k, v = (torch.randn(BATCH, ROWS, HEADS * WIDTH).to(dtype) for _ in range(3))
    keep = torch.ones(BATCH, ROWS, dtype=torch.bool)
    keep[1, -5:] = False
    return q, k, v, keep


def calls_of(fn, inputs, **how):
    plan = json.loads(torch_stitch.explain(fn, *inputs, **how).to_json())
    return [call["name"] for call in plan["library_calls"]]


def run(fn, inputs, **options):
    with torch.no_grad():
        return compile_strictly(fn, options=options)(*inputs)


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
@pytest.mark.parametrize("batch", [1, BATCH])
@pytest.mark.parametrize("form", FORMS)
def test_a_call_is_as_exact_as_eager(form, batch, dtype):
    inputs = [x[-batch:] for x in make_inputs(dtype)]
    got = run(form, inputs, attention="library")
    counters = torch_stitch.counters()
    assert counters["fallback_ops"] == 0, counters
    assert counters["library_calls"] == 1, counters  # no product is left
    exact = form(*(x.double() for x in inputs[:3]), inputs[3])
    expect_as_exact(got, form(*inputs), exact, 4096)


@pytest.mark.parametrize("form", FORMS)
def test_the_option_decides(form):
    inputs = make_inputs()
    assert calls_of(form, inputs, attention="library") == [CALL]
    assert calls_of(form, inputs, attention="stitch") == ["aten.bmm.default"] * 2
    assert calls_of(form, inputs) == ["aten.bmm.default"] * 2  # fp32 scores in the cache
    narrow = make_inputs(torch.float16)
    assert calls_of(form, narrow) == [CALL]
    assert calls_of(form, narrow, target="h200") == [CALL]
    assert calls_of(form, narrow, policy="none") == ["aten.bmm.default"] * 2


def test_an_unknown_value_names_the_known_ones():
    with pytest.raises(Exception, match="'flash'.*auto, library, stitch"):
        run(gpt, make_inputs(), attention="flash")


def test_explain_says_why_attention_stays_written_out():
    def filled(q, k, v, keep):
        scores = (q @ k.transpose(1, 2)).masked_fill(~keep[:, None, :], -1e9)
        return scores.softmax(-1) @ v

    def rules_of(fn, **how):
        plan = json.loads(torch_stitch.explain(fn, *make_inputs(), **how).to_json())
        return [cut["rule"] for cut in plan["cuts"] if "library" in cut["edge"].split(" -> ")[0]]

    assert rules_of(filled, attention="library") == [33]
    assert rules_of(gpt) == [36]
    assert rules_of(gpt, attention="stitch") == []


@pytest.mark.parametrize("columns", [5, ROWS, 1200])  # the CPU's kernel takes 512 at a time
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_a_row_without_any_score_is_nan_as_from_a_softmax(dtype, columns):
    def fn(q, k, v, keep):
        scores = (q @ k.transpose(1, 2)).masked_fill(~keep[:, :, None], -INFINITY)
        return scores.softmax(-1) @ v

    q, _, _, keep = make_inputs(dtype)
    k, v = (torch.randn(BATCH, columns, HEADS * WIDTH).to(dtype) for _ in range(2))
    got, eager = run(fn, (q, k, v, keep), attention="library"), fn(q, k, v, keep)
    assert eager.isnan().any() and torch_stitch.counters()["library_calls"] == 1
    expect_equal(got.isnan(), eager.isnan())


def test_a_mask_that_comes_from_outside_may_hide_rows():
    def fn(q, k, v, mask):
        return (q @ k.transpose(1, 2) + mask).softmax(-1) @ v

    q, k, v, _ = make_inputs()
    mask = torch.zeros(ROWS, ROWS)
    mask[3] = -INFINITY
    got = run(fn, (q, k, v, mask), attention="library")
    expect_as_exact(got, fn(q, k, v, mask), fn(*(x.double() for x in (q, k, v, mask))), 4096)
    assert got[:, 3].isnan().all() and not got[:, 4:].isnan().any()


@pytest.mark.parametrize("per_row", [False, True])
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_hidden_rows_are_marked_in_the_kernel_behind_their_projection(dtype, per_row):
    def fn(q, k, v, mask, weight, bias):
        q, k, v = map(split_heads, (q, k, v))
        y = join_heads((q @ k.transpose(-1, -2) * 0.25 + mask).softmax(-1) @ v)
        return F.layer_norm(F.linear(y, weight, bias), (40,))

    q, k, v, _ = make_inputs(dtype)
    mask = torch.zeros(BATCH, 1, ROWS if per_row else 1, ROWS)
    mask[1, 0, -1] = -INFINITY
    weights = torch.randn(40, HEADS * WIDTH), torch.randn(40)
    inputs = q, k, v, *(x.to(dtype) for x in (mask, *weights))
    got, eager = run(fn, inputs, attention="library"), fn(*inputs)
    expect_as_exact(got, eager, fn(*(x.double() for x in inputs)), 4096)
    assert got[1, -1].isnan().all() and not got[0].isnan().any()
    assert torch_stitch.counters()["kernels"] == 1
    plan = torch_stitch.explain(fn, *inputs, target="h200", attention="library")
    assert len(json.loads(plan.to_json())["kernels"]) == 1


def test_a_row_hidden_by_the_lowest_number_is_the_mean_of_the_values():
    def fn(q, k, v, keep):
        scores = torch.where(keep[:, :, None], q @ k.transpose(1, 2), torch.finfo(q.dtype).min)
        return scores.softmax(-1) @ v

    inputs = make_inputs()
    got = run(fn, inputs, attention="library")
    assert torch_stitch.counters()["library_calls"] == 1
    torch.testing.assert_close(got[1, -1], inputs[2][1].mean(0))
    expect_as_exact(got, fn(*inputs), fn(*(x.double() for x in inputs[:3]), inputs[3]), 4096)


def test_few_heads_of_keys_for_many_of_queries():
    """As in Llama: each head of keys and values is read by several of queries."""

    def fn(q, k, v, keep):
        k, v = (x[:, :, None].expand(-1, -1, HEADS, -1, -1).flatten(1, 2) for x in (k, v))
        scores = q @ k.transpose(2, 3) / math.sqrt(WIDTH)
        scores = scores.masked_fill(~keep[:, None, None, :], -INFINITY)
        return join_heads(scores.softmax(-1) @ v)

    keep = make_inputs()[3]
    q = torch.randn(BATCH, 2 * HEADS, ROWS, WIDTH)
    k, v = (torch.randn(BATCH, 2, ROWS, WIDTH) for _ in range(2))
    got = run(fn, (q, k, v, keep), attention="library")
    assert torch_stitch.counters()["library_calls"] == 1
    exact = fn(*(x.double() for x in (q, k, v)), keep)
    expect_as_exact(got, fn(q, k, v, keep), exact, 4096)


def test_keys_that_lie_the_other_way_round():
    def fn(q, columns, v):
        return (q @ columns).softmax(-1) @ v

    q, v = (torch.randn(3, ROWS, WIDTH) for _ in range(2))
    columns = torch.randn(3, WIDTH, ROWS)
    got = run(fn, (q, columns, v), attention="library")
    assert torch_stitch.counters()["library_calls"] == 1
    exact = fn(*(x.double() for x in (q, columns, v)))
    expect_as_exact(got, fn(q, columns, v), exact, 4096)


def test_a_dynamic_length_is_compiled_once():
    def fn(q, k, v):
        return (q @ k.transpose(1, 2) * 0.25).softmax(-1) @ v

    compiled = compile_strictly(fn, options={"attention": "library"}, dynamic=True)
    for rows in (5, 9, 17):
        q, k, v = (torch.randn(3, rows, 16) for _ in range(3))
        with torch.no_grad():
            got = compiled(q, k, v)
        expect_as_exact(got, fn(q, k, v), fn(q.double(), k.double(), v.double()), 4096)
    counters = torch_stitch.counters()
    assert counters["library_calls"] == 1 and counters["fallback_ops"] == 0, counters


def test_training_keeps_the_probabilities_that_its_backward_reads():
    q, k, v, keep = make_inputs()
    q.requires_grad_()
    report = torch_stitch.explain(gpt, q, k, v, keep, attention="library", training=True)
    names = [call["name"] for call in json.loads(report.to_json())["forward"]["library_calls"]]
    assert names == ["aten.bmm.default"] * 2


def test_eager_rounding_keeps_16_bit_scores():
    inputs = make_inputs(torch.bfloat16)
    run(gpt, inputs, emulate_eager_casts=True)
    assert torch_stitch.counters()["library_calls"] == 2
