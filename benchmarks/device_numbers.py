"""Measures what device_spec.cpp, numbers.def and sass.def say of a GPU, in less than a minute.

`python -m benchmarks.device_numbers --output FILE [--only NAME]`.  The file is written after each
group; a group that fails leaves its error there.
"""

import argparse
import ctypes
import json
import statistics
import time
from pathlib import Path

import torch

from benchmarks import device_instructions, machine
from benchmarks.device_timing import (
    Kernel,
    attempt,
    capture,
    card_state,
    chain_of,
    errors,
    kernel,
    multiprocessors,
    report,
    report_all,
    results,
    span,
    target_name,
    time_behind,
    time_node,
    time_us,
    zeros,
)

MB = 1 << 20
OPERANDS = {
    "float": (ctypes.c_float, 0.75),
    "double": (ctypes.c_double, 0.75),
    "unsigned": (ctypes.c_uint, 3),
    "unsigned long long": (ctypes.c_ulonglong, 3),
    device_instructions.SHARED: (ctypes.c_uint, 0),
}
MAX_DYNAMIC_SHARED, NON_PORTABLE_CLUSTER = 8, 14  # of CUfunction_attribute

# Groups of numbers, of most value first.


def measure_launches():
    sms = multiprocessors()
    nothing = kernel("nothing")
    for blocks, threads in ((1, 32), (sms, 256), (sms, 1024), (8 * sms, 256)):
        shape = f"{blocks}x{threads}"
        device_us, host_us = time_behind(nothing.prepare(blocks, threads))
        report_all(f"stream_launch_{shape}", device_us, "us", "queued", "spec:launch_us")
        if blocks == 1:
            report_all("host_launch", host_us, "us", "cuLaunchKernel by ctypes, queue not full")
        node_us = time_node(nothing.prepare(blocks, threads))
        report_all(f"graph_node_{shape}", node_us, "us", "slope, empty", "spec:launch_us")
    alone = time_us(capture(nothing.prepare(sms, 256), 1).replay, 31)
    report_all("graph_of_one", alone, "us", "events around a replay")
    together = nothing.prepare(sms, 256, cooperative=True)
    report_all("cooperative_stream_launch", time_behind(together)[0], "us", "queued")
    report_all("cooperative_graph_node", time_node(together), "us", "slope")


def measure_grid_barriers():
    counter = zeros(1, torch.int32)
    sms = multiprocessors()
    for per_sm, threads in ((1, 256), (1, 512), (1, 1024), (2, 256), (2, 512), (2, 1024)):
        calls = [
            kernel("meet").prepare(per_sm * sms, threads, counter, n, cooperative=True)
            for n in (100, 600)
        ]
        few, many = (sorted(time_us(call)) for call in calls)
        slopes = [(b - a) / 500 for a, b in zip(few, many, strict=True)]
        name = f"grid_barrier_{per_sm}x{threads}"
        report_all(name, slopes, "us", "slope over barriers", "spec:barrier_us")


def measure_last_blocks():
    counter, parts, total = zeros(1, torch.int32), zeros(4096, torch.float), zeros(32, torch.float)
    for per_sm in (1, 2, 8):
        blocks = per_sm * multiprocessors()
        with_last, without = (
            statistics.median(time_node(kernel("gather").prepare(blocks, 256, *args, last)))
            for args in [(counter, parts, total)]
            for last in (1, 0)
        )
        how = f"node that stores and gathers less one that stores ({without:.3f} us)"
        report(f"last_block_{blocks}", with_last - without, "us", how, "spec:last_block_us")


def measure_memory():
    sms, size = multiprocessors(), 512 * MB
    buffers = [torch.randint(2**60, (size // 8,), device="cuda") for _ in range(2)]
    pieces = size // 16
    shapes = {
        "persistent": (8 * sms, 256, 4),
        "persistent1024": (2 * sms, 1024, 4),
        "one_shot": (pieces // 1024, 256, 4),
        "one_shot1": (pieces // 256, 256, 1),
    }
    for what, times in (("read", 1), ("write", 1), ("copy", 2)):
        for shape, (blocks, threads, unroll) in shapes.items():
            call = kernel(f"{what}{unroll}").prepare(blocks, threads, *buffers, pieces, 1)
            rates = [times * size / us for us in time_us(call)]
            report_all(f"dram_{what}_{shape}", rates, "B/us", "512 MB", "spec:dram_bytes_per_us")
    rates = [2 * size / us for us in time_us(lambda: buffers[1].copy_(buffers[0]))]
    report_all("dram_copy_torch", rates, "B/us", "copy_ of 512 MB", "spec:dram_bytes_per_us")


def measure_second_cache():
    sms = multiprocessors()
    data = torch.randint(2**60, (160 * MB // 8,), device="cuda")
    for megabytes in (4, 8, 16, 24, 32, 40, 48, 56, 64, 80, 96, 128, 160):
        more = max(16, 1024 // megabytes)
        calls = [
            kernel("read4").prepare(2 * sms, 1024, data, data, megabytes * MB // 16, n)
            for n in (8, 8 + more)
        ]
        few, many = (sorted(time_us(call, 7)) for call in calls)
        rates = [more * megabytes * MB / (b - a) for a, b in zip(few, many, strict=True)]
        places = "spec:l2_bytes_per_us" if megabytes == 16 else "number:second_cache_share"
        report_all(f"cached_read_{megabytes}MB", rates, "B/us", "ld.cg, slope over passes", places)
    few, many = (
        time_us(kernel("read4").prepare(1, 1024, data, data, MB // 16, n), 7) for n in (8, 72)
    )
    rates = [64 * MB / (b - a) / 1980 for a, b in zip(sorted(few), sorted(many), strict=True)]
    report_all("port", rates, "B/cycle of 1980 MHz", "one block, 1 MB, ld.cg", "number:port_bytes")


def chase(name, start, steps):
    out = zeros(2)
    cycles = []
    for _ in range(5):
        kernel(name).prepare(1, 1, start, steps, out)()
        cycles.append(out[0].item() / steps)
    return cycles


def measure_latencies():
    rows = (
        ("first_cache", "ca", 16 << 10, 4096, "number:first_cache_latency"),
        ("second_cache", "cg", 8 * MB, 16384, "number:second_cache_latency spec:latencies.cache"),
        ("dram_512MB", "cg", 512 * MB, 4096, "number:memory_latency spec:latencies.memory"),
        ("dram_2GB", "cg", 2048 * MB, 4096, "number:memory_latency spec:latencies.memory"),
    )
    for name, modifier, size, steps, places in rows:
        data, start = chain_of(size, 128 if size < MB else 256)
        if size > 64 * MB:
            flush = zeros(128 * MB // 8)
            values = []
            for _ in range(5):  # what was loaded before lies in the cache
                flush += 1
                values += chase(f"chase_{modifier}", start, steps)[:1]
        else:
            chase(f"chase_{modifier}", start, size // 128)
            values = chase(f"chase_{modifier}", start, steps)
        report_all(f"latency_{name}", values, "cycles", "dependent loads, one thread", places)
    lines = zeros(64 * 1024)  # each its own line, 8 KB apart
    lines[::1024] = lines.data_ptr() + torch.arange(64, device="cuda") * 8192
    each = [statistics.median(chase("chase_cg", int(x), 512)) for x in lines[::1024].tolist()]
    how = f"one line again and again, 64 lines: {sorted(round(x) for x in each)}"
    report_all("latency_lines", each, "cycles", how, "number:second_cache_latency")


def measure_atomics():
    at, out = zeros(64 * MB // 4, torch.int32), zeros(2)
    for ordered, name in ((0, "relaxed"), (1, "acq_rel")):
        call = kernel("atomic_chain").prepare(1, 1, at, 1000, ordered, out)
        values = [(call(), out[0].item() / 1000)[1] for _ in range(6)][1:]
        report_all(f"atomic_{name}", values, "cycles", "chain, one thread", "number:atomic_latency")
    blocks, rounds = 2 * multiprocessors(), 64
    steps = {"one_address": (0, 0), "one_a_warp": (0, 32), "each_lane": (1, 32), "sector": (8, 256)}
    for what in ("atomics", "reds"):
        for name, (lane, warp) in steps.items():
            call = kernel(what).prepare(blocks, 1024, at, lane, warp, rounds, out)
            count = blocks * 1024 * rounds
            rates = [count / us for us in time_us(call, 5)]
            report_all(f"{what}_{name}", rates, "lanes/us", "of the device", "sass:red sass:atomg")


def measure_instruction(row, out, rounds=32):
    if row.arch > 10 * torch.cuda.get_device_capability()[0]:
        return
    sink = zeros(2048)
    of, value = OPERANDS[row.of]
    cycles = {}
    for warps, chains in ((1, 1), (32, 4)):
        text = device_instructions.kernel_text(row, chains)
        call = Kernel(text, "chain", target_name()).prepare(
            1, 32 * warps, out, sink, rounds, of(value), of(value)
        )
        call()
        taken = [(call(), span(out, warps))[1] for _ in range(5)]
        cycles[warps] = [t / rounds / device_instructions.UNROLL for t in taken]
    sass, place = " + ".join(row.sass), f"sass:{row.row}"
    report_all(f"latency_{row.name}", cycles[1], "cycles", f"chain of {sass}", place)
    shared = row.lane_bytes  # all schedulers' pipe, or one's
    scale = 1 / (32 * shared // 128) if shared else 4
    issue = [t / 32 * scale for t in cycles[32]]
    lanes = 1024 / statistics.median(cycles[32])
    unit = "cycles of the shared pipe for 128 bytes" if shared else "cycles of a scheduler"
    how = f"{sass}, 32 warps: {lanes:.1f} lanes a cycle"
    report_all(f"issue_{row.name}", issue, unit, how, place)


def measure_instructions():
    out = zeros(64)
    for row in device_instructions.ROWS:
        with attempt(row.name):
            measure_instruction(row, out)
    data, sink = zeros(MB // 8), zeros(1)
    call = kernel("first_cache").prepare(1, 1024, data, 200, 0, out, sink)
    rates = [(call(), 200 * 8 * 1024 * 16 / span(out, 32))[1] for _ in range(6)]
    report_all("first_cache_rate", rates[1:], "B/cycle", "LDG.128 that hit", "sass:ldg")


def measure_barriers_and_blocks():
    out = zeros(2)
    for warps in (1, 2, 4, 8, 16, 32):
        call = kernel("block_barriers").prepare(1, 32 * warps, out, 4096)
        values = [(call(), out[0].item() / 4096)[1] for _ in range(6)][1:]
        places = "number:barrier_latency spec:latencies.barrier"
        report_all(f"barrier_{warps}_warps", values, "cycles", "bar.sync, one block", places)
    for threads in (32, 128, 256, 512, 1024):
        calls = [kernel("nothing").prepare(n, threads) for n in (20_000, 120_000)]
        few, many = (sorted(time_us(call, 7)) for call in calls)
        values = [(b - a) / 100 for a, b in zip(few, many, strict=True)]
        how = "slope over empty blocks"
        report_all(f"block_{threads}", values, "ns", how, "number:block_interval_ns")
    measure_restarts()


def measure_restarts():
    sms = multiprocessors()
    stamp = kernel("stamp")
    stamp.allow(MAX_DYNAMIC_SHARED, 160 << 10)
    out = zeros(4 * 20 * sms)
    for threads in (128, 256, 1024):
        for _ in range(2):
            stamp.prepare(20 * sms, threads, out, 3000, shared=160 << 10)()
        torch.cuda.synchronize()
        gaps, rows = [], out.view(-1, 4).tolist()
        for sm in {row[0] for row in rows}:
            own = sorted(row[1:3] for row in rows if row[0] == sm)
            gaps += [later[0] - earlier[1] for earlier, later in zip(own, own[1:], strict=False)]
        how = "from a block's last clock to the next one's first, one block resident"
        report_all(f"block_restart_{threads}", gaps, "cycles", how, "number:block_restart")
        starts = sorted(row[3] for row in rows[:sms])
        report(f"ramp_{threads}", float(starts[-1] - starts[0]), "ns", "first wave, globaltimer")


def measure_occupancy():
    sms, size = multiprocessors(), 512 * MB
    buffers = [torch.randint(2**60, (size // 8,), device="cuda") for _ in range(2)]
    for what in ("copy1", "copy2", "copy4", "read1", "read4"):
        for per_sm in (1, 2, 4, 8):
            call = kernel(what).prepare(per_sm * sms, 256, *buffers, size // 16, 1)
            moved = size * (2 if what.startswith("copy") else 1)
            flight = per_sm * 256 * 16 * int(what[-1])
            how = f"{flight} bytes of loads in flight on a multiprocessor"
            name = f"{what}_{per_sm}_blocks"
            report_all(name, [moved / us for us in time_us(call, 5)], "B/us", how)


def measure_cluster(size, out, sink, rounds):
    call_of = kernel("cluster", f"#define CLUSTER {size}\n")
    if size > 8:
        call_of.allow(NON_PORTABLE_CLUSTER, 1)
    for clusters, kind in ((1, "one"), (max(1, 96 // size), "many")):
        blocks = clusters * size
        call = call_of.prepare(blocks, 256, out, rounds, 0, sink)
        for _ in range(2):
            call()
        torch.cuda.synchronize()
        rows = out.view(-1, 4)[:blocks].double().median(0).values.tolist()
        name = f"cluster{size}_{kind}"
        report(f"{name}_barrier", rows[0] / rounds, "cycles", "arrive and wait, 256 threads")
        how = "chain of LD from the next block, with an add and a move each"
        report(f"{name}_latency", rows[1] / rounds, "cycles", how)
        rate = rounds * 8 * 256 * 16 / rows[2]
        report(f"{name}_rate", rate, "B/cycle", "a block, 16 bytes a lane, of the next block")


def measure_clusters():
    out, sink, rounds = zeros(4096), zeros(1), 256
    for size in (2, 4, 8, 16):
        with attempt(f"cluster{size}"):
            measure_cluster(size, out, sink, rounds)


def measure_clock(when="before"):
    sms = multiprocessors()
    out = zeros(2 * sms)
    call = kernel("spin").prepare(sms, 1024, out, 40_000_000)
    for name in ("cold", "warm"):
        call()
        rows = out.view(-1, 2).double()
        rates = (rows[:, 0] / rows[:, 1] * 1e3).tolist()
        report_all(f"clock_{when}_{name}", rates, "cycles/us", "FFMA", "spec:cycles_per_us")


GROUPS = {
    "clock": measure_clock,
    "launches": measure_launches,
    "grid_barriers": measure_grid_barriers,
    "last_blocks": measure_last_blocks,
    "memory": measure_memory,
    "second_cache": measure_second_cache,
    "latencies": measure_latencies,
    "atomics": measure_atomics,
    "instructions": measure_instructions,
    "blocks": measure_barriers_and_blocks,
    "occupancy": measure_occupancy,
    "clusters": measure_clusters,
    "clock_after": lambda: measure_clock("after"),
}


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--output", type=Path, required=True)
    parser.add_argument("--only", choices=GROUPS, action="append")
    args = parser.parse_args()
    if not torch.cuda.is_available():
        parser.error("there is no GPU to measure")
    args.output.parent.mkdir(parents=True, exist_ok=True)
    torch.zeros(1, device="cuda")  # makes the context that the driver's calls need
    answer = {**machine.describe(), "before": card_state(), "seconds": {}, "errors": errors}
    answer["numbers"] = results
    for name in args.only or GROUPS:
        before = time.perf_counter()
        with attempt(name):
            GROUPS[name]()
        answer["seconds"][name] = round(time.perf_counter() - before, 2)
        answer["after"] = card_state()
        args.output.write_text(json.dumps(answer, indent=1) + "\n")
    print(answer["seconds"], "failed:", list(errors))


if __name__ == "__main__":
    main()
