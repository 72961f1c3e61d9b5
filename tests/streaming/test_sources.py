"""Row blocks of arrays and files: the fit in memory, whatever the file; sources that plugins bring; bad files."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
import scipy.sparse as sp
from plugin_cases import Site

import mdlearn
from mdlearn import sources

LETTERS = list("abcde")


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = np.round(rng.standard_normal((4000, 5)), 4)
    X[rng.random(X.shape) < 0.3] = 0.0
    y = (X @ np.arange(1, 6) + 2.0 * rng.standard_normal(4000) > 0).astype(int)
    return X, y, rng.integers(0, 3, 4000)


def same(blocks, X, y, weight=None):
    """The same optimum as in memory; the model of the blocks."""
    streamed = mdlearn.fit("lsvm", blocks, None, tol=1e-10)
    held = mdlearn.fit("lsvm", X, y, sample_weight=weight, tol=1e-10)
    assert abs(streamed.certificate.objective - held.certificate.objective) <= 1e-9 * held.certificate.objective
    assert streamed.certificate.converged
    return streamed


@pytest.mark.extras
@pytest.mark.parametrize("kind", ["array", "map", "csr", "pandas"])
def test_arrays(data, kind, tmp_path):
    X, y, w = data
    given = X
    if kind == "map":
        np.save(tmp_path / "X.npy", X)
        given = np.load(tmp_path / "X.npy", mmap_mode="r")
    if kind == "csr":
        given = sp.csr_matrix(X)
    if kind == "pandas":
        given = pytest.importorskip("pandas").DataFrame(X, columns=LETTERS)
    blocks = sources.of_arrays(given, y, w, rows=999)
    assert [block[0].shape[0] for block in blocks] == [999, 999, 999, 999, 4]
    model = same(blocks, X, y, w)
    if kind == "pandas":
        assert list(model.feature_names_in_) == LETTERS


def written(path, X, y, w, names=True):
    lines = ["a,b,label,c,w,d,e"] if names else []
    lines += [f"{r[0]},{r[1]},{label},{r[2]},{c},{r[3]},{r[4]}" for r, label, c in zip(X, y, w, strict=True)]
    text = "\n".join(lines) + "\n"
    opened = gzip.open if path.suffix == ".gz" else open
    with opened(path, "wt") as file:
        file.write(text)
    return str(path)


@pytest.mark.parametrize("name", ["rows.csv", "rows.csv.gz"])
def test_csv(data, name, tmp_path, monkeypatch):
    X, y, w = data
    monkeypatch.setattr("mdlearn.files.packed.BYTES_PER_READ", 1 << 14)
    path = written(tmp_path / name, X, np.array(["no", "yes"])[y], w)
    blocks = sources.of_csv(path, "label", "w", rows=1000)
    assert 2 < len(list(blocks)) < 5
    model = same(blocks, X, y, w)
    assert model.classes_.tolist() == ["no", "yes"] and list(model.feature_names_in_) == LETTERS
    small = mdlearn.fit("lsvm", sources.of_csv(path, "label", "w", dtype=np.float32), None, tol=1e-5)
    assert small.coef_.dtype == np.float32


def test_csv_without_names(data, tmp_path):
    X, y, w = data
    path = written(tmp_path / "rows.csv", X, y, w, names=False)
    same(sources.of_csv(path, 3, 5), X, y, w)
    same(sources.of_csv(path, -5, -3), X, y, w)


@pytest.mark.slow
@pytest.mark.parametrize("base", [0, 1])
@pytest.mark.parametrize("given", [{}, {"n_features": 5}, {"n_features": 9}])
def test_svmlight(data, base, given, tmp_path, monkeypatch):
    pytest.importorskip("sklearn")
    monkeypatch.setattr("mdlearn.files.packed.BYTES_PER_READ", 1 << 14)
    X, y, _ = data
    X = X.copy()
    X[:3000, 0] = X[1000:, 4] = 0.0  # neither the first nor the last column is in every block
    lines = [f"{label} " + " ".join(f"{j + base}:{v}" for j, v in enumerate(r) if v) for r, label in zip(X, y)]
    path = tmp_path / "rows.svm"
    path.write_text("\n".join(["# rows", *lines, "# the end", ""]))
    blocks = sources.of_svmlight(str(path), rows=700, **given)
    assert len(list(blocks)) > 3
    wide = np.hstack([X, np.zeros((4000, given.get("n_features", 5) - 5))])
    assert same(blocks, wide, y).n_features_in_ == wide.shape[1]
    same(sources.of_svmlight(str(path), wide.shape[1], zero_based=base == 0), wide, y)


@pytest.mark.extras
def test_parquet(data, tmp_path):
    arrow = pytest.importorskip("pyarrow")
    parquet = pytest.importorskip("pyarrow.parquet")
    X, y, w = data
    columns = {name: X[:, j] for j, name in enumerate(LETTERS)}
    path = tmp_path / "rows.parquet"
    parquet.write_table(arrow.table({**columns, "label": np.array(["no", "yes"])[y], "w": w}), path, row_group_size=900)
    model = same(sources.of_parquet(path, "label", "w", rows=1000), X, y, w)
    assert model.classes_.tolist() == ["no", "yes"] and list(model.feature_names_in_) == LETTERS
    same(sources.of_parquet(path, "label", columns=["e", "b"]), X[:, [4, 1]], y)
    with pytest.raises(ValueError, match=r"has no column 'target'; it has a, b, c, d, e, label, w$"):
        sources.of_parquet(path, "target")
    with pytest.raises(ValueError, match=r"has no column 'lable'; .*; did you mean 'label'[?]$"):
        sources.of_parquet(path, "lable")
    (tmp_path / "text").write_text("no table")
    with pytest.raises(ValueError, match="is no Parquet file"):
        sources.of_parquet(tmp_path / "text", "label")


def test_checkpoints_and_held_are_handed_on(data, tmp_path):
    X, y, _ = data
    blocks = sources.of_arrays(X, y, checkpoint=tmp_path / "fit.npz", held=77)
    assert blocks.held == 77
    mdlearn.fit("lsvm", blocks, None)
    assert (tmp_path / "fit.npz").exists()


def test_bad_files(data, tmp_path):
    X, y, w = data
    with pytest.raises(ValueError, match="X has 4000 rows but weight has shape"):
        sources.of_arrays(X, y, w[1:])
    with pytest.raises(ValueError, match="rows needs to be an integer >= 1"):
        sources.of_arrays(X, y, rows=0)
    path = written(tmp_path / "rows.csv", X, np.array(["no", "yes"])[y], w)
    with pytest.raises(ValueError, match=r"rows.csv, line 2, column 3 \(label\) holds '(no|yes)'"):
        mdlearn.fit("lsvm", sources.of_csv(path), None)
    with pytest.raises(ValueError, match="weight and target name the same column"):
        mdlearn.fit("lsvm", sources.of_csv(path, "w", "w"), None)
    with pytest.raises(ValueError, match="has no column 'target'"):
        mdlearn.fit("lsvm", sources.of_csv(path, "target"), None)
    with pytest.raises(FileNotFoundError):
        mdlearn.fit("lsvm", sources.of_csv(str(tmp_path / "none.csv")), None)
    pytest.importorskip("sklearn")
    (tmp_path / "bad.svm").write_text("1 1:2\n0 2:x\n")
    with pytest.raises(ValueError, match=r"bad.svm, line 2"):
        mdlearn.fit("lsvm", sources.of_svmlight(str(tmp_path / "bad.svm")), None)


# ---------------------------------------------------------------- sources of plugins

BRINGING = """
    import mdlearn
    import numpy as np

    class Pile:
        def __init__(self, X):
            self.X = X

    class PileBlocks(mdlearn.RowBlocks):
        name = "pile"

        @classmethod
        def given(cls, X, y, weight):
            return cls([(X.X[:50], y[:50]), (X.X[50:], y[50:])]) if isinstance(X, Pile) else None

    @mdlearn.hookimpl
    def mdlearn_sources():
        return [PileBlocks]
"""


@pytest.fixture
def site(tmp_path, monkeypatch):
    return Site(tmp_path, monkeypatch)


def test_a_plugin_brings_a_source(site, data):
    site.add("mdlearn-pile", BRINGING)
    import mdlearn_pile

    X, y, _ = data
    (record,) = mdlearn.list_plugins()
    assert record.sources == ("pile",) and record.state == "ok"
    model = mdlearn.fit("lsvm", mdlearn_pile.Pile(X[:200]), y[:200], tol=1e-9)
    assert "row blocks" in model.solver_reason
    held = mdlearn.fit("lsvm", X[:200], y[:200], tol=1e-9)
    assert abs(model.certificate.objective - held.certificate.objective) <= 2e-9 * held.certificate.objective
    assert "row blocks" not in held.solver_reason


def test_a_source_that_makes_nothing(site):
    text = BRINGING.replace("def given", "def taken")
    site.add("mdlearn-pile", text)
    with pytest.warns(mdlearn.PluginWarning, match=r"PileBlocks needs a class method given\(X, y, weight\) of its own"):
        (record,) = mdlearn.list_plugins()
    assert record.sources == () and record.state == "error"
