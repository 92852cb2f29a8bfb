"""Lines that benchmarks/calibrate.py fits, on synthetic measurements."""

import sys
from pathlib import Path

import pytest
import torch

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from benchmarks import calibrate  # noqa: E402

SIZES = [8 * elements for elements in calibrate.SIZES]  # bytes stored and loaded again


def test_a_line_is_found_exactly():
    start, slope = calibrate.fit_line([(x, 0.75 + x / 4.3e6) for x in SIZES])
    assert start == pytest.approx(0.75) and 1 / slope == pytest.approx(4.3e6)


def test_noise_moves_it_little():
    generator = torch.Generator().manual_seed(5)
    noise = (0.95 + 0.1 * torch.rand(len(SIZES), generator=generator)).tolist()
    points = [(x, (3 + x / 4.3e6) * n) for x, n in zip(SIZES, noise, strict=True)]
    fitted = calibrate.fit_saved(points, launch_us=2.5)
    assert fitted["start_us"] == pytest.approx(0.5, abs=0.2)
    assert fitted["bytes_per_us"] == pytest.approx(4.3e6, rel=0.1)
    assert fitted["worst_relative_error"] < 0.12


def test_small_sizes_count_as_much_as_large_ones():
    points = [(x, 3 + x / 4.3e6) for x in SIZES]
    points[-1] = (points[-1][0], points[-1][1] * 1.2)  # a fifth of the largest: 90 us
    start, _ = calibrate.fit_line(points)
    assert start == pytest.approx(3, abs=0.3)


def test_the_launch_is_counted_once():
    points = [(x, 2.5 + x / 3e6) for x in SIZES]
    assert calibrate.fit_saved(points, launch_us=2.5)["start_us"] == pytest.approx(0, abs=1e-9)


def test_one_size_is_no_line():
    with pytest.raises(ValueError, match="two sizes"):
        calibrate.fit_line([(1024, 3.0), (1024, 3.1)])


def test_the_launch_is_that_of_the_rows():
    text = (Path(__file__).resolve().parents[2] / "csrc/cost/device_spec.cpp").read_text()
    assert f" {calibrate.LAUNCH_US}," in text
