"""Numerics below everything else."""
