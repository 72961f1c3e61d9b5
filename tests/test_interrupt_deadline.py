"""What a fit leaves that its time limit ends early: true certificates, without work that nobody waits for."""

import numpy as np
import pytest

import mdlearn
from mdlearn.data.chosen import ChosenRows
from mdlearn.data.csr_rows import CsrRows
from mdlearn.data.rows import DenseRows
from mdlearn.forms import certificate, coupled, margin
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
    monkeypatch.setattr(certificate, "_nothing", lambda *_: None)
    monkeypatch.setattr(ColumnProblem, "untouched", lambda *_: None)
    full = mdlearn.fit("svm", X, y, C=2.0, time_limit=0.0)
    assert alone.certificate == full.certificate
    np.testing.assert_array_equal(alone.coef_, full.coef_)


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_classes_after_the_deadline_take_no_arrays_of_the_rows(kernel, monkeypatch):
    """Thousands of classes would else take longer than their time limit, before and after it."""
    made, make = [], margin._ClassColumn.__getattr__
    monkeypatch.setattr(margin._ClassColumn, "__getattr__", lambda self, name: made.append(name) or make(self, name))
    X, y = rows(30, 300)
    model = mdlearn.fit("svm", X, y, kernel=kernel, time_limit=0.0)
    assert len(model.certificate.parts) == 30 and made.count("y") == 0
    assert model.support_.shape == (0,) and not model.duals.any()
    whole = mdlearn.fit("svm", X, y, kernel=kernel)
    assert made.count("y") == 29 and whole.certificate.converged
    one = mdlearn.fit("svm", X, y == 7, kernel=kernel)
    assert one.certificate.objective == pytest.approx(whole.certificate.parts[7].objective, rel=1e-5)


def test_pairs_after_the_deadline_are_not_copied(monkeypatch):
    taken = []
    monkeypatch.setattr(ChosenRows, "taken", lambda self: taken.append(1) or self.whole.take(self.which))
    X, y = rows(4)
    mdlearn.fit("ldm", X, y, multiclass="ovo", time_limit=0.0)
    assert len(taken) == 1  # by the first, engines are chosen and asked
    mdlearn.fit("ldm", X, y, multiclass="ovo")
    assert len(taken) == 7


@pytest.mark.parametrize("sparse", [False, True])
def test_chosen_rows_answer_as_their_copy(sparse):
    from scipy.sparse import csr_matrix

    X = np.random.default_rng(0).standard_normal((30, 4))
    chosen = ChosenRows(CsrRows(csr_matrix(X)) if sparse else DenseRows(X), np.array([3, 4, 9, 20]))
    copy, v = X[chosen.which], np.arange(4.0)
    pairs = [
        (chosen.dot(v), copy @ v), (chosen.adjoint(v), copy.T @ v), (chosen.squares(), (copy**2).sum(axis=1)),
        (chosen.column_squares(v), v @ copy**2), (chosen.block(slice(1, 3)), copy[1:3]),
        (chosen.taken().block(slice(None)), copy), (chosen.inner(chosen.taken()), copy @ copy.T),
    ]  # fmt: skip
    for found, wanted in pairs:
        np.testing.assert_allclose(found, wanted, atol=1e-12)
    assert chosen.shape == (4, 4) and chosen.sparse is sparse


@pytest.mark.parametrize("k", [2, 4])
def test_intercepts_alone_are_found_as_over_all_rows(k, monkeypatch):
    X, y = rows(k)
    given = {"ridge": 1e-3, "time_limit": 0.0, "sample_weight": np.arange(len(y)) % 3}
    few = mdlearn.fit("mdlm", X, y, **given)
    monkeypatch.setattr(coupled, "FEW_SIGNS", -1)
    every = mdlearn.fit("mdlm", X, y, **given)
    np.testing.assert_allclose(few.intercept_, every.intercept_, atol=1e-12)
    assert few.certificate.objective == pytest.approx(every.certificate.objective, rel=1e-12)
    assert few.certificate.lower_bound == pytest.approx(every.certificate.lower_bound, rel=1e-9)


def test_levels_end_with_the_time():
    X, y = rows(2)
    model = mdlearn.fit("l3svm", X, y, n_levels=2, time_limit=0.0)
    assert not model.coef_.any() and model.certificate.gap == 1.0


def test_smoothing_hands_in_its_point(monkeypatch):
    from mdlearn.solvers.smoothing import Smoothed
    from mdlearn.solvers.supervised import Supervised

    X, y = rows(2, 20_000, 4)
    seen, ended = [], []
    offer, reports = Smoothed._offer, Supervised.reports

    def counted(self, *given):
        seen.append(1)
        return offer(self, *given)

    def cut(self, *given):  # the time is up a heartbeat after the second step
        left = 2
        for report in reports(self, *given):
            left -= len(seen) > 1
            if left == 0:
                ended.append(1)
                monkeypatch.setattr("mdlearn.solvers.driver.Driver._late", expired)
            yield report

    def expired(self):
        self.stopped = "time_limit reached"
        return True

    monkeypatch.setattr(Smoothed, "_offer", counted)
    monkeypatch.setattr(Supervised, "reports", cut)
    whole = mdlearn.fit("svm", X, y, C=1.0, time_limit=None, solver="cd")
    model = mdlearn.fit("svm", X, y, C=1.0, solver="interior")
    assert ended and model.coef_.any() and model.n_iter == 0
    assert model.certificate.lower_bound <= whole.certificate.objective * (1 + 1e-9)
    assert model.certificate.objective < 2.0 * whole.certificate.objective
    np.testing.assert_allclose(X.T @ model._alpha[0], model.coef_[0], atol=1e-8)
