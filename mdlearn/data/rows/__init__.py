"""Training rows: dense or CSR, float32 or float64, read as they were given, worked on in pieces.

May import numerics and errors. Everything that touches a row calls it; it knows nothing of kernels or problems.
"""
