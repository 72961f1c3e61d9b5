"""Problems without a loss or with the squared one: one factorisation, or one decomposition for a whole grid.

May import solvers.systems and solvers.common. `mdlearn.solvers` registers the engine; paths use the rest.
"""
