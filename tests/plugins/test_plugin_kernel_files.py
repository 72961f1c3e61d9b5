"""Models with kernels of plugins: saved by name and parameters, and fitted by the command line."""

from __future__ import annotations

import numpy as np
import pytest
from kernel_cases import LAPLACE, sample
from plugin_cases import Site
from scipy.sparse import csr_matrix

import mdlearn
from mdlearn.cli import main
from mdlearn.model.file import persistence
from mdlearn.plugins.discovery import DISABLE


@pytest.fixture
def site(tmp_path, monkeypatch):
    return Site(tmp_path, monkeypatch)


def test_a_saved_model_finds_its_kernel_by_name(site, tmp_path):
    site.add("laplace-kernel", LAPLACE)
    X, y = sample()
    path = tmp_path / "m.npz"
    for objective, rows in (("ldm", X), ("ldm", csr_matrix(X)), ("l3svm", X)):
        model = mdlearn.fit(objective, rows, y, kernel="laplace", width=2.0)
        model.save(path)
        again = mdlearn.load(path)
        assert again.decision_function(X).tobytes() == model.decision_function(X).tobytes()
        assert again.params == model.params and again.kernel.params == {"width": 2.0}
        again.save(path)  # once more, from what was loaded
        assert mdlearn.load(path).decision_function(X).tobytes() == model.decision_function(X).tobytes()


def changed(path, old, new):
    """Write a model file with another header."""
    with np.load(path) as file:
        arrays = {name: file[name] for name in file.files if name not in ("header", "digest")}
        text = file["header"].tobytes().decode()
    assert old in text
    header = np.frombuffer(text.replace(old, new).encode(), np.uint8)
    np.savez(path, header=header, digest=persistence._model_file_digest(header, arrays), **arrays)


def test_a_kernel_that_is_missing_or_another_one(site, tmp_path):
    site.add("laplace-kernel", LAPLACE)
    X, y = sample()
    path = tmp_path / "m.npz"
    mdlearn.fit("svm", X, y, kernel="laplace", width=2.0).save(path)

    def told():
        with pytest.raises(ValueError) as raised:
            mdlearn.load(path)
        return str(raised.value).removeprefix(f"{path} cannot be loaded: ")

    site.monkeypatch.setenv(DISABLE, "laplace-kernel")
    site.forget()
    assert told() == (
        "it needs the kernel 'laplace' of a plugin; kernel 'laplace' is unknown; known kernels: linear, rbf, poly, "
        "precomputed or a callable k(A, B); plugins with something missing: laplace-kernel 1.0 (entry main): disabled"
    )
    site.monkeypatch.delenv(DISABLE)
    site.forget()
    changed(path, '"width": 2.0}, "rows"', '"width": -2.0}, "rows"')
    assert told().startswith("the installed kernel 'laplace' refuses its parameters: width needs to be")
    changed(path, '"width": -2.0}, "rows"', '"width": "wide"}, "rows"')
    assert told() == "its header gives 'width' as 'wide'"
    changed(path, '"width": "wide"}, "rows"', '"length": 2.0}, "rows"')
    assert told() == "its kernel 'laplace' has the parameters ['length'], the installed one ['width']"
    changed(path, '"kernel": {"name": "laplace"', '"kernel": {"name": "callable"')
    assert told().startswith("it needs the kernel 'callable' of a plugin; kernel 'callable' is unknown")


def test_built_in_kernels_load_without_plugins(site, tmp_path):
    site.add("loud-kernel", "raise SystemExit")
    X, y = sample()
    with pytest.warns(mdlearn.PluginWarning):
        mdlearn.fit("svm", X, y, kernel="rbf").save(tmp_path / "m.npz")
    site.forget()
    mdlearn.load(tmp_path / "m.npz").predict(X)  # a warning would be an error


def test_fit_by_the_command_line(site, capsys):
    pytest.importorskip("sklearn")
    site.add("laplace-kernel", LAPLACE)
    rows = ["+1 1:1 2:1", "-1 1:1 2:-1", "+1 1:-1 2:-1", "-1 1:-1 2:1"]
    (site.folder / "a.svm").write_text("\n".join(rows * 3) + "\n")
    site.monkeypatch.chdir(site.folder)
    assert main(["fit", "a.svm", "-o", "m.npz", "--kernel", "laplace", "--param", "width=0.5"]) == 0
    assert "kernel, bias:      laplace, regularized" in capsys.readouterr().out
    assert main(["predict", "m.npz", "a.svm"]) == 0
    assert "accuracy: 1 " in capsys.readouterr().err
    for command in (["fit", "a.svm", "-o", "m.npz"], ["compare", "--data", "."]):
        assert main([*command, "--kernel", "gauss"]) == 1
        assert capsys.readouterr().err.startswith("error: kernel 'gauss' is unknown; known kernels: linear, rbf, ")
