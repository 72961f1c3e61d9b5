"""Files of rows: CSV and svmlight, plain or packed, in pieces of bounded size.

Uses `data` and `outputs` only; commands, experiments and `mdlearn.sources` read through it.
"""
