"""The command line of a random test: each seed is checked, and one that crashes is a finding."""

import argparse

import torch_stitch


def check_seeds(check, describe, about):
    """check(seed) gives nothing or what differs; "torch: ..." is a fault of torch itself."""
    parser = argparse.ArgumentParser(description=about.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=200)
    parser.add_argument("--first", type=int, default=0)
    args = parser.parse_args()
    failed = excused = 0
    for seed in range(args.first, args.first + args.seeds):
        try:
            difference = check(seed)
        except Exception as error:
            difference = f"{type(error).__name__}: {str(error)[:400]}"
        if difference and difference.startswith("torch: "):
            excused += 1
        elif difference:
            failed += 1
            print(f"seed {seed}: {difference}")
            print("  " + describe(seed).replace("\n", "\n  "), flush=True)
    fallbacks = torch_stitch.counters()["fallback_ops"]
    passed = args.seeds - failed - excused
    apart = f", {excused} that torch's tracing fails" if excused else ""
    print(f"{passed} passed, {failed} failed{apart}, {fallbacks} fallback ops")
    return 1 if failed or fallbacks else 0
