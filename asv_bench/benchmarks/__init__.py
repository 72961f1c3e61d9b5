"""Benchmarks of mdlearn. Times are ratios where possible; the gap is tracked beside every time."""
