"""All cases of the table of peers, family by family."""

from . import peer_dense, peer_kernel, peer_local, peer_many, peer_sparse

CASES = (*peer_dense.CASES, *peer_sparse.CASES, *peer_kernel.CASES, *peer_many.CASES, *peer_local.CASES)
