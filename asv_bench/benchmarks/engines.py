"""Every engine over objectives, shapes and types: time, certified gap, reports, rows visited, memory."""

import warnings
from time import process_time

from .counting import visits
from .memory import extra_share
from .problems import arguments, entries, fitted, rows

TYPES = ["float64", "float32"]


class _Fits:
    """What is asked of all engines. asv leaves classes with this kind of name alone."""

    param_names = ["objective", "shape", "dtype"]
    options = {}
    timeout = 120
    timer = process_time

    def setup(self, objective, shape, dtype):
        warnings.simplefilter("ignore")
        self.X, self.y = rows(shape, dtype)
        self.given = arguments(objective, shape, self.engine, n_threads=1, **self.options)

    def fit(self):
        return fitted(self.X, self.y, self.given)

    def time_fit(self, objective, shape, dtype):
        self.fit()

    def track_gap(self, objective, shape, dtype):
        return self.fit().certificate.gap

    track_gap.unit = "relative gap"

    def track_iterations(self, objective, shape, dtype):
        return self.fit().n_iter

    track_iterations.unit = "reports"


class _Visits(_Fits):
    """Engines that visit single rows."""

    def track_row_dots(self, objective, shape, dtype):
        with visits() as count:
            self.fit()
        return count.rows / self.X.shape[0]

    track_row_dots.unit = "visits of every row"


class Interior(_Fits):
    engine = "interior"
    params = [["svm", "ldm"], ["dense 2000 x 51", "dense 20000 x 51", "dense 2000 x 401", "kernel 400"], TYPES]


class InteriorSparse(_Fits):
    engine = "interior"
    params = [["svm", "ldm"], ["sparse 10000 x 100"], TYPES]


class CoordinateDescent(_Visits):
    engine = "cd"
    params = [["svm", "ldm"], ["sparse 5000 x 20000", "sparse 20000 x 50000", "kernel 1000"], TYPES]


class CoordinateDescentSmooth(_Fits):
    engine = "cd"
    params = [["svm", "ldm"], ["smooth 2000"], TYPES[:1]]


class CoordinateDescentSmooth100(CoordinateDescentSmooth):
    options = {"C": 100.0}


class CoordinateDescentFree(_Fits):
    """A bias that the variance holds."""

    engine = "cd"
    options = {"bias": "free"}
    params = [["ldm"], ["kernel 1000", "smooth 2000"], TYPES[:1]]


class CoordinateDescentDense(_Visits):
    engine = "cd"
    params = [["ldm"], ["dense 2500 x 21"], TYPES]


class Hybrid(_Fits):
    engine = "hybrid"
    params = [["svm", "ldm", "lsvm", "l2lr"], ["dense 2000 x 51", "dense 50000 x 51"], TYPES]


class Newton(_Fits):
    engine = "newton"
    params = [["lsvm", "lssvm", "l2lr"], ["dense 2000 x 51", "dense 50000 x 51", "dense 2000 x 401"], TYPES]


class Direct(_Fits):
    engine = "direct"
    params = [["lssvm", "lsldm", "uldm"], ["dense 50000 x 51", "dense 2000 x 401"], TYPES]


class DirectKernel(_Fits):
    engine = "direct"
    params = [["lssvm", "lsldm"], ["kernel 400", "kernel 1000"], TYPES]


class FixedPoint(_Fits):
    """To the end that the LSVM paper gives it."""

    engine = "smw"
    options = {"solver_options": {"stop": "step"}}
    params = [["lsvm", "lssvm"], ["dense 20000 x 21", "dense 100000 x 21"], TYPES]

    def setup(self, objective, shape, dtype):
        super().setup(objective, shape, dtype)
        self.given["C" if objective == "lssvm" else "nu"] = 1.0 / self.X.shape[0]


class Proximal(_Fits):
    engine = "apg"
    params = [["mdlm"], ["classes 2000 x 50 x 4", "classes 5000 x 200 x 10"], TYPES]


class LinearProgram(_Fits):
    engine = "linprog"
    params = [["rlp"], ["dense 500 x 11", "dense 2000 x 21"], TYPES]


class ProximalMultipliers(_Fits):
    engine = "pmm"
    params = [["sparse_svm"], ["dense 2000 x 51", "dense 20000 x 51"], TYPES]


class Decomposition(_Fits):
    engine = "decomposition"
    params = [["svm", "lsvm"], ["kernel 1000", "kernel 20000"], TYPES]


class NewtonCG(_Fits):
    engine = "newton-cg"
    params = [["lssvm", "lsvm"], ["kernel 1000", "kernel 20000"], TYPES]


class Stochastic(_Visits):
    engine = "sgd"
    params = [["svm", "ldm"], ["dense 20000 x 51", "sparse 10000 x 50000"], TYPES]


class AveragedStochastic(Stochastic):
    engine = "asgd"


class Local(_Fits):
    """Blocks of landmark features, whichever engine the table chooses."""

    engine = "auto"
    params = [["l3svm"], ["local 4000"], TYPES]


class Memory:
    """Memory of a fit beyond X, as a share of X, and the largest size of the whole process."""

    params = ["interior ldm", "newton lsvm", "direct lssvm", "smw lsvm", "asgd ldm", "cd ldm", "newton l2lr"]
    param_names = ["work"]
    timeout = 300

    def setup(self, work):
        engine, objective = work.split()
        shape = "sparse 50000 x 50000" if engine == "cd" else "dense 200000 x 51"
        self.X, self.y = rows(shape)
        self.given = arguments(objective, shape, engine, n_threads=1)

    def track_extra_share(self, work):
        return extra_share(self.X, self.y, self.given)[0]

    track_extra_share.unit = "share of X"

    def track_extra_vectors(self, work):
        return extra_share(self.X, self.y, self.given)[1] / (8.0 * self.X.shape[0])

    track_extra_vectors.unit = "numbers per row"

    def peakmem_fit(self, work):
        fitted(self.X, self.y, self.given)

    def track_entries(self, work):
        return entries(self.X) / self.X.shape[0]

    track_entries.unit = "entries per row of X"
