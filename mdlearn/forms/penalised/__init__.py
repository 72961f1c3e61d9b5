"""Penalised problems: terms of the coefficients (norms and linear constraints) beside losses of any kind.

A part of `mdlearn.forms`, whose modules it may import.
"""
