"""Files of rows: CSV and svmlight, plain or packed, in pieces of bounded size.

May import `model` and all below it; commands, experiments and `mdlearn.sources` read through it.
"""
