"""What several engines use: primal-dual values of a column, starts, active sets, multiplier methods.

May import solvers.systems, forms, data and numerics. Engines call it; it knows no engine.
"""
