"""Kernel machines without a kernel matrix: working sets, and columns that are computed when multipliers change.

Imports forms, data and what engines share; the registry lists the engine, `auto` chooses it.
"""
