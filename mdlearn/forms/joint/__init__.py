"""Several columns as one problem: convex functions of the decision values of a row, penalties that couple columns.

May import the forms beside it and data. Objectives of many classes make them, proximal gradient solves them.
"""
