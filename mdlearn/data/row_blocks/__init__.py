"""Rows that come in blocks, again for every pass: sources, a checked summary, a sample, checkpoints.

May import the other folders of data. `mdlearn.streaming`, `mdlearn.sources` and plugins call it.
"""
