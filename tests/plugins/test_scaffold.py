"""`new-plugin` writes a package that installs, registers, and passes its own tests unchanged."""

from __future__ import annotations

import re
import shutil
import tomllib
from pathlib import Path

import pytest
from plugin_cases import Site, can_build, can_compile, install, run_tests

import mdlearn
from mdlearn.cli import main
from mdlearn.plugins.registry import registry
from mdlearn.plugins.scaffold import new_plugin
from mdlearn.plugins.scaffold_files import FILE_KINDS
from mdlearn.testing import CHECKS


@pytest.mark.slow
@pytest.mark.skipif(not (can_build() and can_compile()), reason="needs pip, setuptools>=70.1, Cython, a C compiler")
def test_with_a_compiled_loss(tmp_path, capsys):
    assert main(["new-plugin", "My-Corner", "--native", "--dir", str(tmp_path / "new")]) == 0
    package, target = tmp_path / "new" / "My-Corner", tmp_path / "site"
    assert capsys.readouterr().out == f"{package} written; in that folder run: pip install '.[test]' && pytest\n"
    install(package, target)
    shutil.rmtree(package / "src")
    done = run_tests(package, target)
    assert done.returncode == 0, done.stdout
    assert re.search(rf"^{len(CHECKS) + 3} passed in", done.stdout.splitlines()[-1])


@pytest.mark.slow
@pytest.mark.skipif(not can_build(), reason="needs pip and setuptools>=70.1")
def test_it_installs_registers_and_passes_its_tests(tmp_path):
    assert main(["new-plugin", "My-Band_2", "--dir", str(tmp_path / "new")]) == 0
    package, target = tmp_path / "new" / "My-Band_2", tmp_path / "site"
    install(package, target)
    done = run_tests(package, target)
    assert done.returncode == 0, done.stdout
    assert re.search(rf"^{len(CHECKS) + 2} passed in", done.stdout.splitlines()[-1])
    # And its tests do test: they fail for another loss under the same name.
    module = target / "my_band_2" / "__init__.py"
    module.write_text(module.read_text().replace("threshold=2.0", "threshold=1.5"))
    done = run_tests(package, target, "-k", "formula")
    assert done.returncode == 1 and "1 failed" in done.stdout


WRONG = {
    "composite": ("0.5 * float((self.share", "0.6 * float((self.share"),
    "solver": ("form.features.expand(alpha) - w", "form.features.expand(alpha) + w"),
    "kernel": ('/ params["width"]', '* params["width"]'),
    "source": ("sorted(X.glob", "sorted(X.parent.glob"),
    "command": ("reads=[given.data], ", ""),
}
"""For every kind beside an objective, a mistake in what is written, which the tests that are written find."""


@pytest.mark.slow
@pytest.mark.skipif(not can_build(), reason="needs pip and setuptools>=70.1")
@pytest.mark.parametrize("kind", WRONG)
def test_every_kind_installs_registers_and_passes_its_tests(tmp_path, kind):
    assert main(["new-plugin", "My-Part", "--kind", kind, "--dir", str(tmp_path / "new")]) == 0
    package, target = tmp_path / "new" / "My-Part", tmp_path / "site"
    install(package, target)
    done = run_tests(package, target)
    assert done.returncode == 0, done.stdout
    module = target / "my_part" / "__init__.py"
    text = module.read_text()
    assert text.count(WRONG[kind][0]) == 1
    module.write_text(text.replace(*WRONG[kind]))
    done = run_tests(package, target)
    assert done.returncode == 1 and "failed" in done.stdout


@pytest.mark.slow
@pytest.mark.skipif(not can_build(), reason="needs pip and setuptools>=70.1")
@pytest.mark.parametrize("kind", ["estimator,kernel,command", "composite,solver,source"])
def test_several_kinds_install_register_and_pass_their_tests(tmp_path, kind):
    if "estimator" in kind:
        pytest.importorskip("sklearn", reason="estimators need scikit-learn")
    assert main(["new-plugin", "My-Part", "--kind", kind, "--dir", str(tmp_path / "new")]) == 0
    package, target = tmp_path / "new" / "My-Part", tmp_path / "site"
    install(package, target)
    done = run_tests(package, target)
    assert done.returncode == 0, done.stdout
    if "estimator" not in kind:
        return
    module = target / "my_part" / "estimator.py"
    module.write_text(module.read_text() + "\n    def predict(self, X):\n        return 1 - super().predict(X)\n")
    done = run_tests(package, target, "-k", "estimator")
    assert done.returncode == 1 and "failed" in done.stdout


def test_modules_of_several_kinds(tmp_path):
    package = new_plugin("mdlearn-own", tmp_path, kind="kernel, estimator,command,kernel")
    assert sorted(path.name for path in package.rglob("*.py")) == [
        *("__init__.py", "command.py", "estimator.py", "kernel.py", "objective.py"),
        *(f"test_mdlearn_own_{word}.py" for word in ("command", "estimator", "kernel", "objective")),
    ]
    texts = {path.name: path.read_text() for path in package.rglob("*") if path.is_file()}
    assert all("$" not in text and text.endswith("\n") and not text.endswith("\n\n") for text in texts.values())
    assert [text.count("requires_api = 1") for text in texts.values() if "requires_api" in text] == [1]
    assert texts["__init__.py"].startswith('"""The objective, kernel and command own for mdlearn."""\n')
    assert "from mdlearn_own.kernel import OwnKernel\n" in texts["__init__.py"]
    assert "class OwnClassifier(MarginClassifier, objective=OwnObjective):" in texts["estimator.py"]
    assert "scikit-learn" in texts["pyproject.toml"]


@pytest.mark.parametrize("kind", WRONG)
def test_names_of_every_kind(tmp_path, kind, capsys):
    """Nothing is left open in what is written, and a built-in name of the kind is refused."""
    package = new_plugin("mdlearn-own", tmp_path, kind=kind)
    texts = [path.read_text() for path in package.rglob("*") if path.is_file()]
    assert len(texts) == 4
    assert all("$" not in text and text.endswith("\n") and not text.endswith("\n\n") for text in texts)
    taken = {"composite": "svm", "solver": "newton", "kernel": "rbf", "command": "demo"}.get(kind)
    if taken:
        assert main(["new-plugin", f"mdlearn-{taken}", "--kind", kind, "--dir", str(tmp_path)]) == 1
        assert f" {'objective' if kind == 'composite' else kind} {taken!r}, which exists" in capsys.readouterr().err


@pytest.mark.parametrize("kind", [*FILE_KINDS, "native"])
def test_a_readme_repeats_nothing_that_an_author_will_change(tmp_path, kind):
    """No value of a parameter or option, no argument, no name of the example's: commands print what classes declare."""
    native = kind == "native"
    text = (new_plugin("own", tmp_path, native, "objective" if native else kind) / "README.md").read_text()
    assert not re.search(r"\w=-?[\d.]|\blam\b|\bmu\b|\bwidth\b|Path\(", text)
    assert not set(re.findall(r"--\w+", text)) - {"--help"}
    printed = {"solver": "solvers", "kernel": "kernels", "command": "own --help"}.get(kind, "objectives")
    assert f"`python -m mdlearn {printed}`" in text or kind == "source"


def test_kinds_that_cannot_be(tmp_path, capsys):
    assert main(["new-plugin", "own", "--kind", "engine", "--dir", str(tmp_path)]) == 1
    known = "objective, composite, estimator, solver, kernel, source, command"
    assert f"one of {known}; got 'engine'" in capsys.readouterr().err
    assert main(["new-plugin", "own", "--kind", "objective,", "--dir", str(tmp_path)]) == 1
    assert f"one of {known}; got ''" in capsys.readouterr().err
    assert main(["new-plugin", "own", "--kind", "objective,composite", "--dir", str(tmp_path)]) == 1
    assert "a composite is an objective, without a bias; leave out composite, or objective" in capsys.readouterr().err
    assert main(["new-plugin", "svm", "--kind", "kernel,estimator", "--dir", str(tmp_path)]) == 1
    assert "would make an objective 'svm', which exists" in capsys.readouterr().err
    assert main(["new-plugin", "own", "--kind", "solver", "--native", "--dir", str(tmp_path)]) == 1
    assert "leave out --native, or --kind solver" in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_what_is_written(tmp_path, capsys):
    assert main(["new-plugin", "mdlearn-wide.margin", "--dir", str(tmp_path)]) == 0
    package = tmp_path / "mdlearn-wide.margin"
    assert capsys.readouterr().out == f"{package} written; in that folder run: pip install -e '.[test]' && pytest\n"
    assert sorted(path.relative_to(package).as_posix() for path in package.rglob("*") if path.is_file()) == [
        "README.md",
        "pyproject.toml",
        "src/mdlearn_wide_margin/__init__.py",
        "tests/test_mdlearn_wide_margin.py",
    ]
    project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
    assert project["name"] == "mdlearn-wide.margin"
    assert project["entry-points"] == {"mdlearn": {"main": "mdlearn_wide_margin"}}
    texts = [path.read_text() for path in package.rglob("*") if path.is_file()]
    assert all("$" not in text and text.endswith("\n") and not text.endswith("\n\n") for text in texts)
    names = {}
    exec((package / "src/mdlearn_wide_margin/__init__.py").read_text(), names)
    (objective,) = names["mdlearn_objectives"]()
    assert objective.name == "wide_margin" and objective.__name__ == "WideMarginObjective"
    model = mdlearn.fit(objective, [[0.0], [1.0], [2.0]], [0, 0, 1], C=3.0)
    assert model.certificate.converged and model.params == {"C": 3.0, "mu": 0.1}


@pytest.mark.parametrize(
    ("name", "told"),
    [
        ("", "cannot be a package"),
        ("two words", "cannot be a package"),
        ("../up", "cannot be a package"),
        ("-x", "cannot be a package"),
        ("x-", "cannot be a package"),
        ("a--b", "cannot be a package"),
        ("1st", "cannot be a package"),
        ("naïve", "cannot be a package"),
        ("json", "would make a module 'json', which exists"),
        ("Numpy", "would make a module 'numpy', which exists"),
        ("class", "would make a module 'class', which exists"),
        ("mdlearn", "would make a module 'mdlearn', which exists"),
        ("LDM", "would make an objective 'ldm', which exists"),
        ("mdlearn-svm", "would make an objective 'svm', which exists"),
        ("mdlearn-3", "let a letter follow 'mdlearn_'"),
    ],
)
def test_names_that_cannot_be(tmp_path, name, told, capsys):
    code = main(["new-plugin", "--dir", str(tmp_path / "new"), "--", name])
    printed = capsys.readouterr()
    assert code == 1 and printed.out == ""
    assert printed.err.startswith(f"error: NAME {name!r} ") and told in printed.err and printed.err.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_an_existing_folder_is_left_alone(tmp_path, capsys):
    (tmp_path / "band").mkdir()
    (tmp_path / "band" / "mine.txt").write_text("mine")
    (tmp_path / "file").write_text("mine")
    for name, what in (("band", "not empty"), ("file", "no folder")):
        assert main(["new-plugin", name, "--dir", str(tmp_path)]) == 1
        said = capsys.readouterr().err
        assert f"{tmp_path / name} exists already" in said and f"{what}; give another NAME or --dir" in said
    assert main(["new-plugin", "band", "--dir", str(tmp_path / "file")]) == 1
    assert str(tmp_path / "file") in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["band", "file", "mine.txt"]


def test_half_a_package_is_removed(tmp_path, monkeypatch):
    write = Path.write_text

    def full(path, *arguments, **options):
        if path.name == "README.md":
            raise OSError(28, "No space left on device")
        return write(path, *arguments, **options)

    monkeypatch.setattr(Path, "write_text", full)
    with pytest.raises(OSError, match="No space"):
        new_plugin("band", tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_name_of_another_plugin_is_refused_and_ones_own_is_not(tmp_path, monkeypatch):
    site = Site(tmp_path, monkeypatch)
    target = new_plugin("mdlearn-band", tmp_path / "new")
    site.add("mdlearn-band", (target / "src" / "mdlearn_band" / "__init__.py").read_text())
    assert "band" in registry().objectives
    with pytest.raises(
        ValueError, match=r"^NAME 'band' would make an objective 'band', which exists; give another NAME$"
    ):
        new_plugin("band", tmp_path)
    assert new_plugin("MDLEARN.Band", tmp_path).is_dir()
