"""Checked input: rows, labels, weights, kernels. First station on the way of the data; imports no other station."""
