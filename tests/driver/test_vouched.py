"""A certificate that a plugin makes is labelled with who vouches for it, and held against all that is known."""

from __future__ import annotations

import re

import numpy as np
import pytest
from faulty_problems import (
    Boasts,
    Complains,
    Descent,
    Flatters,
    Net,
    NoNumber,
    Ridge,
    SmallGap,
    net_task,
    ridge_task,
    sample,
)

import mdlearn
from mdlearn.cli import main
from mdlearn.driver.checked_problem import checked_problem, problem_certifies_itself
from mdlearn.errors import FaultyProblem
from mdlearn.forms.problem import ColumnProblem
from mdlearn.forms.proof import Certificate, combine_proofs
from mdlearn.objectives.mmlr import PairLogistic
from mdlearn.plugins.registry import registry

WHO = "faulty_problems.Ridge"


def fit(kind, k=2, **settings):
    X, y = sample()
    y = y if k == 2 else np.argmax(X, axis=1)
    return mdlearn.fit(ridge_task(kind), X, y, solver=Descent, **settings)


@pytest.mark.parametrize("k", [2, 3])
def test_what_a_plugin_certifies_is_vouched_for_and_not_proven(k):
    told = fit(Ridge, k).certificate
    assert len(told.parts) == (0 if k == 2 else 3)
    for one in (told, *told.parts):
        assert (one.vouched_by, one.converged, one.proven) == (WHO, True, False)
        assert one.verdict == f"not proven; {WHO} says so"
    own = mdlearn.fit("svm", *sample()).certificate
    assert (own.vouched_by, own.converged, own.proven, own.verdict) == ("", True, True, "yes")


@pytest.mark.parametrize(
    ("kind", "words"),
    [
        (Flatters, r"certify certifies the objective .*, but value_of gives"),
        (Complains, r"certify certifies the objective .*, but value_of gives"),
        (Boasts, r"certify\w* has certified the lower bound .* the objective .*, which is below it"),
        (NoNumber, r"certify certifies objective .* and lower bound nan"),
    ],
)
def test_what_contradicts_itself_ends_the_fit_and_is_named(kind, words):
    with pytest.raises(FaultyProblem, match=rf"^objective 'own-ridge' is faulty: faulty_problems\.\w+\.{words}"):
        fit(kind, tol=1e-12)


def test_both_values_of_a_wrong_objective_are_told():
    with pytest.raises(FaultyProblem) as caught:
        fit(Flatters)
    half, whole = re.search(r"the objective (\S+), but value_of gives (\S+) at", str(caught.value)).groups()
    assert float(half) == pytest.approx(0.5 * float(whole))
    honest = fit(Ridge).certificate
    assert honest.lower_bound <= float(whole) <= 0.05 * 40 * (1 + 1e-12)  # between optimum and value at w = 0


def test_a_gap_is_made_of_the_values_that_are_stated():
    with pytest.warns(mdlearn.ConvergenceWarning):
        model = fit(SmallGap, max_iter=1, tol=1e-9)
    told = model.certificate
    assert told.gap == pytest.approx((told.objective - told.lower_bound) / told.objective)
    assert not told.converged and told.verdict == "no"


def test_of_a_residual_the_plugin_that_computes_it_is_named():
    class Stationary(Net):
        convex = False

        def residual(self, look):
            return float(np.square(self.subgradient(look)).sum()) / 0.2

    model = mdlearn.fit(net_task(Stationary, lam=0.0), *sample())
    assert model.certificate.vouched_by.endswith("Stationary") and model.certificate.converged
    bounded = mdlearn.fit(net_task(Net), *sample()).certificate
    assert bounded.proven and bounded.vouched_by == ""  # the bound is made here, of what is declared


def test_only_code_that_makes_certificates_needs_somebody_who_vouches():
    class Named(Ridge):
        def look(self, w):
            return super().look(w)

    class Printed(ColumnProblem):
        def certify_best(self, point, tol):
            return super().certify_best(point, tol)

    class Renamed(ColumnProblem):
        def start(self):
            return super().start()

    assert problem_certifies_itself(Named) and problem_certifies_itself(Printed)
    assert not any(map(problem_certifies_itself, (Renamed, ColumnProblem, PairLogistic, Net)))
    plain = object.__new__(ColumnProblem)
    assert checked_problem(plain, None) is plain


def test_sums_name_all_who_vouch():
    def part(who):
        return Certificate(1.0, 1.0, 0.0, "duality gap", 1e-6, True, vouched_by=who)

    whole = combine_proofs([part("a.A"), part(""), part("b.B"), part("a.A")], [(1.0, False)], 1e-6)
    assert whole.converged and whole.vouched_by == "a.A, b.B"
    assert combine_proofs([part(""), part("")], [(1.0, False)], 1e-6).vouched_by == ""


@pytest.mark.parametrize("k", [2, 3])
def test_the_name_is_shown_and_saved(k, tmp_path):
    model = fit(Ridge, k)
    assert f"(vouched by {WHO})" in repr(model) and f"vouched_by='{WHO}'" in repr(model.certificate)
    model.save(tmp_path / "model.npz")
    again = mdlearn.load(tmp_path / "model.npz")
    assert again.certificate == model.certificate and again.certificate.vouched_by == WHO
    assert [one.vouched_by for one in again.certificate.parts] == [one.vouched_by for one in model.certificate.parts]


def test_tables_have_a_column_of_names_where_there_are_any():
    pytest.importorskip("pandas")
    X, y = sample()
    for objective, solver, names in ((ridge_task(Ridge), Descent, [WHO] * 2), ("svm", "auto", None)):
        path = mdlearn.fit_path(objective, X, y, {"C": [0.1, 1.0]}, solver=solver).to_frame()
        folds = mdlearn.cross_validate(objective, X, y, cv=2, solver=solver).to_frame()
        for table in (path, folds):
            assert (list(table["vouched_by"]) == names) if names else ("vouched_by" not in table)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Folder with a file of rows; the objective and its engine are registered."""
    monkeypatch.setitem(registry().objectives, "own-ridge", ridge_task(Ridge))
    monkeypatch.setitem(registry().solvers, "ridge-descent", Descent)
    X, y = sample()
    np.savetxt(tmp_path / "rows.csv", np.column_stack([X, y]), delimiter=",")
    return tmp_path


def test_fit_on_the_command_line_says_who_vouches(folder, capsys):
    call = ["fit", str(folder / "rows.csv"), "-o", str(folder / "m.npz"), "--objective"]
    for objective, told in (("own-ridge", f"not proven; {WHO} says so"), ("svm", "yes")):
        assert main([*call, objective]) == 0
        lines = dict(line.split(":", 1) for line in capsys.readouterr().out.splitlines())
        assert lines["converged"].strip() == told


def test_a_comparison_says_who_vouches(folder, capsys):
    call = ["compare", "--data", str(folder), "--objectives", "own-ridge,svm", "--repeats", "1"]
    assert main(call) == 0
    assert capsys.readouterr().out.count(f"its gap is not proven; {WHO} says so") == 1
