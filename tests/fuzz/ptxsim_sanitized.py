"""The simulator under AddressSanitizer and UBSan: its C++ tests, then mutated PTX texts.

    python tests/fuzz/ptxsim_sanitized.py [--runs 100000] [--output FOLDER]

`make sanitize` builds what this runs.  The texts that are mutated are what NVRTC makes of the
golden kernels and of the samples of tests/python; they are kept beside the programs.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path[:0] = [str(ROOT / "tests" / "python"), str(ROOT)]
from ptxsim_kernels.nvrtc_ptx import to_ptx  # noqa: E402
from test_device_headers import NVRTC, TEXT  # noqa: E402

from benchmarks import machine  # noqa: E402
from benchmarks.run import results_directory  # noqa: E402

GOLDEN = sorted((ROOT / "tests/golden/text").glob("*.h200.txt"))
SAMPLES = sorted((ROOT / "tests/python/ptxsim_kernels/samples").glob("*.cu"))
SANITIZERS = {
    # Leaks are left out: modules stay loaded for the life of the process, as with the driver.
    "ASAN_OPTIONS": "detect_leaks=0:detect_stack_use_after_return=1",
    "UBSAN_OPTIONS": "print_stacktrace=1",
}


def write_corpus(folder):
    """The PTX files, made anew: a few seconds."""
    if NVRTC is None:
        sys.exit("NVRTC is missing: pip install nvidia-cuda-nvrtc")
    folder.mkdir(parents=True, exist_ok=True)
    for path in (*GOLDEN, *SAMPLES):
        headers = TEXT if path in GOLDEN else ""
        (folder / f"{path.stem}.ptx").write_text(to_ptx(headers + path.read_text()))
    return sorted(folder.glob("*.ptx"))


def run(command):
    """What it prints on stdout, its exit status and how long it took."""
    start = time.perf_counter()
    process = subprocess.run(
        command, stdout=subprocess.PIPE, text=True, env=os.environ | SANITIZERS
    )
    return process.stdout, process.returncode, round(time.perf_counter() - start, 1)


def run_tests(program):
    report = program.parent / "ptxsim_tests.json"
    _, status, seconds = run([program, "--gtest_brief=1", f"--gtest_output=json:{report}"])
    counts = json.loads(report.read_text()) if status in (0, 1) else {}
    found = {"tests": counts.get("tests"), "failures": counts.get("failures")}
    return found | {"status": status, "seconds": seconds}


def run_fuzzer(program, runs):
    corpus = write_corpus(program.parent / "corpus")
    printed, status, seconds = run([program, "--runs", str(runs), *corpus])
    counts = json.loads(printed.splitlines()[-1]) if printed else {}
    return {"corpus": len(corpus)} | counts | {"status": status, "seconds": seconds}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--build-dir", type=Path, default=ROOT / "build" / "sanitize")
    parser.add_argument("--runs", type=int, default=100_000)
    parser.add_argument("--output", type=Path, help="the folder for the JSON file")
    args = parser.parse_args(arguments)
    result = machine.describe()
    result["tests"] = run_tests(args.build_dir / "ptxsim_tests")
    result["fuzz"] = run_fuzzer(args.build_dir / "ptx_files", args.runs)
    text = json.dumps(result, indent=1)
    print(text)
    directory = args.output or results_directory(result)
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "ptxsim_sanitized.json").write_text(text + "\n")
    return 1 if result["tests"]["status"] or result["fuzz"]["status"] else 0


if __name__ == "__main__":
    sys.exit(main())
