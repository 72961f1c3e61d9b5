"""What a fit leaves that its time limit ends early: true certificates, without work that nobody waits for."""

import numpy as np
import pytest

import mdlearn
from mdlearn.data.rows import class_contrasts
from mdlearn.data.rows.rows import DenseRows
from mdlearn.form_making import FormMaker
from mdlearn.forms import column, margin
from mdlearn.forms.certificates import certified_solution as certificate
from mdlearn.forms.joint import decision_composite, margin_composite
from mdlearn.forms.problem import ColumnProblem

pytestmark = pytest.mark.filterwarnings("ignore::mdlearn.ConvergenceWarning")


def rows(k=3, m=400, d=5):
    rng = np.random.default_rng(k)
    y = rng.integers(0, k, m)
    return rng.standard_normal((m, d)) + rng.standard_normal((k, d))[y], y


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize("multiclass", ["ovr", "ovo"])
@pytest.mark.parametrize("bias", ["none", "regularized", "free"])
@pytest.mark.parametrize("objective", ["svm", "ldm", "lsvm", "l2lr"])
def test_what_was_never_begun_has_a_true_certificate(objective, bias, multiclass, kernel):
    X, y = rows()
    if (objective, kernel) == ("l2lr", "rbf"):
        objective = "lssvm"
    given = {"bias": bias, "multiclass": multiclass, "kernel": kernel}
    none, whole = (mdlearn.fit(objective, X, y, time_limit=limit, **given) for limit in (0.0, None))
    assert len(none.certificate.parts) == 3
    for early, late in zip(none.certificate.parts, whole.certificate.parts):
        slack = 1e-9 * abs(late.objective)
        assert early.lower_bound <= late.objective + slack and late.lower_bound <= early.objective + slack
    assert none.duals.shape == whole.duals.shape


def test_the_certificate_from_labels_alone_is_the_one_from_the_rows(monkeypatch):
    X, y = rows()
    alone = mdlearn.fit("svm", X, y, C=2.0, time_limit=0.0)
    monkeypatch.setattr(certificate, "_certified_zero", lambda *_: None)
    monkeypatch.setattr(ColumnProblem, "untouched", lambda *_, **__: None)
    full = mdlearn.fit("svm", X, y, C=2.0, time_limit=0.0)
    assert alone.certificate == full.certificate
    np.testing.assert_array_equal(alone.coef_, full.coef_)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_classes_after_the_deadline_take_no_arrays_of_the_rows(kernel, monkeypatch):
    """Thousands of classes would else take longer than their time limit, before and after it."""
    made, make = [], column._ClassColumn.__getattr__
    monkeypatch.setattr(column._ClassColumn, "__getattr__", lambda self, name: made.append(name) or make(self, name))
    X, y = rows(30, 300)
    monkeypatch.setattr(margin, "SIGNS_AT_ONCE", 30 * 300 - 1)
    model = mdlearn.fit("svm", X, y, kernel=kernel, time_limit=0.0)
    assert len(model.certificate.parts) == 30 and made.count("y") == 0
    assert model.support_.shape == (0,) and not model.duals.any()
    whole = mdlearn.fit("svm", X, y, kernel=kernel)
    assert made.count("y") == 29 and whole.certificate.converged
    monkeypatch.setattr(margin, "SIGNS_AT_ONCE", 30 * 300)
    few = mdlearn.fit("svm", X, y, kernel=kernel)  # a call for all is sooner made than one for each
    assert made.count("y") == 29 and np.array_equal(few.duals, whole.duals)
    one = mdlearn.fit("svm", X, y == 7, kernel=kernel)
    assert one.certificate.objective == pytest.approx(whole.certificate.parts[7].objective, rel=1e-5)


@pytest.mark.parametrize("n_threads", [None, 2])
def test_pairs_after_the_deadline_are_not_made(n_threads, monkeypatch):
    """Hundreds of classes have tens of thousands of pairs."""
    made, make = [], FormMaker.make

    def counted(self, j):
        made.append(j)
        return (yield from make(self, j))

    monkeypatch.setattr(FormMaker, "make", counted)
    X, y = rows(30, 300)
    model = mdlearn.fit("ldm", X, y, multiclass="ovo", time_limit=0.0, n_threads=n_threads)
    assert made == [0] and len(model.certificate.parts) == 435  # by the first, engines are chosen and asked
    assert not model.coef_[1:].any() and not model.duals[1:].any() and model.duals.shape == (435, 300)
    made.clear()
    mdlearn.fit("ldm", X[:100], y[:100] % 4, multiclass="ovo", n_threads=n_threads)
    assert sorted(made) == list(range(6))


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
@pytest.mark.parametrize(
    ("objective", "given"),
    [
        ("svm", {"C": 2.0}), ("svm", {"C": np.inf}), ("ldm", {}), ("ldm", {"lambda2": 0.0}), ("lssvm", {}),
        ("lsldm", {}), ("lsvm", {"nu": 3.0}), ("uldm", {}), ("uldm", {"c_scaling": "max_diag"}), ("l2lr", {}),
        ("mlr", {}), ("mdlm", {"beta": 0.1}), ("rlp", {}),
    ],
    ids=str,
)  # fmt: skip
def test_pairs_that_are_not_made_are_answered_as_if_they_were(objective, given, kernel, monkeypatch):
    from mdlearn.objectives.base import Objective
    from mdlearn.objectives.uldm import ULDM

    if kernel == "rbf" and objective in ("l2lr", "mlr", "mdlm", "rlp"):
        kernel = "linear"
    X, y = rows()
    given = {**given, "kernel": kernel, "multiclass": "ovo", "sample_weight": np.arange(len(y)) % 3 + 0.5}
    alone = mdlearn.fit(objective, X, y, time_limit=0.0, **given)
    for own in (Objective, ULDM):
        monkeypatch.setattr(own, "at_zero", lambda *_: None)
    full = mdlearn.fit(objective, X, y, time_limit=0.0, **given)
    for one, other in zip(alone.certificate.parts, full.certificate.parts, strict=True):
        slack = 1e-12 * (1.0 + abs(other.objective)) if np.isfinite(other.objective) else 0.0
        assert one.objective >= other.objective - slack  # rows may say more
        if (objective, given.get("lambda2")) not in (("ldm", None), ("rlp", None), ("mdlm", None)):
            assert one.objective == pytest.approx(other.objective, rel=1e-12, abs=1e-12)
        assert one.lower_bound <= other.lower_bound + slack
    assert alone.duals.shape == full.duals.shape and alone.intercept_.shape == full.intercept_.shape
    np.testing.assert_array_equal(alone.decision_function(X)[:, 0] * 0.0, full.decision_function(X)[:, 0] * 0.0)


def test_a_warm_start_is_kept_where_its_pairs_do_not_come_to_their_turn():
    X, y = rows()
    start = mdlearn.fit("svm", X, y, multiclass="ovo")
    model = mdlearn.fit("svm", X, y, multiclass="ovo", warm_start=start, time_limit=0.0)
    np.testing.assert_allclose(model.coef_, start.coef_)


@pytest.mark.parametrize("k", [2, 4])
def test_intercepts_alone_are_found_as_over_all_rows(k, monkeypatch):
    X, y = rows(k)
    given = {"ridge": 1e-3, "time_limit": 0.0, "sample_weight": np.arange(len(y)) % 3}
    few = mdlearn.fit("mdlm", X, y, **given)
    monkeypatch.setattr(margin_composite, "FEW_SIGNS", 0.0)
    every = mdlearn.fit("mdlm", X, y, **given)
    np.testing.assert_allclose(few.intercept_, every.intercept_, atol=1e-12)
    assert few.certificate.objective == pytest.approx(every.certificate.objective, rel=1e-12)
    assert few.certificate.lower_bound == pytest.approx(every.certificate.lower_bound, rel=1e-9)


def test_levels_end_with_the_time():
    X, y = rows(2)
    model = mdlearn.fit("l3svm", X, y, n_levels=2, time_limit=0.0)
    assert not model.coef_.any() and model.certificate.gap == 1.0


def test_smoothing_hands_in_its_point(monkeypatch):
    from mdlearn.driver.checked_engine import CheckedEngine
    from mdlearn.solvers.interior_point.sifting import HuberProblem

    X, y = rows(2, 20_000, 4)
    seen, ended = [], []
    offer, reports = HuberProblem._offer, CheckedEngine.reports

    def counted(self, *given):
        seen.append(1)
        return offer(self, *given)

    def cut(self, *given):  # the time is up a heartbeat after the second step
        left = 2
        for report in reports(self, *given):
            left -= len(seen) > 1
            if left == 0:
                ended.append(1)
                monkeypatch.setattr("mdlearn.driver.driver.Driver.late", expired)
            yield report

    def expired(self):
        self.stopped = "time_limit reached"
        return True

    monkeypatch.setattr(HuberProblem, "_offer", counted)
    monkeypatch.setattr(CheckedEngine, "reports", cut)
    whole = mdlearn.fit("svm", X, y, C=1.0, time_limit=None, solver="cd")
    model = mdlearn.fit("svm", X, y, C=1.0, solver="interior")
    assert ended and model.coef_.any() and model.n_iter == 0
    assert model.certificate.lower_bound <= whole.certificate.objective * (1 + 1e-9)
    assert model.certificate.objective < 2.0 * whole.certificate.objective
    np.testing.assert_allclose(X.T @ model._alpha[0], model.coef_[0], atol=1e-8)


def test_rows_of_a_joint_problem_are_written_until_the_deadline_only(clock, monkeypatch):
    X, y = rows(10)
    pieces, write = [], class_contrasts.ContrastRows._written

    def slow(self):
        work = write(self)
        while True:
            try:
                next(work)
            except StopIteration as done:
                return done.value
            pieces.append(1)
            clock.sleep(1.0)
            yield

    whole = class_contrasts.class_contrasts(DenseRows(X), y, 10, True).X
    monkeypatch.setattr(class_contrasts, "ENTRIES_PER_PIECE", 500)
    monkeypatch.setattr(class_contrasts.ContrastRows, "_written", slow)
    model = mdlearn.fit("ww", X, y, time_limit=2.5, solver="cd")
    assert len(pieces) == 3 and not model.coef_.any() and model.certificate.gap == 1.0
    piecewise = class_contrasts.class_contrasts(DenseRows(X), y, 10, True).X
    assert len(pieces) > 50 and (piecewise != whole).nnz == 0
    np.testing.assert_array_equal(piecewise.indptr, whole.indptr)


@pytest.mark.parametrize("given", [{"objective": "ldm"}, {"objective": "svm", "bias": "free"}, {"objective": "lssvm"}])
def test_classes_after_the_deadline_take_no_passes_over_the_rows(given, monkeypatch):
    passes = []
    for name in ("dot", "adjoint", "column_squares", "squares"):
        own = getattr(DenseRows, name)
        monkeypatch.setattr(DenseRows, name, lambda self, *a, own=own: passes.append(1) or own(self, *a))
    counted = []
    for k in (5, 25):
        X, y = rows(k)
        model = mdlearn.fit(X=X, y=y, multiclass="ovr", time_limit=0.0, **given)
        best = mdlearn.fit(X=X, y=y, multiclass="ovr", **given)
        for early, late in zip(model.certificate.parts, best.certificate.parts):
            assert early.lower_bound <= late.objective and late.lower_bound <= early.objective
        passes.clear()
        mdlearn.fit(X=X, y=y, multiclass="ovr", time_limit=0.0, **given)
        counted.append(len(passes))
    assert counted[0] == counted[1]


def test_intercepts_of_many_classes_are_found_from_a_row_of_each(monkeypatch):
    X, y = rows(40, 2000)
    sizes, slopes = [], margin_composite.MarginComposite.slopes
    monkeypatch.setattr(
        margin_composite.MarginComposite,
        "slopes",
        lambda self, W, F, *more: sizes.append(len(F)) or slopes(self, W, F, *more),
    )
    mdlearn.fit("mdlm", X, y, ridge=1e-3, time_limit=0.0)
    assert sizes.count(40) > 5 and sizes.count(2000) < 5


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge"])
@pytest.mark.parametrize("landmarks", [3, 500])
def test_landmark_features_are_made_until_the_deadline_only(loss, landmarks, clock, monkeypatch):
    from mdlearn.data.features import clustered_rows
    from mdlearn.data.features.kernels import Kernel

    X, y = rows(3, 6000)
    asked, block = [], Kernel.block

    def slow(self, A, B):
        asked.append(1)
        clock.sleep(1.0)
        return block(self, A, B)

    given = {"C": 1.0, "n_clusters": 4, "n_landmarks": landmarks, "projection": "rbf", "sigma": 3.0, "loss": loss}
    monkeypatch.setattr(clustered_rows, "SPAN_ENTRIES", 100 * landmarks)
    monkeypatch.setattr(Kernel, "block", slow)
    model = mdlearn.fit("l3svm", X, y, time_limit=4.5, **given)
    assert len(asked) <= 7 and not model.coef_.any() and model.certificate.lower_bound == 0.0
    assert model.certificate.objective == pytest.approx(3.0)
    assert np.isfinite(model.decision_function(X[:10])).all()


@pytest.mark.parametrize("objective", ["mdlm", "ldm"])
def test_points_of_a_path_after_the_deadline_take_no_passes_over_the_rows(objective, monkeypatch):
    passes = []
    for name in ("dot", "adjoint", "column_squares", "squares"):
        own = getattr(DenseRows, name)
        monkeypatch.setattr(DenseRows, name, lambda self, *a, own=own: passes.append(1) or own(self, *a))
    X, y = rows(2)
    counted = []
    for n in (3, 30):
        passes.clear()
        path = mdlearn.fit_path(objective, X, y, {"lambda1": list(range(1, n))}, time_limit=0.0)
        assert all(not one.coef_.any() and np.isfinite(one.certificate.objective) for one in path[1:])
        counted.append(len(passes))
    assert counted[0] == counted[1]


@pytest.mark.parametrize("objective", ["mmlr", "mdlm"])
def test_points_of_a_path_after_the_deadline_move_no_intercepts(monkeypatch, objective):
    X, y = rows(k=5)
    settled, settle = [], decision_composite.DecisionComposite.settle
    monkeypatch.setattr(
        decision_composite.DecisionComposite, "settle", lambda self, W: settled.append(W) or settle(self, W)
    )
    values = [1e-3, 1e-2, 1e-1, 1.0]
    grid = {"lam": values} if objective == "mmlr" else {"ridge": values}
    path = mdlearn.fit_path(objective, X, y, grid, time_limit=0.0)
    assert len(settled) <= 2
    for model, value in zip(path, values):
        whole = mdlearn.fit(objective, X, y, **{next(iter(grid)): value}).certificate
        early = model.certificate
        assert early.lower_bound <= whole.objective and whole.lower_bound <= early.objective and not early.converged
