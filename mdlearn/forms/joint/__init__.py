"""Several columns as one problem: convex functions of the decision values of a row, penalties that couple columns.

So are pairs of classes as one unit of work, each with a certificate of its own.

May import the forms beside it and data. Objectives of many classes make them, proximal gradient solves them.
"""
