"""How an objective is declared: its parameters, weights relative to C m, and the terms of a binary problem.

May import forms and data. `mdlearn.objectives.base` calls it, and shows its public names.
"""
