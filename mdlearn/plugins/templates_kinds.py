"""Templates of new plugins by the kind of what they bring: texts with $-placeholders, kind -> text."""

from mdlearn.plugins.templates import OBJECTIVE, OBJECTIVE_USAGE, VALUE_TEST

REGISTERED = '''\
"""$test_summary"""

import mdlearn
$imports

def test_registered():
    (record,) = [one for one in mdlearn.list_plugins() if one.distribution == "$distribution"]
    assert (record.$hook, record.state, record.error) == (("$objective",), "ok", None)

'''

COMPOSITE = '''\
"""The objective $objective for mdlearn, a composite: value, gradient and prox of its own."""

import mdlearn
import numpy as np
from mdlearn.extend import Composite, CompositeEvaluation, Parameter

requires_api = 1


class Squares(Composite):
    """Half the mean squared distance of X W to the targets + ridge/2 |W|^2 + lam sum |W_jk|."""

    convex = True
    nonnegative = True

    def __init__(self, data, features, lam, ridge):
        k, d = data.classes.shape[0], features.width
        self.targets = np.eye(k)[data.codes] if k > 2 else 2.0 * data.codes[:, None] - 1.0
        super().__init__(features, "none", self.targets.shape[1], np.full(d, ridge), np.zeros(d))
        self.X, self.lam, self.share = features.matrix(), lam, data.counts[:, None] / data.total
        self.at_zero = self.at(np.zeros(self.shape)).value

    def at(self, W):
        residual = self.X @ W - self.targets
        gradient = self.X.T @ (self.share * residual)
        sizes = np.abs(self.X).T @ (self.share * np.abs(residual)).sum(axis=1)
        return CompositeEvaluation(W, 0.5 * float((self.share * residual**2).sum()), gradient, sizes)

    def lipschitz(self):
        v = np.ones(self.shape[0])
        for _ in range(20):  # power iteration: an estimate will do, and X may be dense or CSR
            v = self.X.T @ (self.share[:, 0] * (self.X @ (v / (np.linalg.norm(v) or 1.0))))
        return float(np.linalg.norm(v) + self.ridge.max())

    def penalty(self, W):
        return self.lam * float(np.abs(W).sum())

    def prox(self, V, step):
        return np.sign(V) * np.maximum(np.abs(V) - step * self.lam, 0.0)

    def least(self, G, sizes):
        return -0.5 * float((np.maximum(np.abs(G) - self.lam, 0.0) ** 2 / self.ridge[:, None]).sum())


class $cls(mdlearn.Objective):
    """Least squares on the labels with an elastic net."""

    name = "$objective"
    summary = "least squares on the labels with an elastic net"
    formula = "mean |f - e|^2 / 2 + ridge/2 |W|^2 + lam sum |W_jk|"
    parameters = {
        "lam": Parameter(0.01, "weight of the absolute values"),
        "ridge": Parameter(0.01, "weight of the squares", strict=True),
    }
    default_bias = "none"
    multiclass = ("joint",)
    kernels = False

    def form(self, data, features, bias, params):
        return Squares(data, features, params["lam"], params["ridge"])
'''

COMPOSITE_TEST = """

def test_the_value_is_that_of_the_formula():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    y = X[:, 0] + rng.standard_normal(40) > 0
    model = mdlearn.fit("$objective", X, y, lam=0.05, ridge=0.1, tol=1e-10)
    w = model.coef_[0]
    value = 0.5 * np.mean((X @ w - np.where(y, 1, -1)) ** 2) + 0.05 * w @ w + 0.05 * np.abs(w).sum()
    assert model.certificate.objective == pytest.approx(value, rel=1e-9)
    assert model.certificate.converged
"""

SOLVER = '''\
"""The solver $objective for mdlearn: gradient descent, with a step that halves when it was too long."""

import mdlearn
import numpy as np
from mdlearn.extend import Claim, LinearFeatures, Point, check_number, report_of

requires_api = 1


class $cls(mdlearn.Solver):
    """Gradient descent on coefficients of explicit rows."""

    name = "$objective"
    purpose = "gradient descent, for losses with a continuous slope"
    options = {"step": 1.0}
    default_max_iter = 500
    exact = False
    kinds = frozenset({"squared", "logistic"})

    def refusal(self, form):
        told = super().refusal(form)
        if told is None and not isinstance(form.features, LinearFeatures):
            told = "it moves a weight vector, which only kernel='linear' has"
        if told is None and form.bias == "free":
            told = "it knows no free bias"
        return told

    def claims(self, form):
        """2000 operations per stored entry and class."""
        if self.refusal(form) is not None:
            return None
        # A round figure of passes over the rows: measure yours.
        return Claim(2000.0 * len(form.columns) * form.features.n_entries, "gradient steps")

    def check_options(self, given):
        options = super().check_options(given)
        options["step"] = check_number(options["step"], "solver option step", low=0.0, strict=True)
        return options

    def prepare(self, form, options):
        yield from form.features.computed()

    def iterate(self, form, column, shared, options, rng):
        def look(w, b):
            scores = column.y * (form.features.decision(w) + b)
            beta, sigma = column.slopes(scores), column.spread(scores)
            alpha = column.y * (column.sides @ beta + sigma + column.pull)
            rest = alpha.sum() - b if form.bias == "regularized" else 0.0
            return report_of(form, column, Point(beta, sigma, w, b), scores), form.features.expand(alpha) - w, rest

        w, b, step = np.zeros(form.features.width), 0.0, options["step"]
        report, down, rest = look(w, b)
        yield report
        while step > 1e-12:
            trial = look(w + step * down, b + step * rest)
            if trial[0].objective > report.objective:
                step *= 0.5
                yield None
                continue
            w, b = w + step * down, b + step * rest
            report, down, rest = trial
            yield report
'''

SOLVER_TEST = """
def test_conformance():
    check_solver("$objective", ["l2lr"])


def test_it_reaches_the_optimum_of_another_solver():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    y = X[:, 0] + rng.standard_normal(40) > 0
    mine = mdlearn.fit("l2lr", X, y, bias="none", solver="$objective", tol=1e-6, max_iter=20000)
    other = mdlearn.fit("l2lr", X, y, bias="none", solver="newton", tol=1e-10)
    assert mine.certificate.objective == pytest.approx(other.certificate.objective, rel=1e-5)
"""

KERNEL_MODULE = '''\
"""The kernel $objective for mdlearn: it falls with the sum of the distances in every column."""

import mdlearn
import numpy as np
from mdlearn.extend import Parameter

requires_api = 1


class $cls(mdlearn.KernelFunction):
    """exp(-|a - b|_1 / width)."""

    name = "$objective"
    summary = "exp(-|a - b|_1 / width)"
    parameters = {"width": Parameter(1.0, "distance over which it falls by 1/e", strict=True)}

    def values(self, params, A, B):
        distances = np.zeros((len(A), len(B)))
        for a, b in zip(A.T, B.T):
            distances += np.abs(np.subtract.outer(a, b))
        return np.exp(-distances / params["width"])
'''

KERNEL_TEST = """
def test_conformance():
    check_kernel("$objective")


def test_models_are_saved_with_it(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    model = mdlearn.fit("svm", X, X[:, 0] > 0, kernel="$objective", width=2.0, tol=1e-8)
    model.save(tmp_path / "model.npz")
    assert np.array_equal(mdlearn.load(tmp_path / "model.npz").decision_function(X), model.decision_function(X))
    distances = np.abs(X[:, None] - X[None]).sum(axis=2)
    values = np.exp(-distances / 2.0) @ model.dual_coef_[0] + model.intercept_[0]
    assert values == pytest.approx(model.decision_function(X), abs=1e-9)
"""

SOURCE_MODULE = '''\
"""The source $objective for mdlearn: the .npz files of a folder, one row block each, with arrays X and y."""

from pathlib import Path

import mdlearn
import numpy as np

requires_api = 1


class $cls(mdlearn.RowBlocks):
    """Row blocks of a folder that is given as X, a Path."""

    name = "$objective"

    @classmethod
    def given(cls, X, y, weight):
        if not isinstance(X, Path) or y is not None or weight is not None:
            return None
        names = sorted(X.glob("*.npz"))

        def blocks():
            for name in names:
                with np.load(name) as arrays:
                    yield arrays["X"], arrays["y"]

        return cls(blocks)
'''

SOURCE_TEST = """
def test_conformance(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 3))
    y = (X[:, 0] + rng.standard_normal(40) > 0).astype(int)
    for j in range(4):
        part = slice(10 * j, 10 * j + 10)
        np.savez(tmp_path / f"{j}.npz", X=X[part], y=y[part])
    check_source("$objective")
    check_source(mdlearn_sources()[0].given(tmp_path, None, None), X, y)
    streamed = mdlearn.fit("lsvm", tmp_path, None, tol=1e-8)
    whole = mdlearn.fit("lsvm", X, y, tol=1e-8)
    assert streamed.certificate.objective == pytest.approx(whole.certificate.objective, rel=1e-7)
"""

COMMAND = '''\
"""The command $objective for mdlearn: it fits an objective to the rows of a file, and writes their margins."""

import mdlearn
from mdlearn.extend import OutputFile, ReadingOptions, add_force, read_for_fit

requires_api = 1


class $cls(mdlearn.Command):
    """Write the margins of the rows of a file, and print the certified gap of the fit."""

    name = "$objective"
    summary = "fit an objective to the rows of a file, and write their margins"

    def add_arguments(self, parser):
        parser.add_argument("objective", help="name of an objective; python -m mdlearn objectives lists them")
        parser.add_argument("data", help="CSV or svmlight file")
        parser.add_argument("--output", required=True, metavar="FILE", help="file of the margins, a line for each row")
        add_force(parser, "FILE if it exists")

    def run(self, given):
        # Before the work: a file that exists is refused without --force, and the one that is read with it, too.
        out = OutputFile(given.output, reads=[given.data], force=given.force)
        table = read_for_fit(given.data, ReadingOptions())
        model = mdlearn.fit(given.objective, table.X, table.y)
        out.write("".join(f"{margin:.6g}\\n" for margin in model.margins(table.X, table.y)).encode())
        print(f"{given.output}: {len(table.y)} margins, gap {model.certificate.gap:.1e}")
        return 0 if model.certificate.converged else 1
'''

COMMAND_TEST = """
X, y = mdlearn.datasets.two_gaussians(50, random_state=0)


@pytest.fixture
def run(tmp_path):
    np.savetxt(tmp_path / "rows.csv", np.column_stack([X, y]), delimiter=",")

    def run(*given):
        command = [sys.executable, "-m", "mdlearn", "$objective", *given]
        return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    return run


def test_it_writes_margins(run, tmp_path):
    done = run("svm", "rows.csv", "--output", "margins.txt")
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith("margins.txt: 50 margins, gap ")
    assert np.loadtxt(tmp_path / "margins.txt") == pytest.approx(mdlearn.fit("svm", X, y).margins(X, y), rel=1e-5)


def test_what_is_wrong_is_one_line(run, tmp_path):
    (tmp_path / "mine.txt").write_text("mine")
    rows = (tmp_path / "rows.csv").read_text()
    for words, *given in (
        ("no-such-objective", "no-such-objective", "rows.csv", "--output", "new.txt"),
        ("mine.txt exists already", "svm", "rows.csv", "--output", "mine.txt"),
        ("rows.csv is a file that is read", "svm", "rows.csv", "--output", "rows.csv", "--force"),
    ):
        done = run(*given)
        assert done.returncode == 1 and done.stdout == ""
        assert done.stderr.count("\\n") == 1 and words in done.stderr
    assert (tmp_path / "mine.txt").read_text() == "mine" and (tmp_path / "rows.csv").read_text() == rows
    assert run("svm", "rows.csv", "--output", "mine.txt", "--force").returncode == 0
"""

ESTIMATOR = '''\
"""Estimator of the objective $objective for scikit-learn, which nothing else of this package imports."""

from mdlearn.sklearn import MarginClassifier

from $module import $cls


class $estimator(MarginClassifier, objective=$cls):
    """Classifier by the objective $objective."""
'''

ESTIMATOR_TEST = '''\
"""The estimator keeps every promise of an estimator, and is what fit makes of the objective."""

import mdlearn
import numpy as np
from mdlearn.testing import check_estimator
from sklearn.model_selection import GridSearchCV

from $module.estimator import $estimator


def test_conformance():
    check_estimator($estimator())


def test_it_is_the_fit_of_the_objective():
    rng = np.random.default_rng(0)
    X = rng.standard_normal((60, 3))
    y = X[:, 0] + rng.standard_normal(60) > 0
    search = GridSearchCV($estimator(), {"C": [0.01, 0.5]}, cv=3).fit(X, y)
    model = mdlearn.fit("$objective", X, y, tol=1e-10, **search.best_params_)
    assert np.array_equal(search.decision_function(X), model.decision_function(X))
'''

CHECKED = "import numpy as np\nimport pytest\nfrom mdlearn.testing import check_"
MODULES = {
    "objective": (OBJECTIVE, VALUE_TEST, ""),
    "composite": (COMPOSITE, COMPOSITE_TEST, ""),
    "solver": (SOLVER, SOLVER_TEST, CHECKED + "solver\n"),
    "kernel": (KERNEL_MODULE, KERNEL_TEST, CHECKED + "kernel\n"),
    "source": (SOURCE_MODULE, SOURCE_TEST, CHECKED + "source\n\nfrom $module import mdlearn_sources\n"),
    "command": (COMMAND, COMMAND_TEST, "import numpy as np\nimport pytest\n"),
}
"""Module, its own tests and what these import besides; objectives have the imports of any objective's tests."""
USAGE = {
    "objective": OBJECTIVE_USAGE,
    "composite": OBJECTIVE_USAGE,
    "solver": """\
In Python: `mdlearn.fit(objective, X, y, solver="$objective")`, with an objective that it takes.
`python -m mdlearn solvers` prints its purpose and options, as its class declares them.""",
    "kernel": """\
In Python: `mdlearn.fit("ldm", X, y, kernel="$objective")`. `python -m mdlearn kernels` prints its formula and
parameters, as its class declares them.""",
    "source": 'In Python: `mdlearn.fit("lsvm", X, None)`, with an X of the kind that its method `given` knows.',
    "command": "`python -m mdlearn $objective --help` prints its arguments, as its class declares them.",
    "estimator": "In scikit-learn: `from $module.estimator import $estimator`.",
}
"""Last lines of a README by kind: nothing in them is of the example, so that they hold when its author changes it."""
SUMMARIES = {
    "solver": "The solver is registered, keeps every promise of a solver, and reaches the optimum.",
    "kernel": "The kernel is registered, keeps every promise of a kernel, and has the values of its formula.",
    "source": "The source is registered, gives all rows in every pass, and a fit over it is that of the rows.",
    "command": "The command is registered, writes what it says, and tells what is wrong in one line.",
}
