"""A fit to row blocks: a first pass that checks and counts, passes of an engine, and a last one that certifies."""

from mdlearn.streaming.fitting import blocks_of, fit_blocks

__all__ = ["blocks_of", "fit_blocks"]
