"""Stochastic gradient descent, averaged or not: Algorithm 2 of the LDM paper, over rows in memory or in portions.

May import forms, data and the compiled steps. `mdlearn.solvers` registers the engines.
"""
