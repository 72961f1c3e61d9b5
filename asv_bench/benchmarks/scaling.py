"""How CPU time grows: the exponent of a power law fitted to four sizes or more, each the least of a few times."""

import warnings
from time import process_time

import numpy as np

from .problems import arguments, entries, fitted, rows

REPEATS = 3


def exponent(sizes, times):
    """Slope of the least squares line through logarithms.

    Parameters
    ----------
    sizes, times : sequence of float
        At least two, positive.
    """
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def least(call, repeats=REPEATS, clock=process_time):
    """The least of a few times, after one unmeasured call."""
    call()
    times = []
    for _ in range(repeats):
        start = clock()
        call()
        times.append(clock() - start)
    return min(times)


def series(pattern, *values):
    """Named problems, one for each value."""
    return [(value, pattern.format(value)) for value in values]


LAWS = {
    "interior, m": ("svm", "interior", series("dense {} x 21", 4000, 8000, 16_000, 32_000)),
    "interior, d": ("svm", "interior", series("dense 2000 x {}", 40, 80, 160, 320)),
    "newton, m": ("lsvm", "newton", series("dense {} x 51", 12_500, 25_000, 50_000, 100_000)),
    "newton, d": ("lsvm", "newton", series("dense 2000 x {}", 40, 80, 160, 320)),
    "direct, m": ("lssvm", "direct", series("dense {} x 51", 25_000, 50_000, 100_000, 200_000)),
    "direct, d": ("lssvm", "direct", series("dense 4000 x {}", 128, 256, 512, 1024)),
    "direct kernel, m": ("lssvm", "direct", series("kernel {}", 250, 500, 1000, 2000)),
    "smw, m": ("lsvm", "smw", series("dense {} x 21", 25_000, 50_000, 100_000, 200_000)),
    "smw, d": ("lsvm", "smw", series("dense 20000 x {}", 16, 32, 64, 128)),
    "cd kernel, m": ("svm", "cd", series("kernel {}", 250, 500, 1000, 2000)),
    "cd kernel ldm, m": ("ldm", "cd", series("kernel {}", 250, 500, 1000, 2000)),
    "cd sparse, m": ("svm", "cd", series("sparse {} x 50000", 5000, 10_000, 20_000, 40_000)),
    "cd sparse, d": ("svm", "cd", series("sparse 10000 x {}", 12_500, 25_000, 50_000, 100_000)),
    "cd sparse, nnz": ("svm", "cd", series("sparse 10000 x 50000 x {}", 15, 30, 60, 120)),
    "cd sparse ldm, nnz": ("ldm", "cd", series("sparse 10000 x 50000 x {}", 15, 30, 60, 120)),
    "apg, m": ("mdlm", "apg", series("classes {} x 100 x 4", 2000, 4000, 8000, 16_000)),
    "apg, classes K": ("mdlm", "apg", series("classes 2000 x 100 x {}", 3, 6, 12, 24)),
    "one against the rest, classes K": ("svm", "interior", series("classes 4000 x 30 x {}", 3, 6, 12, 24)),
    "linprog, m": ("rlp", "linprog", series("dense {} x 11", 250, 500, 1000, 2000)),
    "sgd, m": ("svm", "sgd", series("dense {} x 51", 10_000, 20_000, 40_000, 80_000)),
    "asgd, nnz": ("ldm", "asgd", series("sparse 10000 x 20000 x {}", 15, 30, 60, 120)),
    "l3svm, clusters K": ("l3svm", "auto", [(K, ("local 8000", {"n_clusters": K})) for K in (10, 20, 40, 80)]),
    "l3svm, landmarks L": ("l3svm", "auto", [(L, ("local 4000", {"n_landmarks": L})) for L in (16, 32, 64, 128)]),
}
"""Objective, engine and sizes of each law. Where X is sparse with a given number of draws per row, the entries that it
stores are counted, for draws can fall on the same column."""


class Scaling:
    """One number for each law."""

    params = list(LAWS)
    param_names = ["law"]
    timeout = 600

    def track_exponent(self, law):
        warnings.simplefilter("ignore")
        objective, engine, problems = LAWS[law]
        sizes, times = [], []
        for size, problem in problems:
            shape, more = problem if isinstance(problem, tuple) else (problem, {})
            options = {"solver_options": {"stop": "step"}, "nu": 1e-5} if engine == "smw" else {}
            if engine in ("sgd", "asgd"):
                options = {"solver_options": {"eta0": 0.01}}
            X, y = rows(shape)
            given = arguments(objective, shape, engine, n_threads=1, **{**options, **more})
            sizes.append(entries(X) if law.endswith("nnz") else size)
            times.append(least(lambda X=X, y=y, given=given: fitted(X, y, given)))
        return exponent(sizes, times)

    track_exponent.unit = "exponent of CPU time"
