"""Arrays of exactly the size that compiled functions need: of M rows, D columns, T terms and K classes."""

from __future__ import annotations

import numpy as np

M, D, T, K = 9, 5, 2, 3


def one(*shape):
    """Positive numbers in an array of their own."""
    return np.random.default_rng(sum(shape)).uniform(0.5, 1.5, shape)


def integers(n, below):
    return np.arange(n, dtype=np.int64) % below


def filled(kind=np.float64, index=np.int32):
    """A CSR matrix (M, D) with two entries in every row, as three arrays."""
    indices = np.sort(np.array([[i % D, (i + 2) % D] for i in range(M)]), axis=1).ravel().astype(index)
    return {"data": one(2 * M).astype(kind), "indices": indices, "indptr": np.arange(0, 2 * M + 1, 2, dtype=index)}


PATH = {name: one(T, M) for name in ("caps", "softness", "beta", "upper", "s", "xi", "db", "ds", "dxi")}
BLOCKS = {"starts": np.array([0, 4, 4, M]), "places": np.array([0, 16, 16, 41])}
TERMS = {"signs": np.ones((M, K), dtype=np.int8), "counts": one(M, K), "terms": one(T, K, 5)}
PAIRS = {"F": one(M, K), "codes": integers(M, K), "share": one(M)}
PIECE = {"start": 0, "stop": M}
RANGE = {"first": 0, "last": M}
HINGES = {"kinks": one(T, M), "sides": np.ones(T), "caps": one(T, M), "z": one(M)}
LOO = {"counts": np.full(M, 2.0), "kinks": one(T, M), "ends": one(T, M), "starts": one(T, M),
       "jumps": np.zeros(T, dtype=np.uint8), "heights": one(T + 1, M), "bends": one(T + 1, M), "kappa": 0.3,
       "softness": 1e-8, "total": 2.0 * M, "L": 0.1 * np.eye(M + 1), "given": one(M + 1),
       "piece": np.full(M, 2 * T, dtype=np.intp), "bend": one(M + 1), "answer": np.full(M + 1, 3.0), "low": np.ones(M),
       "high": np.full(M, 9.0), "rows": np.arange(4, dtype=np.intp), "near": 5, "room": 1e3, "inside": False,
       "S": np.zeros((2, 6), dtype=np.intp),
       "place": np.zeros(M, dtype=np.intp), "x": one(2, 6), "y": one(3, M + 1), "matrix": one(6, 6),
       "out": np.zeros(4)}  # fmt: skip
QUADRATIC = {"H": np.eye(M) + one(M, M), "border": one(M), "omega": 0.5, "soft": one(M), "low": np.zeros(M),
             "high": one(M), "u": np.zeros(M), "e": one(M), "work": one(4, M)}  # fmt: skip
KNOWN = {"values": np.zeros((M, M)), "place": np.full(M, -1), "order": integers(M, M), "diagonal": np.ones(M),
         "columns": one(D, M), "own": one(D)}  # fmt: skip
STACK = {"K": np.eye(M) + one(M, M), "spans": np.array([[0, 2, 2, 5], [0, 2, 5, M], [2, 5, 5, M]]),
         "starts": np.array([0, 5, 11, 18]), "target": one(18), "low": -one(18), "high": one(18),
         "square": one(7, 7), "columns": one(9, 7), "places": np.full((2, 7), 3)}  # fmt: skip
FACE = {"H": np.eye(M) + one(M, M), "border": one(M), "omega": 0.5, "soft": one(M), "low": np.zeros(M),
        "high": one(M), "u": np.zeros(M), "e": one(M), "index": integers(M, M), "work": one(2, M)}  # fmt: skip
FIXED = {"y": np.ones(M), "counts": one(M), "terms": one(3, T)}
COLUMN = {"y": np.ones(M), "sides": np.ones(T), "kinks": one(T, M), "caps": one(T, M), "softness": one(T, M),
          "diagonal": one(M), "border": one(M), "omega": 0.5, "beta": np.zeros((T, M)), "S": np.zeros(1)}  # fmt: skip
CENTRED = {"records": one(T, M, 8), "norm": 0.5, "label_mean": 0.1, "kappa": 0.3, "beta": np.zeros((T, M)),
           "s": np.zeros(M), "u": np.zeros(D), "keep": np.zeros((T, M), dtype=np.uint8)}  # fmt: skip
WALK = {"y": np.ones(M), "offset": np.zeros(M), "terms": one(6, T), "u": np.zeros(D + 1 + M),
        "total": np.zeros(D + 1 + M),
        "i": integers(20, M), "j": integers(20, M)}  # fmt: skip
NARROW = {"T": one(D, 16), "labels": np.ones(M), "caps": one(M), "softness": one(M), "made_of": one(M), "fixed": one(D),
          "table": np.zeros((17, 16)), "space": np.zeros((2 * D + 268) * (D + 8))}  # fmt: skip
POINT = {"y": np.ones(M), "counts": one(M), "terms": one(T, 6), "total": 9.0, "variance": 0.3, "mean": 0.2, "bias": 1,
         "alpha": one(M), "z": one(M)}  # fmt: skip
MULTIPLIERS = {"caps": one(T, M), "sigma": one(M), "beta": one(T, M)}
ASCENT = {"records": one(M, 8), "order": integers(M, M), "free": integers(M, M)}
ENVELOPES = {"centre": one(M), "steepness": one(M), "caps": one(M)}
ROOM = {"square": np.zeros((D, D)), "held": np.zeros((M, D)), "columns": np.zeros((4, M)), "change": np.zeros(M)}
