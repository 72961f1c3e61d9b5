"""Compiled kernels; they import nothing of mdlearn."""
