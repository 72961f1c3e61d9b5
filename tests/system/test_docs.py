"""README.md, CHANGELOG.md and docs/ say what the code does."""

from __future__ import annotations

import ast
import importlib
import inspect
import re
import warnings

import numpy as np
import pytest
from documents import ARCHITECTURE, PROJECT, README, ROOT, blocks, syntax_trees

import mdlearn
import mdlearn.objectives
from mdlearn.data.features.kernels import PARAMETERS
from mdlearn.plugins.registry import registry
from mdlearn.testing import CHECKS

BUILT_IN = {cls.name: cls for cls in mdlearn.objectives.mdlearn_objectives()}
LIMITS = (ROOT / "docs" / "limits.md").read_text(encoding="utf-8")


def rows(text, mark):
    """Cells of the table that follows a mark, without its two head lines."""
    lines = text.split(mark, 1)[1].splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("|"))
    table = [line for line in lines[start:] if line]
    end = next((i for i, line in enumerate(table) if not line.startswith("|")), len(table))
    cells = [re.split(r"(?<!\\)\|", line)[1:-1] for line in table[:end]]
    return [[cell.strip().strip("`").replace(r"\|", "|") for cell in row] for row in (cells[0], *cells[2:])]


# ---------------------------------------------------------------- README


def test_the_two_commands():
    demo, test = blocks(README, "sh")
    for command in (demo, test):
        assert "\n" not in command
        assert command.startswith("python3 -m venv .venv && . .venv/bin/activate && pip install ")
        for extra in re.search(r'"\.\[(.*?)\]"', command).group(1).split(","):
            assert extra in PROJECT["optional-dependencies"]
    assert demo.endswith("&& python -m mdlearn demo")
    assert test.endswith("&& pytest -n 2")
    # The script in .ci finds it by this mark.
    assert re.findall(r"^<!-- test-command -->\s*\n```\w*\n(.*?)\n```$", README, re.MULTILINE | re.DOTALL) == [test]


def test_the_tools_of_developers_are_no_part_of_the_tests():
    extras = PROJECT["optional-dependencies"]
    tools = ("pytest-randomly", "ruff", "mypy")
    assert all(any(one.startswith(tool) for one in extras["dev"]) for tool in tools)
    assert not any(one.startswith(tools) for name in ("test", "test-all") for one in extras[name])


@pytest.mark.extras
def test_from_data_to_a_saved_model(tmp_path, monkeypatch, capsys):
    pytest.importorskip("sklearn", reason="the example's data come with scikit-learn")
    pyplot = pytest.importorskip("matplotlib.pyplot")
    way, one_fit = blocks(README, "python")[:2]
    assert len([line for line in way.splitlines() if line]) < 10
    monkeypatch.chdir(tmp_path)
    names = {}
    exec(way, names)
    chosen = names["chosen"]
    assert capsys.readouterr().out.startswith(f"{chosen!r} CrossValidation(accuracy=")
    assert chosen.model.certificate.converged and (tmp_path / "margins.png").stat().st_size > 5000
    assert mdlearn.load(tmp_path / "ldm.npz").params["C"] == chosen.best_params["C"]
    pyplot.close("all")

    exec(one_fit, names)
    model = names["model"]
    assert capsys.readouterr().out.startswith(f"{model.score(names['X'], names['y'])} Certificate(")
    assert model.certificate.converged and model.objective == "ldm"
    told = re.search(r"`model` has (.*?)\.\s`mdlearn", README, re.DOTALL).group(1)
    kernel_only = {"coef_"}
    for name in set(re.findall(r"`(\w+)`", told)) - kernel_only:
        assert hasattr(model, name), f"README says that a model has {name}"


def test_the_pipeline_of_the_readme(capsys):
    pytest.importorskip("sklearn")
    data = importlib.import_module("sklearn.datasets").load_breast_cancer(return_X_y=True)
    exec(blocks(README, "python")[2], dict(zip("Xy", (data[0][::3], data[1][::3]))))
    assert "converged=True" in capsys.readouterr().out


def test_the_objective_of_the_readme_passes_the_checks():
    names = {}
    exec(blocks(README, "python")[3], names)
    (objective,) = names["mdlearn_objectives"]()
    for check in CHECKS:
        check(objective)


def test_the_table_of_objectives_and_engines():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((24, 2)), np.tile([0, 1], 12)

    def takes(engine, objective, bias, **settings):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
            try:
                mdlearn.fit(objective, X, y, solver=engine, bias=bias, max_iter=2, **settings)
            except ValueError as error:
                assert "cannot take this problem" in str(error), error
                return False
        return True

    def takes_rows(engine, objective, bias):
        linear = takes(engine, objective, bias)
        if objective.kernels and engine.name in ("decomposition", "newton-cg"):  # those that take no other
            assert not linear
            return takes(engine, objective, bias, kernel="rbf")
        if objective.kernels and objective.name != "uldm":
            exact = not engine.ends_itself(engine.check_options({})) and engine.name not in ("apg", "hybrid")
            told = "docs/limits.md: exact engines take every kernel, apg, hybrid and stochastic ones the linear one"
            kernel = takes(engine, objective, bias, kernel="rbf")
            assert kernel == (linear and exact), told
        return linear

    _, *told = rows(README, "<!-- engines -->")
    engines = {name: cls() for name, cls in registry().solvers.items()}
    objectives = {name: cls() for name, cls in BUILT_IN.items()}
    assert told == [
        [
            name,
            objective.formula,
            objective.default_bias,
            ", ".join(title for title, engine in engines.items() if takes_rows(engine, objective, "regularized")),
        ]
        for name, objective in objectives.items()
    ]
    free = {
        title for title, e in engines.items() for objective in objectives.values() if takes_rows(e, objective, "free")
    }
    line = next(line for line in LIMITS.splitlines() if line.startswith("- Bias"))
    assert re.findall(r"`([\w-]+)`", line.split("needs")[1]) == sorted(free)
    line = next(line for line in LIMITS.splitlines() if line.startswith("- Kernels"))
    assert re.findall(r"`(\w+)`", line) == list(PARAMETERS)


def test_the_limits_are_limits():
    ways = set().union(*(cls.multiclass for cls in BUILT_IN.values()))
    assert {way for way in ways if f'"{way}"' not in LIMITS} == set()
    assert {name for name, cls in BUILT_IN.items() if cls.task != "classification"} == {"svr"}
    scipy_sparse = pytest.importorskip("scipy.sparse")
    with pytest.raises(TypeError, match="dense"):
        mdlearn.fit("svm", scipy_sparse.eye(4, format="csr"), [0, 1, 0, 1], kernel="precomputed")


def test_the_gap_is_as_told():
    rng = np.random.default_rng(0)
    X, y = rng.standard_normal((40, 3)), rng.integers(0, 2, 40)
    told = mdlearn.fit("ldm", X, y, tol=0.05).certificate
    # At w = 0 every hinge loss is 1, and C = 1.
    assert told.gap == pytest.approx(
        (told.objective - told.lower_bound) / max(abs(told.objective), 0.01 * 40.0), rel=1e-12
    )
    assert told.gap > 0 and inspect.signature(mdlearn.fit).parameters["tol"].default == 1e-6
    with pytest.warns(mdlearn.ConvergenceWarning, match="max_iter = 1 reached"):
        stopped = mdlearn.fit("ldm", X, y, solver="interior", tol=1e-12, max_iter=1).certificate
    assert not stopped.converged and stopped.gap > 1e-12
    with pytest.warns(mdlearn.ConvergenceWarning, match="time_limit"):
        late = mdlearn.fit("ldm", X, y, kernel="rbf", time_limit=0).certificate
    assert late.kind == "duality gap" and late.lower_bound < late.objective and not late.converged


def test_what_a_callback_sees():
    page = (ROOT / "docs" / "guide" / "stopping.rst").read_text(encoding="utf-8")
    told = re.search(r"``callback=`` gets a \S+ per report: (.*?); ", page, re.DOTALL).group(1)
    seen = []
    rng = np.random.default_rng(0)
    mdlearn.fit("svm", rng.standard_normal((30, 2)), rng.integers(0, 2, 30), callback=seen.append)
    assert re.findall(r"``(\w+)``", told) == list(inspect.signature(type(seen[0])).parameters)


def test_the_benchmarks_named_exist():
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    told = re.search(r"^Three ratios are tracked.*?\n\Z", page, re.MULTILINE | re.DOTALL).group()
    named, path = re.findall(r"`(\w+)\.(track_\w+)`", told), re.findall(r"`(asv_bench/\S+\.py)`", told)[0]
    assert len(named) == 3
    tree = ast.parse((ROOT / path).read_text(encoding="utf-8"))
    classes = {node.name: node for node in tree.body if isinstance(node, ast.ClassDef)}
    for title, method in named:
        assert method in {node.name for node in classes[title].body if isinstance(node, ast.FunctionDef)}
    assert not re.search(r"\d\s*(x|times|seconds|ms|s)\b", README), "a figure of speed without its command"


def test_the_readme_is_two_screens():
    assert len(README) <= 12_000


def test_the_table_of_peers_explains_itself():
    """A figure has its command beside it, and every workload its rows."""
    page = (ROOT / "docs" / "benchmarks.md").read_text(encoding="utf-8")
    _, table, _ = re.split("<!-- (?:end of )?peers -->", page)
    assert "`python asv_bench/peers.py --write docs/benchmarks.md`" in table
    described = {name for name, *_ in rows(page, "## The workloads")[1:]}
    assert {line.split(" | ")[0].strip("| ") for line in table.splitlines() if line.startswith("| ")} == described | {
        "workload"
    }


@pytest.mark.parametrize(
    "name",
    ["README.md", "docs/architecture.md", "docs/benchmarks.md", "docs/limits.md", "docs/plugins.md", "CHANGELOG.md"],
)
def test_what_is_named_exists(name):
    text = (ROOT / name).read_text(encoding="utf-8")
    for link in re.findall(r"\]\(([^)#:]+)\)", text):
        assert (ROOT / name).parent.joinpath(link).exists(), f"{name} links to {link}"
    quoted = re.findall(r"`([^`\n]+)`", text)
    for path in (q for q in quoted if re.fullmatch(r"[\w./]+/[\w.]*", q) or q.endswith(".py")):
        assert (ROOT / path).exists(), f"{name} names {path}"
    for dotted in (q for q in quoted if re.fullmatch(r"mdlearn(\.\w+)+", q)):
        found = mdlearn
        for part in dotted.split(".")[1:]:
            found = (
                getattr(found, part) if hasattr(found, part) else importlib.import_module(f"{found.__name__}.{part}")
            )


def test_classes_named_in_the_architecture_exist():
    known, bases = {}, {}
    for tree in syntax_trees().values():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                members = {getattr(child, "name", None) for child in node.body}
                members |= {child.target.id for child in node.body if isinstance(child, ast.AnnAssign)}
                known[node.name] = members
                bases[node.name] = {base.id for base in node.bases if isinstance(base, ast.Name)}
    for name in known:
        known[name] = known[name].union(*(known[base] for base in bases[name] & known.keys()))
    for name, member in re.findall(r"`([A-Z]\w+[a-z]\w*)(?:\.(\w+))?`", ARCHITECTURE):
        assert name in known, f"docs/architecture.md names the class {name}"
        assert not member or member in known[name], f"docs/architecture.md names {name}.{member}"


def test_the_changelog_begins_with_this_version():
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    assert re.findall(r"^## (\S+)", text, re.MULTILINE)[0] == mdlearn.__version__ == PROJECT["version"]
    listed = re.search(r"the objectives (.*?):", text).group(1)
    assert re.findall(r"`(\w+)`", listed) == sorted(BUILT_IN)
