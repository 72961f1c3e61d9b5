"""Same call, same bits; inputs and global state untouched; a light import."""

from __future__ import annotations

import importlib
import json
import os
import pkgutil
import random
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest
from judging import engine_names

import mdlearn

pytestmark = pytest.mark.threads


def data(seed=0, m=200, d=5, classes=2):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d))
    return X, np.argmax(X[:, :classes] + 0.7 * rng.standard_normal((m, classes)), axis=1)


def bits(model, X):
    """Everything numerical that a model holds."""
    arrays = [model.dual_coef_, model.intercept_, model.duals, model.decision_function(X), model.support_]
    if hasattr(model, "coef_"):
        arrays.append(model.coef_)
    c = model.certificate
    return (
        b"".join(np.ascontiguousarray(a).tobytes() for a in arrays) + repr((c.objective, c.lower_bound, c.gap)).encode()
    )


SETTINGS = [
    {},
    {"kernel": "rbf"},
    {"kernel": "rbf", "bias": "free"},
    {"kernel": "poly", "degree": 2},
    {"bias": "free"},
    {"solver": "cd"},
    {"solver": "interior"},
    {"solver": "cd", "kernel": "rbf", "C": 100.0},
]


QUIET = [("hybrid", "svm"), ("interior", "svm"), ("newton", "lsvm"), ("direct", "lsldm"), ("smw", "lsvm")]
"""Engines that draw no random numbers, with an objective that they take."""


@pytest.mark.parametrize(("solver", "objective"), QUIET)
def test_an_engine_that_draws_nothing_has_the_same_bits_for_every_seed(solver, objective, monkeypatch):
    X, y = data()
    one = mdlearn.fit(objective, X, y, solver=solver, random_state=1)
    monkeypatch.setattr(np.random, "default_rng", None)  # no generator is made, either
    assert bits(mdlearn.fit(objective, X, y, solver=solver, random_state=2), X) == bits(one, X)


def test_an_engine_that_draws_has_other_bits_for_another_seed():
    X, y = data()
    one, other = (mdlearn.fit("svm", X, y, solver="asgd", random_state=seed) for seed in (1, 2))
    assert bits(one, X) != bits(other, X)


@pytest.mark.parametrize("classes", [2, 3])
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_same_call_same_bits(settings, classes):
    X, y = data(classes=classes)
    first = mdlearn.fit("ldm", X, y, **settings)
    mdlearn.fit("svm", *data(1, 50, 3))  # something else in between
    np.random.random(7)  # noqa: NPY002
    again = mdlearn.fit("ldm", X, y, **settings)
    zero = mdlearn.fit("ldm", X, y, random_state=0, **settings)
    assert bits(first, X) == bits(again, X)
    assert bits(first, X) == bits(zero, X), "random_state=None means 0"


@pytest.mark.slow
@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_same_bits_in_another_process(settings, tmp_path):
    X, y = data()
    np.savez(tmp_path / "data.npz", X=X, y=y)
    script = (
        "import numpy as np, mdlearn, json, sys\n"
        "file = np.load('data.npz')\n"
        "model = mdlearn.fit('ldm', file['X'], file['y'], **json.loads(sys.argv[1]))\n"
        "print(model.decision_function(file['X']).tobytes().hex())\n"
    )
    done = run(["-c", script, json.dumps(settings)], tmp_path)
    assert done.stdout.strip() == mdlearn.fit("ldm", X, y, **settings).decision_function(X).tobytes().hex()


def test_another_seed_is_another_way_to_the_same_optimum():
    X, y = data()
    a = mdlearn.fit("ldm", X, y, solver="cd", kernel="rbf", random_state=0, tol=1e-12)
    b = mdlearn.fit("ldm", X, y, solver="cd", kernel="rbf", random_state=1, tol=1e-12)
    np.testing.assert_allclose(a.decision_function(X), b.decision_function(X), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("pair", [("linear", "linear"), ("rbf", "rbf"), ("linear", "rbf")], ids="-".join)
def test_two_fits_in_two_threads(pair):
    """At once and alone: the same bits, with a callback each that sees only its own fit."""
    sets = [data(10, 600, 20), data(11, 500, 15)]
    given = [{"kernel": kernel, "C": 10.0, "tol": 1e-9} for kernel in pair]
    alone = [bits(mdlearn.fit("ldm", X, y, **more), X) for (X, y), more in zip(sets, given)]
    for _ in range(3):
        together, errors = [None, None], []
        gate = threading.Barrier(2)

        def work(k, together=together, errors=errors, gate=gate):
            try:
                X, y = sets[k]
                gate.wait()
                for _ in range(2):
                    together[k] = bits(mdlearn.fit("ldm", X, y, **given[k]), X)
            except BaseException as error:
                errors.append(error)

        threads = [threading.Thread(target=work, args=(k,)) for k in range(2)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert not errors, errors
        assert together == alone


def test_the_same_data_in_four_threads():
    X, y = data(12, 300, 8, classes=3)
    alone = bits(mdlearn.fit("ldm", X, y, kernel="rbf"), X)
    answers = []

    def work():
        answers.append(bits(mdlearn.fit("ldm", X, y, kernel="rbf"), X))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [alone] * 4


@pytest.mark.parametrize("settings", SETTINGS, ids=str)
def test_inputs_are_not_modified(settings):
    X, y = data(classes=3)
    weight = np.random.default_rng(2).exponential(1.0, len(y))
    weight[:5] = 0.0
    kept = X.copy(), y.copy(), weight.copy()
    options = {}
    model = mdlearn.fit("ldm", X, y, sample_weight=weight, class_weight={0: 2.0}, solver_options=options, **settings)
    model.predict(X), model.decision_function(X), model.margins(X, y), model.score(X, y, weight)
    for now, then in zip((X, y, weight), kept):
        np.testing.assert_array_equal(now, then)
    assert options == {}


def test_a_model_does_not_hang_on_to_the_callers_array():
    """Changing X afterwards does not change the model."""
    for kernel in ("linear", "rbf", "poly"):
        X, y = data()
        model = mdlearn.fit("ldm", X, y, kernel=kernel)
        rows = X[:20].copy()
        before = model.decision_function(rows)
        X[:] = 7.0
        np.testing.assert_array_equal(model.decision_function(rows), before)


@pytest.mark.parametrize("kernel", ["linear", "rbf", "precomputed"])
@pytest.mark.parametrize("bias", ["regularized", "free"])
def test_read_only_arrays(kernel, bias, tmp_path):
    X, y = data()
    given = X @ X.T if kernel == "precomputed" else X
    weight = np.ones(len(y))
    expected = bits(mdlearn.fit("ldm", given, y, kernel=kernel, bias=bias, sample_weight=weight), given)
    for array in (given, y, weight):
        array.setflags(write=False)
    assert bits(mdlearn.fit("ldm", given, y, kernel=kernel, bias=bias, sample_weight=weight), given) == expected
    np.save(tmp_path / "X.npy", given)
    mapped = np.load(tmp_path / "X.npy", mmap_mode="r")
    assert bits(mdlearn.fit("ldm", mapped, y, kernel=kernel, bias=bias, sample_weight=weight), given) == expected


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_layouts_and_types_of_the_same_numbers(kernel):
    X, y = data()
    X = np.round(4 * X)  # exact in every type
    expected = bits(mdlearn.fit("ldm", X, y, kernel=kernel), X)
    wide = np.zeros((len(y), 2 * X.shape[1]))
    wide[:, ::2] = X
    same = {
        "Fortran order": np.asfortranarray(X),
        "strided": wide[:, ::2],
        "reversed twice": X[::-1][::-1],
        "lists": X.tolist(),
        "int64": X.astype(np.int64),
        "int8": X.astype(np.int8),
        "objects": X.astype(object),
        "big endian": X.astype(">f8"),
    }
    model = mdlearn.fit("ldm", X, y, kernel=kernel, tol=1e-12)
    f = model.decision_function(X)
    for name, rows in same.items():
        # The rows are used where they lie: another layout may round another way.
        other = mdlearn.fit("ldm", rows, y, kernel=kernel, tol=1e-12)
        np.testing.assert_allclose(other.decision_function(X), f, rtol=0, atol=1e-10, err_msg=name)
        np.testing.assert_allclose(model.decision_function(rows), f, rtol=0, atol=1e-12, err_msg=name)
        if rows is not same["Fortran order"] and rows is not same["strided"] and rows is not same["reversed twice"]:
            assert bits(mdlearn.fit("ldm", rows, y.tolist(), kernel=kernel), X) == expected, name


def test_random_generators_of_others_are_left_alone():
    np.random.seed(5)  # noqa: NPY002
    random.seed(5)
    state, other = np.random.get_state(), random.getstate()  # noqa: NPY002
    X, y = data(classes=3)
    for solver in ("auto", *engine_names()):
        for kernel in ("linear", "rbf"):
            try:
                mdlearn.fit("ldm", X, y, solver=solver, kernel=kernel)
            except ValueError:
                continue
    now = np.random.get_state()  # noqa: NPY002
    assert now[0] == state[0] and (now[1] == state[1]).all() and now[2:] == state[2:]
    assert random.getstate() == other


def test_settings_of_the_process_are_left_alone():
    import signal

    handler, errors, threads = signal.getsignal(signal.SIGINT), np.geterr(), set(threading.enumerate())
    X, y = data()
    for kernel in ("linear", "rbf"):
        mdlearn.fit("ldm", X, y, kernel=kernel)
    assert signal.getsignal(signal.SIGINT) is handler and np.geterr() == errors
    assert not set(threading.enumerate()) - threads  # one of an earlier test may have ended meanwhile


# ---------------------------------------------------------------- import


def run(arguments, folder):
    root = str(Path(mdlearn.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, *arguments]
    done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr[-3000:]
    return done


def test_import_is_light(tmp_path):
    """import mdlearn brings no other package; everything comes with its first use."""
    script = "import sys\nimport {}\nprint(chr(10).join({{name.split('.')[0] for name in sys.modules}}))\n"
    plain = set(run(["-c", script.format("sys")], tmp_path).stdout.split())
    ours = set(run(["-c", script.format("mdlearn")], tmp_path).stdout.split())
    assert ours - plain - set(sys.stdlib_module_names) == {"mdlearn"}


def test_listing_and_dir_are_light_too(tmp_path):
    """Names can be completed and listed without the optional packages."""
    script = (
        "import sys, mdlearn; assert 'fit' in dir(mdlearn); print('scipy' in sys.modules, 'sklearn' in sys.modules)"
    )
    assert run(["-c", script], tmp_path).stdout.split() == ["False", "False"]


def submodules():
    return [
        module.name
        for module in pkgutil.walk_packages(mdlearn.__path__, "mdlearn.")
        if not module.name.endswith("__main__")
    ]


def test_every_submodule_imports_and_hides_no_public_function():
    names = submodules()
    assert len(names) > 20
    for name in names:
        importlib.import_module(name)
    assert callable(mdlearn.fit) and callable(mdlearn.list_objectives) and callable(mdlearn.list_solvers)
    X, y = data(m=30)
    assert mdlearn.fit("ldm", X, y).predict(X).shape == (30,)
    assert {"ldm", "svm"} <= set(mdlearn.list_objectives()) and {"cd", "interior"} <= set(mdlearn.list_solvers())
    for public in mdlearn.__all__:
        assert getattr(mdlearn, public) is not None
    functions = [name for name in mdlearn.__all__ if callable(getattr(mdlearn, name))]
    assert "fit" in functions
    clashes = {f"mdlearn.{name}" for name in functions} & set(names)
    assert not clashes, "no module bears the name of a public function"


@pytest.mark.slow
def test_every_submodule_imports(tmp_path):
    """The last one first; that none leans on another one having come before is seen in test_imports."""
    script = (
        "import importlib, sys\nfor name in reversed(sys.argv[1:]):\n    importlib.import_module(name)\nprint('done')"
    )
    assert run(["-c", script, *submodules()], tmp_path).stdout.split() == ["done"]
