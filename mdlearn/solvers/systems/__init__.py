"""Linear systems Q + R' D R of explicit rows, blocks of rows or a Gram matrix, and which of them is the cheapest.

May import numerics, data and forms. Every second-order engine calls it; it knows no engine.
"""
