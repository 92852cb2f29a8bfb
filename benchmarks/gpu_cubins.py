"""The yardstick's cubins on a GPU: what Inductor's kernels take, launched by the driver alone."""

import ctypes
import functools
import gzip
import importlib.util
import json
import sys
import time
from pathlib import Path

import torch

from benchmarks import gpu_times, machine
from benchmarks.device_timing import check, driver

LAUNCHES = 20
CACHED_BYTES = 256 << 20  # buffers rotate over this much
MOST_STATIC_BYTES = 48 << 10
MOST_SHARED = 8  # CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES
TYPES = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}
# Where a kernel looks up by integers, what these lie below, pointer by pointer.
BELOW = {
    "embedding_layernorm": (30522, 2),
    "cross_entropy": (50304,),
    "cross_entropy_odd": (50257,),
}


def load_kernel(path, entry):
    """The function of a gzipped cubin."""
    module, function = ctypes.c_void_p(), ctypes.c_void_p()
    image = gzip.decompress(path.read_bytes())
    check(driver().cuModuleLoadData(ctypes.byref(module), image), "cuModuleLoadData")
    name = entry["kernel"].encode()
    check(driver().cuModuleGetFunction(ctypes.byref(function), module, name), "cuModuleGetFunction")
    if entry["shared_bytes"] > MOST_STATIC_BYTES:
        size = ctypes.c_int(entry["shared_bytes"])
        check(driver().cuFuncSetAttribute(function, MOST_SHARED, size), "cuFuncSetAttribute")
    return function


def below_of(case, args):
    """What the integers behind each i64 pointer lie below: 1 where nothing is looked up."""
    given = iter(BELOW.get(case, ()))
    return [next(given, 1) if a.get("dtype") == "i64" else 1 for a in args]


def make_buffer(argument, below):
    """Memory that a pointer points to, None for no memory; floats are normal, masks are true."""
    size, kind = argument["bytes"], argument.get("dtype")
    if size == 0:
        return None
    if kind in TYPES:
        width = torch.empty(0, dtype=TYPES[kind]).element_size()
        return torch.randn(max(1, size // width), dtype=TYPES[kind], device="cuda")
    if kind in ("i64", "i32"):
        dtype = torch.int64 if kind == "i64" else torch.int32
        count = max(1, size // (8 if kind == "i64" else 4))
        return torch.randint(below, (count,), dtype=dtype, device="cuda")
    return torch.full((size,), kind == "i1", dtype=torch.uint8, device="cuda")


def pack(args, buffers):
    """The array of pointers that cuLaunchKernel takes, and what it points to."""
    values = []
    for argument, buffer in zip(args, buffers, strict=True):
        if argument["kind"] == "pointer":
            values.append(ctypes.c_void_p(0 if buffer is None else buffer.data_ptr()))
        else:
            kind = ctypes.c_int32 if argument["kind"] == "i32" else ctypes.c_int64
            values.append(kind(argument["value"]))
    addresses = [ctypes.cast(ctypes.pointer(v), ctypes.c_void_p) for v in values]
    return (ctypes.c_void_p * len(values))(*addresses), values


def launch(function, entry, packed, *kept):
    """`kept` is what `packed` points to: it must live."""
    stream = ctypes.c_void_p(torch.cuda.current_stream().cuda_stream)
    status = driver().cuLaunchKernel(
        function, *entry["grid"], entry["threads"], 1, 1, entry["shared_bytes"], stream, packed,
        None,
    )  # fmt: skip
    check(status, "cuLaunchKernel")


def time_kernel(case, entry, folder):
    """Microseconds of one kernel: by itself, and in a CUDA graph of launches."""
    function = load_kernel(folder / entry["cubin"], entry)
    args, below = entry["args"], below_of(case, entry["args"])
    moved = sum(a.get("bytes", 0) for a in args)
    count = 1 + min(LAUNCHES - 1, max(1, CACHED_BYTES // max(moved, 1)))
    launches = []
    for _ in range(count):
        buffers = [
            make_buffer(a, b) if a["kind"] == "pointer" else None
            for a, b in zip(args, below, strict=True)
        ]
        launches.append(functools.partial(launch, function, entry, *pack(args, buffers), buffers))
    call = gpu_times.rotate(launches)
    for _ in range(3):
        call()
    torch.cuda.synchronize()
    found = {}
    try:
        kernels = gpu_times.profile_calls(call, LAUNCHES)
        found |= {key: kernels[0][key] for key in ("us", "q1", "q3", "best", "registers")}
    except Exception as error:
        found["error"] = str(error)[:300]
    try:
        found["graph_us"] = gpu_times.time_graph(call, count * max(1, LAUNCHES // count))
    except Exception as error:
        found["graph_us"], found["graph_error"] = None, str(error)[:300]
    return found


def load_yardstick(folder):
    """The CASES of its file cases.py."""
    spec = importlib.util.spec_from_file_location("yardstick_cases", Path(folder) / "cases.py")
    module = sys.modules[spec.name] = importlib.util.module_from_spec(spec)  # Dynamo asks
    spec.loader.exec_module(module)
    return module.CASES


def list_launches(folder, only=""):
    """(case, direction, position, entry) of each kernel of kernels.json."""
    cases = json.loads((folder / "kernels.json").read_text())["cases"]
    return [
        (case, direction, position, entry)
        for case, directions in cases.items()
        for direction, entries in directions.items()
        for position, entry in enumerate(entries)
        if "kernel" in entry and only in case
    ]


def time_all(folder, output, only, deadline):
    """Writes cubins.json after each kernel."""
    torch.zeros(1, device="cuda")  # the context that the driver is asked in
    gpu_times.start_profiler()
    result = {**machine.describe(), "kernels": []}
    for case, direction, position, entry in list_launches(folder, only):
        if time.monotonic() > deadline:
            print("no time left")
            break
        row = {"case": case, "direction": direction, "position": position}
        row |= {"kernel": entry["kernel"], "cubin": entry["cubin"]}
        try:
            row |= time_kernel(case, entry, folder)
            torch.cuda.synchronize()
        except Exception as error:
            row["error"] = str(error)[:300]
        torch.cuda.empty_cache()
        result["kernels"].append(row)
        (output / "cubins.json").write_text(json.dumps(result, indent=1) + "\n")
        us = f"{row['us']:.2f} us" if "us" in row else row.get("error", "")[:80]
        print(f"{case:24} {direction:8} {position:3} {us:>12}  {entry['kernel'][:60]}", flush=True)
