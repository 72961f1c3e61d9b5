"""Models from files: what a certificate is worth, bounds of the header, parameters as a fit would take them."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest
from persistence_cases import CASES, fitted, opened, sealed

import mdlearn
from mdlearn.data.features.kernels import RANGES
from mdlearn.model.file import persistence


def refused(tmp_path, header, arrays, *words):
    path = tmp_path / "changed.npz"
    path.write_bytes(sealed(header, arrays))
    with pytest.raises(ValueError, match="cannot be loaded") as caught:
        mdlearn.load(path)
    for word in words:
        assert word in str(caught.value)


def saved(tmp_path, *arguments, **given):
    model, X, _ = fitted(*arguments, **given)
    model.save(tmp_path / "m.npz")
    return model, X, opened((tmp_path / "m.npz").read_bytes())


@pytest.mark.parametrize("case", ["linear", "three classes"])
def test_a_certificate_says_where_it_comes_from(case, tmp_path):
    model, X, y = fitted(**CASES[case])
    assert model.certificate.source == "fit" and all(part.source == "fit" for part in model.certificate.parts)
    model.save(tmp_path / "m.npz")
    again = mdlearn.load(tmp_path / "m.npz")
    assert again.certificate.source == "file" and all(part.source == "file" for part in again.certificate.parts)
    assert "source='file'" in repr(again.certificate) and again.certificate == model.certificate
    again.save(tmp_path / "again.npz")
    assert mdlearn.load(tmp_path / "again.npz").certificate.source == "file"
    assert mdlearn.fit("ldm", X, y, warm_start=again).certificate.source == "fit"


def test_a_header_has_a_largest_size(tmp_path, monkeypatch):
    _, _, (header, arrays) = saved(tmp_path)
    size = len(json.dumps(header).encode())
    monkeypatch.setattr(persistence, "HEADER_BYTES_LIMIT", 2 * size)
    mdlearn.load(tmp_path / "m.npz")
    refused(tmp_path, {**header, "notes": {"x": "y" * 2 * size}}, arrays, "'header'", f"{2 * size} at most")
    assert persistence.is_model_file(tmp_path / "m.npz") and not persistence.is_model_file(tmp_path / "changed.npz")
    monkeypatch.setattr(persistence, "HEADER_BYTES_LIMIT", size)
    with pytest.raises(ValueError, match=r"MB of text cannot be saved \(.* MB at most\); fit with"):
        fitted()[0].save(tmp_path / "large.npz")
    assert not (tmp_path / "large.npz").exists()


def test_a_header_needs_its_memory(tmp_path, monkeypatch):
    _, _, (header, arrays) = saved(tmp_path)
    notes = {"x": [[0]] * 200_000}
    (tmp_path / "m.npz").write_bytes(sealed({**header, "notes": notes}, arrays))
    monkeypatch.setattr("mdlearn.numerics.memory.available_bytes", lambda: 2e7)
    with pytest.raises(mdlearn.InsufficientMemory, match="the header of this model file needs"):
        mdlearn.load(tmp_path / "m.npz")


@pytest.mark.parametrize(
    "parameter, value",
    [("degree", 10**18), ("degree", 1025), ("degree", 0), ("gamma", 0.0), ("gamma", -1.0), ("coef0", -1.0)],
)
def test_parameters_of_kernels_are_those_that_fit_takes(parameter, value, tmp_path):
    given = {"kernel": "poly", "degree": 2, "gamma": 0.5, "coef0": 1.0}
    with pytest.raises(ValueError, match=parameter):
        fitted(**{**given, parameter: value})
    _, _, (header, arrays) = saved(tmp_path, **given)
    header["kernel"]["params"][parameter] = header["params"][parameter] = value
    refused(tmp_path, header, arrays, parameter)


def test_the_largest_degree_loads(tmp_path):
    model, X, _ = fitted(kernel="poly", degree=RANGES["degree"]["high"], gamma=1e-3, coef0=0.5)
    model.save(tmp_path / "m.npz")
    assert np.isfinite(mdlearn.load(tmp_path / "m.npz").decision_function(X)).all()


def test_a_kernel_parameter_is_told_once(tmp_path):
    _, _, (header, arrays) = saved(tmp_path, kernel="rbf", gamma=0.5)
    header["params"]["gamma"] = 0.25
    refused(tmp_path, header, arrays, "'gamma'", "0.25", "0.5")


@pytest.mark.parametrize(
    "objective, name, value",
    [
        ("ldm", "C", -1.0),
        ("ldm", "lambda1", "much"),
        ("svm", "C", float("nan")),
        ("l3svm", "n_levels", 0),
        ("l3svm", "loss", "hing"),
        ("uldm", "c_scaling", "min_diag"),
        ("mdlm", "beta", -1.0),
    ],
)
def test_parameters_of_objectives_are_those_that_fit_takes(objective, name, value, tmp_path):
    with pytest.raises((TypeError, ValueError), match=name):
        fitted(objective, **{name: value})
    _, _, (header, arrays) = saved(tmp_path, objective)
    assert name in header["params"]
    header["params"][name] = {"number": "nan"} if value != value else value
    refused(tmp_path, header, arrays, name)


@pytest.mark.parametrize("objective", mdlearn.list_objectives())
def test_defaults_and_given_values_load(objective, tmp_path):
    model, _, _ = fitted(objective)
    model.save(tmp_path / "m.npz")
    again = mdlearn.load(tmp_path / "m.npz")
    assert again.params.keys() == model.params.keys()


def test_loading_needs_no_engines(tmp_path):
    fitted("svm")[0].save(tmp_path / "m.npz")
    code = "import sys, mdlearn; mdlearn.load(sys.argv[1]); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path / "m.npz")], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "mdlearn.objectives.svm" in done.stdout and "mdlearn.solvers.coordinate_descent.solver" not in done.stdout
