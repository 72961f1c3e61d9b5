"""Leave-one-out: by fits without one row, in closed form for quadratics, and by the LDM paper's bound.

May import selection.paths and margins. `mdlearn.selection` calls it for ``cv="loo"`` and ``cv="pseudo-loo"``.
"""
