"""How benchmarks/device_numbers.py launches, times and reports."""

import contextlib
import ctypes
import functools
import re
import statistics
import subprocess
import time
import traceback
from pathlib import Path

import torch

from benchmarks.gpu_times import capture, time_events
from torch_stitch import _core
from torch_stitch.backend import find_target

ROOT = Path(__file__).resolve().parent.parent
TEXT = Path(__file__).with_name("device_numbers.cu")

STATE = "name,driver_version,clocks.sm,clocks.mem,clocks.max.sm,clocks.max.mem,power.draw"

loaded = {}
results = []
errors = {}


@contextlib.contextmanager
def attempt(name):
    """Whatever goes wrong inside is an error of this name, and what comes after goes on."""
    try:
        yield
        torch.cuda.synchronize()
    except Exception:
        errors[name] = traceback.format_exc()
        print(name, errors[name], flush=True)


def present(place):
    """What a source file says now: "sass:ffma", "number:shared_latency", "spec:launch_us"."""
    kind, _, name = place.partition(":")
    if kind == "sass":
        text = (ROOT / "csrc/clock/sass/sass.def").read_text()
        row = rf'^SASS_\w+\({name}, .*?", (\w+, [\d.]+, \w+), \w+, (.*)\)'
        return re.search(row, text, re.M)[1]
    if kind == "number":
        text = (ROOT / "csrc/clock/machine/numbers.def").read_text()
        return float(re.search(rf"\({name}, ([\d.]+),", text)[1])
    if kind != "spec":
        return None
    text = (ROOT / "csrc/cost/device_spec.cpp").read_text()
    if name.startswith("latencies."):
        numbers = re.search(r"kHopper = \{(.*)\}", text)[1].split(", ")
        fields = ["operation", "special", "exchange", "shared", "barrier", "cache", "memory"]
        return float(numbers[fields.index(name.removeprefix("latencies."))])
    if name == "cycles_per_us":
        return float(re.search(r'"h200", \{\d+, \d+, (\d+)', text)[1]) / 1e3  # in kHz there
    numbers = re.search(r"kH200 = \{(.*)\}", text)[1].split(", ")
    fields = ["dram_bytes_per_us", "l2_bytes_per_us", "launch_us", "barrier_us", "last_block_us"]
    return float(numbers[fields.index(name)])


def report(name, value, unit, how, places="", spread=0.0):
    """One number; `places` are those that present() knows, between blanks."""
    used_by = {place: present(place) for place in places.split()}
    row = {"name": name, "value": value, "unit": unit, "spread": spread, "how": how}
    results.append(row | {"used_by": used_by})
    shown = f"{value:.5g}" if isinstance(value, float) else value
    print(f"{name:34} {shown} {unit}  +-{spread:.2g}  {used_by or ''}", flush=True)


def report_all(name, values, unit, how, places=""):
    """Their median; the spread is half of what lies between the quartiles."""
    low, middle, high = statistics.quantiles(values, n=4) if len(values) > 1 else values * 3
    report(name, float(middle), unit, how, places, (high - low) / 2)
    return middle


# Launching.


def check(code, what="a call of the driver"):
    if code:
        text = ctypes.c_char_p()
        driver().cuGetErrorString(code, ctypes.byref(text))
        raise RuntimeError(f"{what} returned CUDA error {code}: {text.value}")


@functools.cache
def driver():
    return ctypes.CDLL("libcuda.so.1")


class Kernel:
    """A function of a CUDA text.  Arguments are tensors, long long or numbers of ctypes."""

    def __init__(self, text, name, target):
        self.driver, self.function = driver(), ctypes.c_void_p()
        if (text, target) not in loaded:
            module = ctypes.c_void_p()
            cubin = _core.compile_cubin(text, target)
            check(self.driver.cuModuleLoadData(ctypes.byref(module), cubin))
            loaded[text, target] = module
        module = loaded[text, target]
        check(self.driver.cuModuleGetFunction(ctypes.byref(self.function), module, name.encode()))

    def allow(self, attribute, value):
        check(self.driver.cuFuncSetAttribute(self.function, attribute, value))

    def prepare(self, grid, block, *args, shared=0, cooperative=False):
        """A function that launches it on the stream that is then the current one."""
        values = [
            ctypes.c_void_p(x.data_ptr())
            if isinstance(x, torch.Tensor)
            else ctypes.c_longlong(x)
            if isinstance(x, int)
            else x
            for x in args
        ]
        places = (ctypes.c_void_p * max(1, len(values)))(*map(ctypes.addressof, values))
        launch = (
            self.driver.cuLaunchCooperativeKernel if cooperative else self.driver.cuLaunchKernel
        )
        rest = [] if cooperative else [None]

        def call():
            stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
            check(launch(self.function, grid, 1, 1, block, 1, 1, shared, stream, places, *rest))

        call.keeps = values, args
        return call


def kernel(name, prefix=""):
    return Kernel(prefix + TEXT.read_text(), name, target_name())


def target_name():
    return find_target({torch.device("cuda", torch.cuda.current_device())})


def multiprocessors():
    return torch.cuda.get_device_properties(0).multi_processor_count


def zeros(count, dtype=torch.int64):
    return torch.zeros(count, dtype=dtype, device="cuda")


def time_us(call, rounds=9, repeats=1):
    """Microseconds by events around `repeats` calls, of each round."""
    call()
    return [time_events(call, repeats) for _ in range(rounds)]


def time_behind(call, repeats=300, rounds=7):
    """(us a call on the device, us a call on the host): they queue behind a kernel that spins."""
    spin = kernel("spin").prepare(1, 32, zeros(2), 12_000_000)
    call()
    device_us, host_us = [], []
    for _ in range(rounds):
        start, end = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        spin()
        start.record()
        before = time.perf_counter()
        for _ in range(repeats):
            call()
        host_us.append((time.perf_counter() - before) * 1e6 / repeats)
        end.record()
        end.synchronize()
        device_us.append(start.elapsed_time(end) * 1e3 / repeats)
    return device_us, host_us


def time_node(call, count=100):
    """Microseconds of a node: graphs of two lengths, so that what a graph costs falls out."""
    short, long = (time_us(capture(call, n).replay, 15) for n in (count, 3 * count))
    return [(b - a) / (2 * count) for a, b in zip(sorted(short), sorted(long), strict=True)]


def chain_of(size, step):
    """Addresses of places `step` bytes apart, each holding the next one's, in random order."""
    data = zeros(size // 8)
    order = torch.randperm(size // step, device="cuda")
    data[order * (step // 8)] = data.data_ptr() + order.roll(-1) * step
    return data, data.data_ptr() + int(order[0]) * step


def span(out, warps):
    """Cycles from the first warp's start to the last one's end."""
    stamps = out.view(-1, 2)[:warps]
    return (stamps[:, 1].max() - stamps[:, 0].min()).item()


def card_state():
    query = ["nvidia-smi", f"--query-gpu={STATE},temperature.gpu", "--format=csv"]
    try:
        return subprocess.run(query, capture_output=True, text=True, timeout=20).stdout.splitlines()
    except (OSError, subprocess.TimeoutExpired) as error:
        return [str(error)]
