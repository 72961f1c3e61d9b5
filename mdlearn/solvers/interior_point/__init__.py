"""Mehrotra's predictor-corrector for declared hinge terms, over all rows or over those that may still change sides.

May import solvers.systems and solvers.common. `mdlearn.solvers` registers the engine.
"""
