"""The checker of model files: it agrees with what fits write, and with nothing that differs in one number."""

import ast
import pickle
import subprocess
import sys
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from persistence_cases import fitted
from tampered_models import OBJECTIVES, content_of, drawn, objective, places, says_something_else, tampered, written

import mdlearn
from mdlearn.verifier import checker
from mdlearn.verifier.checker import OBJECTIVE_FORMULAS, CheckedColumn, Finding, Rounded, check_model, kernel_matrix

FILE = Path(checker.__file__)
QUICK = [
    ("svm", "linear", "free"),
    ("svm", "rbf", "regularized"),
    ("svm", "poly", "none"),
    ("ldm", "linear", "regularized"),
    ("ldm", "rbf", "free"),
    ("lsvm", "linear", "regularized"),
    ("lsvm", "poly", "free"),
    ("lssvm", "rbf", "none"),
    ("lsldm", "linear", "free"),
    ("l2lr", "linear", "free"),
    ("mlr", "linear", "regularized"),
    ("mlr", "linear", "none"),
]


def finding(path, *data):
    """(exit code, text) of a check that finds something."""
    with pytest.raises(Finding) as caught:
        check_model(path, *data)
    return caught.value.args


def judged(rng, folder, kinds=(None, None, None)):
    """Check one random model as it is, and with each of its numbers changed; returns the number of changes."""
    model, *data = drawn(rng, kinds)
    whole, count = content_of(model, folder), 0
    assert "objective" in check_model(folder / "whole.npz", *data)
    for place in places(*whole):
        changed = tampered(*whole, place, rng)
        if says_something_else(whole, changed, place, data):
            code, text = finding(written(*changed, folder), *data)
            assert code == 1, (place, text)
            count += 1
    return count


def number_changed(change, folder, **given):
    """(exit code, text) for a model's file that `change` has written into; its digest fits."""
    model, X, y = fitted(**given)
    header, arrays = content_of(model, folder)
    change(header, arrays)
    return finding(written(header, arrays, folder), X, y)


def test_it_is_one_small_file_that_needs_numpy_alone():
    text = FILE.read_text()
    assert len(text.splitlines()) <= 250
    imported = set()
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            imported |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0
            imported.add(node.module.split(".")[0])
    assert imported - {"numpy"} <= sys.stdlib_module_names and "numpy" in imported
    assert not imported & {"pickle", "subprocess", "importlib"}


@pytest.mark.parametrize("kinds", QUICK, ids="-".join)
def test_one_changed_number_is_refuted(kinds, tmp_path):
    assert {name for name, _, _ in QUICK} == set(OBJECTIVES) == set(OBJECTIVE_FORMULAS)
    assert judged(np.random.default_rng([0, QUICK.index(kinds)]), tmp_path, kinds) >= 5


@pytest.mark.parametrize("seeds", [(1, 5813), (1, 6830), (2, 7928)], ids=str)
@pytest.mark.filterwarnings("ignore::mdlearn.errors.ConvergenceWarning")
def test_true_files_of_small_objectives_are_agreed_on(seeds, tmp_path):
    """float32 multipliers beside a large variance, and parts that converged where their sum has a larger gap."""
    model, *data = drawn(np.random.default_rng(seeds))
    content_of(model, tmp_path)
    assert check_model(tmp_path / "whole.npz", *data)


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore::mdlearn.errors.ConvergenceWarning")
def test_one_changed_number_of_many_models_is_refuted(tmp_path):
    assert sum(judged(np.random.default_rng([1, i]), tmp_path) for i in range(300)) > 2000


def test_the_objective_is_the_printed_one(tmp_path):
    for i, kinds in enumerate(QUICK):
        model, *data = drawn(np.random.default_rng([2, i]), kinds)
        exact, size = objective(*content_of(model, tmp_path), *data)
        said = float(check_model(tmp_path / "whole.npz", *data).split()[1].strip(","))
        assert abs(said - exact) <= 1e-9 * size


@pytest.mark.parametrize("name", OBJECTIVES)
def test_no_multipliers_make_a_bound_above_the_optimum(name):
    rng = np.random.default_rng(3)
    for bias in ("none", "regularized", "free"):
        model, X, labels, weights = drawn(rng, (name, "linear", bias))
        while len(model.classes_) > 2 or X.dtype != np.float64 or weights is not None:
            model, X, labels, weights = drawn(rng, (name, "linear", bias))
        m, y = float(len(labels)), np.where(labels == model.classes_[1], 1.0, -1.0)
        F = OBJECTIVE_FORMULAS[name](model.params, m)
        column = CheckedColumn(F, X, None, y, np.ones(len(y)), bias, m, 2 * F.variance / m)
        best = mdlearn.fit(name, X, labels, bias=bias, tol=1e-9, **model.params).certificate.objective
        near = F.ridge * np.atleast_2d(model.duals[0])
        for beta in [near, 0 * near, *(near * rng.uniform(0, 2, near.shape) for _ in range(5))]:
            bound = column.bound(beta)
            assert bound.value - bound.off <= best + 1e-12 * abs(best)
            assert bound.off <= 1e-9 * (abs(bound.value) + beta.sum() + abs(best)), bias  # a free one is balanced
        assert column.bound(near).value >= best - 0.2 * abs(best)


def test_rounding_stays_within_its_bounds():
    rng = np.random.default_rng(4)
    for _ in range(50):
        A, b = rng.normal(size=(3, 5)) * 10.0 ** rng.integers(-8, 8, (3, 5)), rng.normal(size=5)
        found = ((Rounded(A) @ Rounded(b)) * 0.1 + 1 / 3) * (Rounded(A) @ Rounded(b))
        exact = [sum(Fraction(x) * Fraction(t) for x, t in zip(row, b)) for row in A]
        exact = [(value * Fraction(0.1) + Fraction(1 / 3)) * value for value in exact]
        assert all(abs(Fraction(v) - e) <= Fraction(off) for v, e, off in zip(found.value, exact, found.off))
        whole = found.total()
        assert abs(Fraction(float(whole.value)) - sum(exact)) <= Fraction(float(whole.off))
        assert (found.off <= 1e-13 * (np.abs(A) @ np.abs(b)) * (1 + np.abs(A) @ np.abs(b))).all()


def test_kernels_stay_within_their_bounds():
    X = np.random.default_rng(5).normal(size=(20, 3)) * 3 + 50
    Z = X.astype(np.longdouble)
    for kernel, exact in (
        ("rbf", np.exp(-np.longdouble(0.3) * np.square(Z[:, None] - Z).sum(axis=2))),
        ("poly", (np.longdouble(0.3) * (Z @ Z.T) + np.longdouble(0.7)) ** 3),
    ):
        K = kernel_matrix(X, kernel, {"gamma": 0.3, "coef0": 0.7, "degree": 3})
        assert (np.abs(K.value - exact) <= K.off).all() and (K.off <= 1e-10 * np.abs(exact) + 1e-300).all()


def test_values_that_fit_each_other_are_refuted_all_the_same(tmp_path):
    def claim_the_optimum(header, arrays):
        header["certificate"] |= {"lower_bound": header["certificate"]["objective"], "gap": 0.0}

    def claim_less(header, arrays):
        record = header["certificate"]
        header["certificate"] |= {"objective": 0.9 * record["objective"], "lower_bound": 0.9 * record["lower_bound"]}

    def claim_another_verdict(header, arrays):
        header["certificate"]["converged"] = False

    rough = {"objective": "svm", "kernel": "rbf", "tol": 1e-2}
    assert number_changed(claim_the_optimum, tmp_path, **rough)[1].startswith("its lower bound")
    assert number_changed(claim_less, tmp_path, **rough)[1].startswith("its objective")
    assert "verdict" in number_changed(claim_another_verdict, tmp_path, **rough)[1]


@pytest.mark.parametrize("given", [{"objective": "svm"}, {}, {"kernel": "rbf"}, {"objective": "l2lr"}], ids=str)
def test_multipliers_that_prove_less_are_refuted(given, tmp_path):
    def forget(header, arrays):
        arrays["duals"] *= 0.9

    assert number_changed(forget, tmp_path, **given)[1].startswith("its lower bound")


def test_other_data_are_refuted(tmp_path):
    model, X, y = fitted(objective="svm", kernel="rbf")
    content_of(model, tmp_path)
    path, row = tmp_path / "whole.npz", model.support_[0]
    X[row, 1] *= 1.001
    assert "support rows" in finding(path, X, y)[1]
    X[row, 1] /= 1.001
    y[row] = 1 - y[row]
    assert finding(path, X, y)[0] == 1
    for rows, labels in ((X[1:], y[1:]), (X[:, 1:], y), (X, y + 5)):
        assert "labels, rows or columns" in finding(path, rows, labels)[1]


def test_sums_and_parts_of_several_classes(tmp_path):
    def raise_part(header, arrays):
        header["certificate"]["parts"][1]["lower_bound"] *= 1.001

    def raise_whole(header, arrays):
        record = header["certificate"]
        record["objective"] *= 1.001
        record["gap"] = (record["objective"] - record["lower_bound"]) / record["objective"]

    assert number_changed(raise_part, tmp_path, classes=3)[0] == 1
    assert number_changed(raise_whole, tmp_path, classes=3)[1].startswith("its objective of all classes")


def test_parameters_that_differ_from_those_of_the_kernel(tmp_path):
    def other_width(header, arrays):
        header["params"]["gamma"] *= 1.001

    assert "kernel" in number_changed(other_width, tmp_path, objective="svm", kernel="rbf")[1]


def test_sums_that_rounding_hides_are_not_agreed_on(tmp_path):
    X, y = np.random.default_rng(7).normal(size=(40, 2)), np.arange(40) % 2
    X[2] = X[0]
    model = mdlearn.fit("svm", X, y, kernel="rbf", bias="none", C=0.1)
    header, arrays = content_of(model, tmp_path)
    assert check_model(tmp_path / "whole.npz", X, y)
    arrays["dual_coef"][0, [0, 2]] += [2.0**40, -(2.0**40)]
    code, text = finding(written(header, arrays, tmp_path), X, y)
    assert code == 2 and "rounding hides" in text


def test_hard_margins_weights_and_texts(tmp_path):
    model, X, y = fitted(objective="svm", kernel="rbf", C=np.inf, gamma=50.0)
    header, arrays = content_of(model, tmp_path)
    assert model.certificate.converged and check_model(tmp_path / "whole.npz", X, y)
    arrays["dual_coef"] *= 0.999
    assert finding(written(header, arrays, tmp_path), X, y)[0] == 1
    weights = np.r_[0.0, 2.0, np.ones(58)]
    model = mdlearn.fit("ldm", X.astype(np.float32), np.where(y, "yes", "no"), kernel="rbf", sample_weight=weights)
    model.save(tmp_path / "texts.npz")
    assert check_model(tmp_path / "texts.npz", X, np.where(y, "yes", "no"), weights)
    assert finding(tmp_path / "texts.npz", X, np.where(y, "yes", "no"))[0] == 1


@pytest.mark.parametrize(
    "given",
    [
        {"objective": "mdlm"},
        {"objective": "uldm"},
        {"objective": "lsvm", "reduced": 5},
        {"objective": "svm", "classes": 3, "multiclass": "ovo"},
        {"objective": "svm", "kernel": "precomputed", "transform": lambda X: X @ X.T},
    ],
    ids=lambda given: given["objective"],
)
def test_other_models_cannot_be_checked(given, tmp_path):
    model, X, y = fitted(**given)
    content_of(model, tmp_path)
    code, text = finding(tmp_path / "whole.npz", X, y)
    assert code == 2 and "no formulas" in text


def test_files_without_multipliers_cannot_be_checked(tmp_path):
    X, y = np.random.default_rng(6).normal(size=(40, 3)), np.arange(40) % 2
    mdlearn.fit("l2lr", mdlearn.sources.of_arrays(X, y, rows=10), None).save(tmp_path / "blocks.npz")
    assert finding(tmp_path / "blocks.npz", X, y)[0] == 2


def test_nothing_of_a_file_is_executed(tmp_path):
    class Trap:
        def __reduce__(self):
            return (Path.touch, (tmp_path / "executed",))

    X, y = np.zeros((2, 1)), np.arange(2)
    (tmp_path / "pickle.npz").write_bytes(pickle.dumps(Trap()))
    np.savez(tmp_path / "object.npz", header=np.array([Trap()], dtype=object), digest=np.zeros(32, np.uint8))
    np.save(tmp_path / "array.npy", np.zeros(3))
    np.savez(tmp_path / "other.npz", a=np.zeros(3))
    (tmp_path / "empty.npz").write_bytes(b"")
    for name in ("pickle.npz", "object.npz", "array.npy", "other.npz", "empty.npz"):
        assert finding(tmp_path / name, X, y)[0] == 2, name
    assert not (tmp_path / "executed").exists()


def test_bytes_that_changed_are_refuted(tmp_path):
    model, X, y = fitted(objective="svm")
    content_of(model, tmp_path)
    members = dict(np.load(tmp_path / "whole.npz"))
    for changed in ({"intercept": members["intercept"] + 1e-15}, {"unlisted": np.zeros(1)}):
        np.savez(tmp_path / "bytes.npz", **{**members, **changed})
        assert "digest" in finding(tmp_path / "bytes.npz", X, y)[1]


@pytest.mark.parametrize("header", ["", "a,b,c,d,label\n"], ids=["bare", "named"])
def test_the_file_runs_alone(header, tmp_path):
    model, X, y = fitted(objective="svm", kernel="rbf")
    model.save(tmp_path / "m.npz")
    rows = "".join(",".join(map(repr, [*row, int(label)])) + "\n" for row, label in zip(X.tolist(), y))
    (tmp_path / "checker.py").write_text(FILE.read_text())
    for text, code, word in ((rows, 0, "agreed"), (rows.replace("1\n", "0\n", 1), 1, "refuted")):
        (tmp_path / "d.csv").write_text(header + text)
        command = [sys.executable, "-I", "checker.py", "m.npz", "d.csv"]
        done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)
        assert (done.returncode, done.stdout.split(":")[0], done.stderr) == (code, word, "")
