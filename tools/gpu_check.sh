#!/usr/bin/env bash
# On a machine with an NVIDIA GPU: builds, runs the GPU tests, looks for races and stray accesses
# with compute-sanitizer, and measures.  Needs torch 2.11 to 2.13 and no network.
#
#   tools/gpu_check.sh [STEP ...]     PYTHON=python3 OUT=build/gpu_check SECONDS_IN_ALL=590
#
# Without a STEP all are done, in the order in which they are defined below.  Each has a time limit,
# later ones run even where an earlier one fails, and after each of them all logs and JSON files are
# $OUT/gpu_check.tar.gz.  `ready` takes a core that was built elsewhere; `build` builds one.
set -u
cd "$(dirname "$0")/.." || exit 1
OUT=$(realpath -m "${OUT:-build/gpu_check}")
logs=$(mktemp -d)
mkdir -p "$OUT" "$logs/results"
python=${PYTHON:-python3}
py=.venv/bin/python
yardstick=${YARDSTICK:-}  # a folder of cases.py and of cubins, for further measurements
kernels=build/gpu_kernels  # goes on where an earlier call was ended
deadline=${SECONDS_IN_ALL:-590}
processes=$(($(nproc) > 3 ? $(nproc) - 2 : 1))
failed=()

run() {  # NAME SECONDS COMMAND...
  local name=$1 limit=$2 start=$SECONDS status
  shift 2
  [ $((deadline - SECONDS)) -ge "$limit" ] || limit=$((deadline - SECONDS))
  [ "$limit" -gt 0 ] || { echo "== $name: no time left"; failed+=("$name"); return 1; }
  timeout "$limit" "$@" >"$logs/$name.log" 2>&1
  status=$?
  [ $status -eq 0 ] || failed+=("$name")
  echo "== $name: status $status, $((SECONDS - start)) s"
  tail -n "${TAIL:-8}" "$logs/$name.log" | cut -c 1-300
  [ ! -d "$kernels" ] || cp -r "$kernels" "$logs/results"
  tar czf "$OUT/gpu_check.tar.gz" -C "$logs" .
  return $status
}

tests() {  # NAME SECONDS PYTEST_ARGUMENTS...
  local name=$1 limit=$2
  shift 2
  TAIL=16 run "$name" "$limit" "$py" -m pytest -q -n "$processes" --show-capture=no --tb=short \
    --junitxml "$logs/$name.xml" "$@"
}

step_ready() { run ready 60 make PYTHON="$python" .venv/ready_build; }
step_build() { run build 240 make PYTHON="$python" build; }
# Where one function fails, so would the hundreds that follow.
step_smoke() {
  TAIL=40 run smoke 60 "$py" -m pytest -q -x tests/gpu/test_cuda.py -k "test_tiny or other_stream" ||
    exit 1
}
step_gpu() { tests gpu 150 tests/gpu/test_cuda.py; }
# ptxsim against this GPU; the results are a JSON file like those of the measurements.
step_agrees() {
  tests agrees 150 tests/gpu/test_ptxsim_agrees.py
  run agrees_summary 20 "$py" -m benchmarks.pytest_summary ptxsim_agrees "$logs/agrees.xml" \
    --what "kernels on ptxsim and on this GPU, same bits" --output "$logs/results"
}
# The tests of ops, values and models again, their tensors on the GPU.
step_ops() {
  tests ops 150 --gpu tests/python/test_{ops,values,models,pieces,workloads,scatter,joined_parts}.py
}
# Random programs, programs of aliases, and torch's own samples of every op, as far as they come.
step_fuzz() {
  local program="$py -W ignore tests/fuzz/in_parallel.py"
  TAIL=60 run fuzz_random 80 $program --jobs "$processes" --seconds 60 \
    --output "$logs/results/fuzz_random" random_programs.py --seeds 100000 --device cuda
  TAIL=40 run fuzz_aliases 70 $program --jobs $((processes / 2 + 1)) --seconds 50 \
    --output "$logs/results/fuzz_aliases" alias_programs.py --seeds 100000 --device cuda
  TAIL=60 run opinfo 150 $program --jobs "$processes" --seconds 130 --stuck 90 \
    --output "$logs/results/opinfo" opinfo_sweep.py --device cuda
}
step_sanitizer() {
  local sanitizer tool
  sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer) || return
  for tool in memcheck racecheck; do
    # Torch's caching allocator would hide accesses beyond the end of a tensor.
    run "$tool" 90 env PYTORCH_NO_CUDA_MEMORY_CACHING=1 "$sanitizer" --tool "$tool" \
      --error-exitcode 1 "$py" -m pytest -q tests/gpu -k "test_reductions and 64 and 1" -x
  done
}
# On this machine's processor; what a GPU is needed for is left to the other steps.
step_python() { CUDA_VISIBLE_DEVICES="" tests python 280 tests/python; }
step_numbers() {
  run numbers 120 "$py" -m benchmarks.device_numbers --output "$logs/results/device_numbers.json"
  # The line of a row's `saved` (csrc/cost/device_spec.cpp); its LAUNCH_US is that of the rows.
  run calibrate 60 "$py" -m benchmarks.calibrate --output "$logs/results/calibration.json"
}
# Each kernel of the named subgraphs, beside those of eager and of Inductor.
kernel_times() {  # NAME SECONDS ARGUMENTS...
  local name=$1 limit=$2
  shift 2
  TAIL=${TAIL:-70} run "$name" "$limit" "$py" -m benchmarks.gpu_kernels --output "$kernels" \
    ${yardstick:+--yardstick "$yardstick"} --seconds $((limit - 5)) "$@"
}
step_warm() { kernel_times warm 300 --suite planned yardstick --warm "$processes"; }
step_kernels() { kernel_times kernels 400 --suite planned yardstick; }
# The clock's numbers fitted to half of what `kernels` and `cubins` have measured, and how far it is
# off on the other half: results/gpu_kernels/clock_fit.json.  Builds for each value, minutes of a
# machine that needs no GPU, so that it is asked for by name.
step_fit() {
  run fit 500 "$py" -m benchmarks.fit_clock --output "$kernels" \
    ${yardstick:+--yardstick "$yardstick"}
}
step_cubins() { [ -z "$yardstick" ] || TAIL=1 kernel_times cubins 150 --cubins; }
step_bench() {
  local group
  for group in time_as_used tiny_ops; do
    TAIL=12 run "bench_$group" 200 "$py" -m benchmarks.run --only "$group" --rounds 5 \
      --output "$logs/results"
  done
}
step_demo() { run demo 90 "$py" -m benchmarks.demo; }

nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem --format=csv >"$logs/gpu.csv" ||
  { echo "no NVIDIA GPU: nvidia-smi does not run"; exit 1; }
cat "$logs/gpu.csv"
[ $# -gt 0 ] || set -- build smoke gpu agrees ops fuzz sanitizer numbers warm kernels cubins bench demo
for name; do "step_$name"; done

if [ ${#failed[@]} -gt 0 ]; then
  echo "FAILED: ${failed[*]}"
  exit 1
fi
echo "all steps passed"
