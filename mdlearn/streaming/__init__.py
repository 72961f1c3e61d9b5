"""A fit to row blocks: a first pass that checks and counts, passes of an engine, and a last one that certifies.

May import stages, objectives and all below them; `mdlearn.api` calls `fitting`. Of its folders, `sums` lies below the
objectives, which say their terms by it, and `engines` beside the engines in memory.
"""
