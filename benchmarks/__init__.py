"""Measurements: `python -m benchmarks.run` (make bench) and `python -m benchmarks.demo` (make demo)."""
