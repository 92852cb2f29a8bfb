#!/usr/bin/env bash
# On a machine with an NVIDIA GPU: builds, runs the GPU tests, looks for races and stray accesses
# with compute-sanitizer, and measures.  Needs torch 2.11 to 2.13 and no network.
#
#   tools/gpu_check.sh [PYTHON]
#
# JSON and logs go to $OUT (build/gpu_check when unset).  Every step has a time limit, all
# together stay under ten minutes; later steps run even where an earlier one fails.
set -u
cd "$(dirname "$0")/.." || exit 1
OUT=$(realpath -m "${OUT:-build/gpu_check}")
mkdir -p "$OUT"
python=${1:-python3}
failed=()
deadline=590

step() {  # NAME SECONDS COMMAND...
  local name=$1 limit=$2 start=$SECONDS status
  shift 2
  [ $((deadline - SECONDS)) -ge "$limit" ] || limit=$((deadline - SECONDS))
  [ "$limit" -gt 0 ] || { echo "== $name: no time left"; failed+=("$name"); return 1; }
  echo "== $name"
  timeout "$limit" "$@" >"$OUT/$name.log" 2>&1
  status=$?
  tail -n 12 "$OUT/$name.log"
  echo "== $name: status $status, $((SECONDS - start)) s"
  [ $status -eq 0 ] || failed+=("$name")
  return $status
}

nvidia-smi --query-gpu=name,driver_version,clocks.sm,clocks.mem --format=csv >"$OUT/gpu.csv" ||
  { echo "no NVIDIA GPU: nvidia-smi does not run"; exit 1; }

step build 240 make PYTHON="$python" build || exit 1
py=.venv/bin/python
step tests 150 "$py" -m pytest -q tests/gpu/test_cuda.py --junitxml "$OUT/tests.xml"
# ptxsim against this GPU; the results are a JSON file like those of the measurements.
step agrees 120 "$py" -m pytest -q tests/gpu/test_ptxsim_agrees.py --show-capture=no \
  --junitxml "$OUT/agrees.xml"
step agrees_summary 20 "$py" -m benchmarks.pytest_summary ptxsim_agrees "$OUT/agrees.xml" \
  --what "kernels on ptxsim and on this GPU, same bits" --output "$OUT/results"

sanitizer=$(command -v compute-sanitizer || ls /usr/local/cuda/bin/compute-sanitizer 2>/dev/null)
if [ -n "$sanitizer" ]; then
  for tool in memcheck racecheck; do
    # Torch's caching allocator would hide accesses beyond the end of a tensor.
    step "$tool" 60 env PYTORCH_NO_CUDA_MEMORY_CACHING=1 "$sanitizer" --tool "$tool" \
      --error-exitcode 1 "$py" -m pytest -q tests/gpu -k "test_reductions and 64 and 1" -x
  done
else
  echo "== compute-sanitizer was not found: skipped"
fi

for group in planned_kernels time_as_used tiny_ops nvrtc bert_layer; do
  step "bench_$group" 120 "$py" -m benchmarks.run --only "$group" --rounds 5 --output "$OUT/results"
done
# The line of a row's `saved` (csrc/cost/device_spec.cpp); its LAUNCH_US is that of the rows.
step calibrate 60 "$py" -m benchmarks.calibrate --output "$OUT/results/calibration.json"
step demo 90 "$py" -m benchmarks.demo

if [ ${#failed[@]} -gt 0 ]; then
  echo "FAILED: ${failed[*]}"
  exit 1
fi
echo "all steps passed"
