"""Values and bounds of points, recomputed outside every engine, with what rounding leaves open in the gap.

May import data and the forms beside it. Problems (`forms.problem`) and the driver call it.
"""
