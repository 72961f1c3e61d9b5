"""Coordinate descent first, semismooth Newton after it: one hinge or squared hinge a row, over explicit rows.

May import solvers.systems and solvers.common. `mdlearn.solvers` registers the engine.
"""
