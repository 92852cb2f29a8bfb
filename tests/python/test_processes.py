"""Ranks, many shapes and repeated calls: what `make soak` does at length (R12, R27, R28)."""

import pytest
import torch

from tests.support import ranks, soak


@pytest.mark.skipif(not torch.distributed.is_available(), reason="torch without distributed")
def test_two_ranks_on_gloo_train_as_eager_does():
    found = ranks.train_ranks(4)
    assert found["kernels"] > 0, found
    assert found["largest_difference"] < 1e-5 and found["ranks_that_differ"] == 0, found


def test_many_shapes_leave_no_memory_files_or_threads(fresh):
    found = soak.call_with_shapes(600)
    assert found["wrong"] == 0 and found["files"] <= 0 and found["threads"] <= 0, found
    assert found["growth_mib"] <= soak.MOST_GROWTH_MIB, found


def test_a_call_gives_the_same_bits_each_time(fresh):
    assert soak.count_unequal_runs(20) == 0
