"""Kernel problems of one hinge term by working sets: where they begin, greedy steps, starts from other solutions.

May import solvers.dual_hessian and solvers.common. Coordinate descent on a Gram matrix calls it.
"""
