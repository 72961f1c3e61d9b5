"""One driver for all engines: clock, Ctrl-C, callback, progress, history, the best point, and the stop rule.

May import solvers.base, forms and numerics, no engine. `mdlearn.stages` calls it.
"""
