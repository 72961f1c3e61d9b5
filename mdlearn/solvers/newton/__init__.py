"""Newton's method for losses with a continuous slope: squared hinges, logistic terms and given losses.

May import solvers.systems and solvers.common. `mdlearn.solvers` registers the engine.
"""
