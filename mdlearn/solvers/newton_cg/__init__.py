"""Smooth losses with a kernel whose matrix is never there: Newton steps by preconditioned conjugate gradients.

Imports forms, data and what engines share; the registry lists the engine, `auto` chooses it.
"""
