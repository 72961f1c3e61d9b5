"""Dual coordinate descent: on explicit rows, on centred sparse rows, on a Gram matrix, and Gauss-Seidel sweeps.

May import forms, data, numerics and the numerics that engines share. `mdlearn.solvers` registers the engine.
"""
