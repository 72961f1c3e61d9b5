"""A margin form as sums over row blocks: values, gradients, Hessians and bounds, and certificates from own passes.

May import forms and data. Objectives say their terms by it; `mdlearn.streaming` calls it.
"""
