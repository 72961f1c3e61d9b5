"""Fits at the points of a grid: which points, in which order, sharing what does not depend on the point.

May import api, stages and the decompositions of solvers.quadratic. `mdlearn.selection` and leave-one-out call it.
"""
