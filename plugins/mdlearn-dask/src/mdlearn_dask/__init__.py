"""Rows that lie on a Dask cluster, for mdlearn: sums over blocks are made where the blocks are."""

import mdlearn

from .blocks import DaskBlocks

requires_api = 1

__all__ = ["DaskBlocks"]


@mdlearn.hookimpl
def mdlearn_sources():
    """What makes row blocks of Dask's collections."""
    return [DaskBlocks]
