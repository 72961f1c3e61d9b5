"""Data sets of the papers: the catalogue, every format of files, and what is refused."""

from __future__ import annotations

import bz2
import gzip
import re

import numpy as np
import pytest
import scipy.io
import scipy.sparse as sp
from mdlearn_papers.catalogue import SOURCES, Source
from mdlearn_papers.index import EXPERIMENTS
from mdlearn_papers.readers import read
from mdlearn_papers.sources import Sets
from mdlearn_papers.store import Store
from mdlearn_papers.studies import Settings
from paper_cases import DOCUMENTS, FOLDER, made, names

NAME = "ida_thyroid"


def small(name=NAME):
    """X and y of a set, with numbers that texts hold exactly."""
    X, y = made(name)
    return np.round(X * 64) / 64, y


def as_text(X, y, end):
    if end in (".csv", ".tsv"):
        sep = "," if end == ".csv" else "\t"
        return "".join(sep.join([*map(repr, row), f"{label:g}"]) + "\n" for row, label in zip(X.tolist(), y))
    return "".join(
        f"{label:g} " + " ".join(f"{j + 1}:{value!r}" for j, value in enumerate(row) if value) + "\n"
        for row, label in zip(X.tolist(), y)
    )


def dense(X):
    return X.toarray() if sp.issparse(X) else np.asarray(X)


def assert_read(folder, X, y, train=0, name=NAME):
    found = Sets(str(folder)).get(name)
    assert np.array_equal(dense(found.X), X) and np.array_equal(found.y, y) and found.train == train
    return found


@pytest.mark.parametrize("name", [name for name in names() if name in SOURCES])
def test_sets_at_hand_are_those_of_the_catalogue(name):
    found = Sets(str(FOLDER)).get(name)
    assert found.X.shape[0] == found.y.shape[0] == SOURCES[name].rows
    assert sum(SOURCES[name].counts) == SOURCES[name].rows
    assert tuple(sorted(np.unique(found.y, return_counts=True)[1])) == SOURCES[name].counts
    for train, test in found.splits:
        assert not set(train.tolist()) & set(test.tolist())


@pytest.mark.skipif(not names(), reason="needs the folder of real data (MDLEARN_SHARED)")
def test_most_of_the_catalogue_is_at_hand():
    assert set(SOURCES) - set(names()) <= {"ida_waveform"}


def test_the_catalogue_adds_up():
    for name, source in SOURCES.items():
        assert sum(source.counts) == source.rows and list(source.counts) == sorted(source.counts), name
        assert 0 <= source.train < source.rows and (source.codes == 0 or source.codes <= source.columns), name
        assert source.origin
    assert list(SOURCES) == sorted(SOURCES)


def test_the_page_of_the_documentation():
    text = (DOCUMENTS / "reproduction" / "data.md").read_text(encoding="utf-8")
    told = {}
    for line in text.split("## The sets")[1].splitlines():
        if line.startswith("| `"):
            name, rows, columns, codes, train, counts, origin = [cell.strip() for cell in line.strip("|").split("|")]
            times = re.fullmatch(r"(\d+) x (\d+)", counts)
            each = (int(times[2]),) * int(times[1]) if times else tuple(map(int, counts.split(", ")))
            shape = Source(int(rows), int(columns), each, origin, int(codes or 0), int(train or 0))
            told[name.strip("`")] = shape
    assert told == SOURCES and list(told) == list(SOURCES)
    files = set(re.findall(r"`NAME(\.\w+)`", text))
    assert files == {".npz", ".mat", ".csv", ".tsv", ".svm", ".svmlight", ".libsvm"}


def test_the_page_of_the_reports():
    """Every table and figure is on it; reports that it links are there, with the records that they were made from."""
    page = DOCUMENTS / "reproduction.md"
    lines = re.findall(r"^\| `([\w-]+)` \| (.*) \| (.*) \|$", page.read_text(encoding="utf-8"), re.MULTILINE)
    assert [(name, title) for name, title, _ in lines] == [(name, one.title) for name, one in EXPERIMENTS.items()]
    for name, _, link in lines:
        folder = page.with_suffix("") / EXPERIMENTS[name].study.name
        assert link == f"[report](reproduction/{folder.name}/{name}.md)"
        Store(folder, EXPERIMENTS[name].study, Settings())  # ValueError for records of something else
        report = (folder / f"{name}.md").read_text(encoding="utf-8")
        assert all((folder / picture).is_file() for picture in re.findall(r"\]\((\S+\.png)\)", report))


def test_archives(tmp_path):
    X, y = small()
    np.savez(tmp_path / f"{NAME}.npz", X=X, y=y)
    assert_read(tmp_path, X, y)
    A = sp.csr_matrix(X)
    np.savez(tmp_path / f"{NAME}.npz", data=A.data, indices=A.indices, indptr=A.indptr, shape=A.shape, y=y)
    assert sp.issparse(assert_read(tmp_path, X, y).X)
    train, test = np.arange(140), np.arange(140, 215)
    np.savez(tmp_path / f"{NAME}.npz", X=X, y=y, train_idx=np.array([train, train + 75]), test_idx=[test, test - 140])
    splits = assert_read(tmp_path, X, y).splits
    assert len(splits) == 2 and np.array_equal(splits[1][0], train + 75) and np.array_equal(splits[0][1], test)


def test_archives_in_two_parts(tmp_path):
    X, y = small("svmguide1")
    cut = {"y_train": y[:3089], "y_test": y[3089:]}
    np.savez(tmp_path / "svmguide1.npz", X_train=X[:3089], X_test=X[3089:], **cut)
    assert_read(tmp_path, X, y, 3089, "svmguide1")
    X[3089:, 3] = 0.0  # a column that the test part never uses
    parts = {}
    for part, A in (("train", sp.csr_matrix(X[:3089])), ("test", sp.csr_matrix(X[3089:, :3]))):
        parts |= {f"{part}_{key}": getattr(A, key) for key in ("data", "indices", "indptr", "shape")}
    np.savez(tmp_path / "svmguide1.npz", **parts, **cut)
    assert_read(tmp_path, X, y, 3089, "svmguide1")


def test_codes_beside_one_hot_columns(tmp_path):
    X, y = made("tic_tac_toe")
    codes = np.random.default_rng(0).integers(0, 3, (958, 9))
    np.savez(tmp_path / "tic_tac_toe.npz", X=X, y=y, X_codes=codes)
    assert np.array_equal(assert_read(tmp_path, X, y, name="tic_tac_toe").codes, codes)
    np.savez(tmp_path / "tic_tac_toe.npz", X=codes, y=y)
    assert_read(tmp_path, codes, y, name="tic_tac_toe")
    np.savez(tmp_path / "tic_tac_toe.npz", X=X, y=y, X_codes=codes[:, :5])
    with pytest.raises(ValueError, match=r"integer codes of shape \(958, 5\), .* 958 rows and 9 columns"):
        Sets(str(tmp_path)).get("tic_tac_toe")


@pytest.mark.parametrize("end", [".csv", ".tsv", ".svm", ".svmlight", ".libsvm"])
@pytest.mark.parametrize("packed", ["", ".gz", ".bz2"])
def test_text(end, packed, tmp_path):
    pytest.importorskip("sklearn")
    X, y = small()
    text = as_text(X, y, end).encode()
    pack = {"": bytes, ".gz": gzip.compress, ".bz2": bz2.compress}[packed]
    (tmp_path / f"{NAME}{end}{packed}").write_bytes(pack(text))
    assert_read(tmp_path, X, y)


@pytest.mark.parametrize("beside", [".t.svm", ".t.libsvm.gz"])
def test_text_in_two_parts(beside, tmp_path):
    pytest.importorskip("sklearn")
    X, y = small("svmguide1")
    (tmp_path / "svmguide1.svm").write_text(as_text(X[:3089], y[:3089], ".svm"))
    text = as_text(X[3089:], y[3089:], ".svm").encode()
    (tmp_path / f"svmguide1{beside}").write_bytes(gzip.compress(text) if beside.endswith("gz") else text)
    assert_read(tmp_path, X, y, 3089, "svmguide1")


@pytest.mark.parametrize("unused", ["train", "test"])
def test_both_parts_count_columns_alike(unused, tmp_path):
    pytest.importorskip("sklearn")
    X, y = small("svmguide1")
    rows = slice(0, 3089) if unused == "train" else slice(3089, None)
    X[rows, 0] = 0.0  # what is left looks as if it counted from 1
    from_zero = re.compile(r"(\d+):")
    for end, part in ((".svm", slice(0, 3089)), (".t.svm", slice(3089, None))):
        text = as_text(X[part], y[part], ".svm")
        (tmp_path / f"svmguide1{end}").write_text(from_zero.sub(lambda found: f"{int(found[1]) - 1}:", text))
    assert_read(tmp_path, X, y, 3089, "svmguide1")


@pytest.mark.parametrize("keys", [("X", "y"), ("X", "Y"), ("A", "d")])
@pytest.mark.parametrize("form", [np.asarray, sp.csc_matrix])
def test_matlab(keys, form, tmp_path):
    X, y = small()
    scipy.io.savemat(tmp_path / f"{NAME}.mat", {keys[0]: form(X), keys[1]: y[:, None]})
    assert_read(tmp_path, X, y)


def realisations(folder, called, X, y, orders):
    folder.mkdir(exist_ok=True)
    for i, order in enumerate(orders, 1):
        for part, rows in (("train", order[:140]), ("test", order[140:])):
            np.savetxt(folder / f"{called}_{part}_data_{i}.asc", X[rows], fmt="%.17g")
            np.savetxt(folder / f"{called}_{part}_labels_{i}.asc", y[rows], fmt="%g")


@pytest.mark.parametrize(
    ("called", "inside"), [("ida_thyroid", ""), ("ida_thyroid", "ida_thyroid"), ("thyroid", ""), ("thyroid", "thyroid")]
)
def test_realisations_with_equal_rows(called, inside, tmp_path):
    X, y = small()
    first, *others = np.flatnonzero(y > 0)[:3]
    X[others] = X[first]  # three equal rows with one label ...
    other = np.flatnonzero(y < 0)[0]
    X[other] = X[first]  # ... and one with the other
    rng = np.random.default_rng(0)
    orders = [rng.permutation(215) for _ in range(11)]
    X[orders[1][0], 0] = -0.0
    realisations(tmp_path / inside, called, X, y, orders)
    found = Sets(str(tmp_path)).get(NAME)
    assert found.X.shape == (215, 5) and len(found.splits) == 11
    for (train, test), order in zip(found.splits, orders):
        assert sorted([*train.tolist(), *test.tolist()]) == list(range(215))
        assert np.array_equal(found.X[train], X[order[:140]]) and np.array_equal(found.y[train], y[order[:140]])
        assert np.array_equal(found.X[test], X[order[140:]]) and np.array_equal(found.y[test], y[order[140:]])


def test_a_wrong_shape_is_refused_with_both(tmp_path):
    X, y = small()
    np.savez(tmp_path / f"{NAME}.npz", X=X[:-1], y=y[:-1])
    with pytest.raises(ValueError, match=r"has 214 rows, 5 columns and classes of .* has 215 rows, 5 columns and "):
        Sets(str(tmp_path)).has(NAME)
    np.savez(tmp_path / f"{NAME}.npz", X=X[:, :4], y=y)
    with pytest.raises(ValueError, match=r"has 215 rows, 4 columns .* has 215 rows, 5 columns"):
        Sets(str(tmp_path)).get(NAME)
    y[np.flatnonzero(y > 0)[0]] = -1.0
    np.savez(tmp_path / f"{NAME}.npz", X=X, y=y)
    with pytest.raises(ValueError, match=r"classes of 66, 149 rows, .* classes of 65, 150 rows \(Raetsch"):
        Sets(str(tmp_path)).get(NAME)


def test_another_training_part_is_refused(tmp_path):
    X, y = small("svmguide1")
    np.savez(tmp_path / "svmguide1.npz", X_train=X[:3000], X_test=X[3000:], y_train=y[:3000], y_test=y[3000:])
    with pytest.raises(ValueError, match="has 3000 training rows, but the papers' has 3089"):
        Sets(str(tmp_path)).get("svmguide1")


@pytest.mark.parametrize("index", [[[-1, 2]], [[1, 215]], [[]], [[0.5, 1.0]]])
def test_splits_of_other_rows_are_refused(index, tmp_path):
    X, y = small()
    np.savez(tmp_path / f"{NAME}.npz", X=X, y=y, train_idx=index, test_idx=[[1, 2]])
    with pytest.raises(ValueError, match="splits that name no rows, or others than 0 to 214"):
        Sets(str(tmp_path)).get(NAME)


def damaged(folder):
    """Names of files and what is in them that cannot be read."""
    X, y = small()
    np.savez_compressed(folder / "whole.npz", X=X, y=y)
    archive = (folder / "whole.npz").read_bytes()
    scipy.io.savemat(folder / "whole.mat", {"X": X, "y": y}, do_compression=True)
    matrix = (folder / "whole.mat").read_bytes()
    np.savez(folder / "keys.npz", X=X, label=y)
    yield "npz", archive[: len(archive) // 2]
    yield "npz", archive[:300] + bytes(len(archive) - 600) + archive[-300:]
    yield "npz", b"no archive"
    yield "npz", b"\x93NUMPY\x01\x00"
    yield "npz", (folder / "keys.npz").read_bytes()
    yield "mat", matrix[: len(matrix) // 2]
    yield "mat", matrix[:200] + bytes(100) + matrix[300:]
    yield "mat", b"MATLAB 7.3 MAT-file".ljust(124) + b"\x00\x02IM" + bytes(200)
    yield "mat", b""
    yield "csv", b"1,2,3\n1,x\n"
    yield "csv", b""
    yield "csv.gz", gzip.compress(as_text(X, y, ".csv").encode())[:200]
    yield "train_data_1.asc", b"1 2 3 4 5\n"


def test_damaged_files_are_refused_in_one_sentence(tmp_path):
    for end, content in damaged(tmp_path):
        path = tmp_path / (f"{NAME}_{end}" if end.endswith("asc") else f"{NAME}.{end}")
        path.write_bytes(content)
        with pytest.raises(ValueError, match=f"the file of data set {NAME} cannot be read: .+") as raised:
            Sets(str(tmp_path)).has(NAME)
        assert "\n" not in str(raised.value), end
        path.unlink()


def test_what_is_missing(tmp_path):
    assert read(tmp_path, NAME) is None and not Sets(str(tmp_path)).has(NAME)
    for folder in (None, str(tmp_path / "nowhere"), str(tmp_path)):
        with pytest.raises(ValueError, match="data set bupa is missing"):
            Sets(folder).get("bupa")


def test_sets_that_come_with_scikit_learn(tmp_path):
    pytest.importorskip("sklearn")
    for name in ("iris", "wdbc"):
        assert Sets(None).has(name) and Sets(str(tmp_path)).get(name).X.shape[0] == SOURCES[name].rows
    found = Sets(None).get("wdbc")
    assert (found.y == 1).sum() == 212, "malignant is the positive class"
