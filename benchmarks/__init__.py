"""Measurements: benchmarks.run measures what must show, benchmarks.demo runs a model."""
