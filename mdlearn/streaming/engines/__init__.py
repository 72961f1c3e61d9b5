"""Newton and proximal Newton steps over row blocks, as state machines that a pass moves on.

May import streaming.sums, forms and the numerics that engines share. `mdlearn.streaming` calls it.
"""
