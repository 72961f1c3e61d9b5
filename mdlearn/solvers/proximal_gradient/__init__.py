"""Accelerated proximal gradient for penalties and composites, finished by Newton steps where F is smooth.

May import forms, data, numerics and the numerics that engines share. `mdlearn.solvers` registers the engine.
"""
