"""All cases of the table of peers, family by family."""

from . import peer_dense, peer_kernel, peer_local, peer_many, peer_sparse

CASES = (*peer_dense.CASES, *peer_sparse.CASES, *peer_kernel.CASES, *peer_many.CASES, *peer_local.CASES)
WORKLOADS = {
    "W1": "100,000 dense rows of 51 columns: two overlapping Gaussians with correlated columns, 5 % of the "
    "labels flipped",
    "W2": "20,000 dense rows of 1,001 columns, drawn like W1",
    "W3": "100,000 sparse rows of 200,001 columns, about 60 entries each: text-like, unit length, 5 % of the "
    "labels flipped",
    "W4a": "2,000 dense rows of 20 columns for an RBF kernel (gamma = 1 / (d Var X)): ringnorm, 5 % of the "
    "labels flipped",
    "W4b": "5,000 rows like W4a",
    "W5": "1,000,000 dense rows of 33 columns: clusters on the two sides of a plane",
    "W6": "10,000 dense rows of 500 columns, 30 of them informative, ten classes",
    "W7": "20,000 rows of 64 columns, ten classes: the digits of scikit-learn, split first and then multiplied "
    "with noise",
    "ULDM": "20,000 dense rows of 1,000 columns, drawn like W1",
    "Authors": "20,000 columns of 100,000 rows like W3, or 2,000 rows like W4a: what the programs of the LDM "
    "paper's authors ran on",
}
"""What the rows of every workload are; docs/benchmarks.md has the same table."""
