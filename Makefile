# Every target does the set-up it needs, in .venv.  PYTHON=... chooses the interpreter.
VENV := .venv
PY := $(VENV)/bin/python
TESTS := build/cmake/stitch_tests

# The first of these that runs and is 3.11 to 3.13; looked up only while .venv is not ready.
PYTHON ?= $(shell for python in python3 python3.13 python3.12 python3.11 python; do \
  $$python -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 13))' 2>/dev/null \
  && { echo $$python; break; }; done)

.NOTPARALLEL:
FUZZ_SEEDS := 20000
SIMULATED_SEEDS := 2000
ALIAS_SEEDS := 3000
.PHONY: models notebooks fuzz opinfo soak mutants simulate sanitize setup build build-tests test test-cpp test-python \
  demo bench lint format clean

build: $(VENV)/ready_build
	@$(PY) tools/build_core.py _core

setup:
	@rm -f $(VENV)/ready_* build/cmake/configured_for.txt
	@$(MAKE) --no-print-directory $(VENV)/ready_test

# The script touches these files; ready_test includes ready_build.
$(VENV)/ready_build $(VENV)/ready_test $(VENV)/ready_lint: $(VENV)/ready_%: \
    tools/setup_venv.py tools/build_core.py pyproject.toml
	@test -n "$(PYTHON)" || { echo "Python 3.11 to 3.13 was not found: install one, or name it:" \
	  "make PYTHON=/path/to/python3.12" >&2; exit 1; }
	@$(PYTHON) tools/setup_venv.py $*

build-tests: $(VENV)/ready_test
	@$(PY) tools/build_core.py

# The C++ tests use one core for a tenth of the time: the Python tests begin beside them.
test: build-tests
	@$(MAKE) --no-print-directory -o build-tests test-cpp & cpp=$$!; \
	$(MAKE) --no-print-directory -o build-tests test-python; python=$$?; \
	wait $$cpp && exit $$python

# The limits end a run that hangs; they are several times what a run takes.

test-cpp: build-tests
	@if [ -x $(TESTS) ]; then timeout 900 $(TESTS) --gtest_brief=1; else \
	  echo "C++ tests not run: GoogleTest was not found (install libgtest-dev, then: make setup)"; \
	  test -z "$${STITCH_CI#0}"; fi

# By two processes: most of the time is spent in tracing, by one thread.
test-python: build-tests
	@timeout 3900 $(PY) -m pytest -q tests/python $(wildcard tests/gpu) \
	  $$($(PY) -c "import xdist; print('-n 2 --dist loadfile')" 2>/dev/null)

demo: build
	@$(PY) -m benchmarks.demo

bench: build
	@$(PY) -m benchmarks.run $(if $(YARDSTICK),--yardstick $(YARDSTICK))

# Public architectures; the libraries that they come from are no part of the normal set-up.
models: build
	@$(PY) tools/setup_venv.py models
	@$(PY) -m benchmarks.public_models --what judge --record
	@$(PY) -m benchmarks.public_models --what time --record

# With their outputs under build/notebooks; what executes them is no part of the normal set-up.
notebooks: build
	@$(PY) tools/setup_venv.py notebooks
	@$(PY) -m benchmarks.run_notebooks $(NOTEBOOKS)

# Hours; each goes on where it was stopped, from a file under build/.
fuzz: build
	@$(PY) -W ignore tests/fuzz/random_programs.py --seeds $(FUZZ_SEEDS) --state build/fuzz.json --record
	@$(PY) -W ignore tests/fuzz/random_programs.py --seeds $(SIMULATED_SEEDS) --simulate \
	  --state build/fuzz_simulated.json --record
	@$(PY) -W ignore tests/fuzz/alias_programs.py --seeds $(ALIAS_SEEDS) \
	  --state build/fuzz_aliases.json --record

opinfo: build
	@$(PY) -W ignore tests/fuzz/opinfo_sweep.py --record

# Goes on where it was stopped, too.
soak: build
	@$(PY) -m tests.support.soak --state build/soak.json

mutants: build
	@$(PY) tests/fuzz/ptxsim_mutants.py

# These tests, their kernels a GPU's, run by ptxsim with all checks.
SIMULATED := $(patsubst %,tests/python/test_%.py,ops values models pieces workloads scatter \
  joined_parts)
simulate: build
	@rm -f build/simulate.xml
	@$(PY) -m pytest -q --show-capture=no --simulate --junitxml build/simulate.xml $(SIMULATED); \
	  $(PY) -m benchmarks.pytest_summary ptxsim_tests build/simulate.xml \
	    --what "kernels of the tests on ptxsim"

# The simulator, its C++ tests and its fuzzer, in a build folder of their own.
sanitize: $(VENV)/ready_test
	@$(PY) tools/build_core.py --build-dir build/sanitize -D STITCH_BINDINGS=OFF \
	  -D STITCH_SANITIZE=address,undefined ptxsim_tests ptx_files
	@$(PY) tests/fuzz/ptxsim_sanitized.py

lint: $(VENV)/ready_lint
	@status=0; for check in format layers sizes; do \
	  $(PY) tools/check_$$check.py || status=1; done; exit $$status

format: $(VENV)/ready_lint
	@$(PY) tools/check_format.py --fix

clean:
	rm -rf build dist torch_stitch/_core*.so torch_stitch.egg-info
