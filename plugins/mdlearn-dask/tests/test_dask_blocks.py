"""Fits over Dask's collections: the bits of the local fit, whatever the blocks are, and what is refused."""

import warnings
from itertools import pairwise

import dask
import dask.array as da
import mdlearn_dask
import numpy as np
import pytest
from distributed import Client, LocalCluster
from mdlearn_dask import DaskBlocks

import mdlearn
from mdlearn.extend import HingeTerm, Terms

CASES = {
    "ldm": {},
    "svm": {"C": 10.0},
    "odm": {},
    "lsvm": {},
    "uldm": {"multiclass": "ovr"},
    "lssvm": {},
    "lsldm": {},
    "l2lr": {},
    "mlr": {},
    "mdlm": {},
    "l3svm": {"n_clusters": 4, "projection": "rbf", "n_landmarks": 8},
}


@pytest.fixture(scope="module")
def client():
    with LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=None) as cluster, Client(cluster) as found:
        yield found


def rows(m=1500, d=5, k=2, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((m, d)) * np.exp(0.5 * rng.standard_normal(d)) + 0.5
    f = X @ rng.standard_normal(d) + rng.standard_normal(m)
    return X, np.digitize(f, np.quantile(f, np.arange(1, k) / k))


def cut(ends, *arrays):
    return [tuple(a[i:j] for a in arrays) for i, j in pairwise(ends)]


def delayed(blocks):
    return [dask.delayed(block, traverse=False, pure=True) for block in blocks]


def same(one, other):
    """The same bits."""
    assert np.array_equal(one.coef_, other.coef_)
    assert np.array_equal(one.intercept_, other.intercept_)
    assert one.certificate == other.certificate
    assert one.n_iter == other.n_iter


@pytest.mark.parametrize("name", CASES)
def test_the_bits_of_the_local_fit(client, name):
    X, y = rows()
    ends = [0, 400, 401, 900, 900, 1500]  # uneven, one row, no rows
    blocks = cut(ends, X, y)
    far = mdlearn.fit(name, DaskBlocks(delayed(blocks)), None, n_threads=1, tol=1e-10, **CASES[name])
    near = mdlearn.fit(name, blocks, None, n_threads=1, tol=1e-10, **CASES[name])
    same(far, near)
    assert far.certificate.converged
    held = mdlearn.fit(name, X, y, tol=1e-10, **CASES[name])
    assert abs(far.certificate.objective - held.certificate.objective) <= 1e-8 * abs(held.certificate.objective)


def test_objectives_of_plugins(client):
    class Band(mdlearn.Objective):
        name = "band"

        def terms(self, params, total):
            return Terms(loss=(HingeTerm(1.0, threshold=1.2, power=2), HingeTerm(0.5, -1, 1.8, 2)))

    X, y = rows()
    blocks = cut([0, 700, 1500], X, y)
    same(
        mdlearn.fit(Band, DaskBlocks(delayed(blocks)), None, n_threads=1), mdlearn.fit(Band, blocks, None, n_threads=1)
    )


def test_penalties_and_approximate_kernels(client):
    X, y = rows(k=3)
    blocks = cut([0, 700, 1500], X, y)
    for name, given in (
        ("mdlm", {"beta": 0.05}),
        ("svm", {"kernel": "rbf", "approximation": "nystroem", "n_components": 20}),
    ):
        far = mdlearn.fit(name, DaskBlocks(delayed(blocks)), None, n_threads=1, **given)
        same(far, mdlearn.fit(name, blocks, None, n_threads=1, **given))


def test_stochastic_epochs_bring_the_blocks_here(client):
    X, y = rows()
    blocks = cut([0, 700, 1500], X, y)
    far = mdlearn.fit("ldm", DaskBlocks(delayed(blocks)), None, solver="asgd")
    assert np.array_equal(far.coef_, mdlearn.fit("ldm", blocks, None, solver="asgd").coef_)


@pytest.mark.parametrize("rows_of_y", [1500, 500, 311])
@pytest.mark.parametrize("columns", [5, 2])
def test_arrays(client, columns, rows_of_y):
    X, y = rows(k=3)
    w = np.random.default_rng(1).integers(0, 3, 1500)
    given = {"multiclass": "ovr", "class_weight": "balanced", "n_threads": 1}
    far = mdlearn.fit(
        "lsvm",
        da.from_array(X, chunks=(500, columns)),
        da.from_array(y, chunks=rows_of_y),
        sample_weight=da.from_array(w, chunks=500),
        **given,
    )
    same(far, mdlearn.fit("lsvm", cut([0, 500, 1000, 1500], X, y, w), None, **given))
    assert "row blocks" in far.solver_reason
    beside = mdlearn.fit("lsvm", da.from_array(X, chunks=(500, columns)), y, sample_weight=w, **given)
    same(far, beside)


def test_data_frames(client):
    dd = pytest.importorskip("dask.dataframe")
    pandas = pytest.importorskip("pandas")
    X, y = rows()
    frame = pandas.DataFrame(X, columns=list("abcde")).assign(label=np.array(["no", "yes"])[y])
    parts = dd.from_pandas(frame, npartitions=3)
    far = mdlearn.fit("ldm", parts, "label", n_threads=1)
    near = mdlearn.fit("ldm", frame[list("abcde")], frame["label"])
    assert far.classes_.tolist() == ["no", "yes"]
    assert list(far.feature_names_in_) == list("abcde")
    assert abs(far.certificate.objective - near.certificate.objective) <= 2e-6 * near.certificate.objective
    apart = mdlearn.fit("ldm", parts.drop(columns="label"), parts["label"], n_threads=1)
    same(far, apart)
    with pytest.raises(ValueError, match="X has no column 'target'"):
        mdlearn.fit("ldm", parts, "target")


def test_sparse_blocks_and_types(client):
    sp = pytest.importorskip("scipy.sparse")
    X, y = rows()
    X = np.where(np.random.default_rng(2).random(X.shape) < 0.4, X, 0.0).astype(np.float32)
    blocks = [(sp.csr_matrix(A), b) for A, b in cut([0, 700, 1500], X, y)]
    far = mdlearn.fit("lsvm", delayed(blocks), None, n_threads=1, tol=1e-5)
    assert far.coef_.dtype == np.float32
    same(far, mdlearn.fit("lsvm", blocks, None, n_threads=1, tol=1e-5))


def test_checkpoints(client, tmp_path):
    X, y = rows()
    blocks = cut([0, 700, 1500], X, y)
    path = tmp_path / "fit.npz"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", mdlearn.ConvergenceWarning)
        mdlearn.fit("ldm", DaskBlocks(delayed(blocks), checkpoint=path), None, n_threads=1, max_iter=1)
    far = mdlearn.fit("ldm", mdlearn.RowBlocks(blocks, checkpoint=path), None, n_threads=1)
    same(far, mdlearn.fit("ldm", blocks, None, n_threads=1))


def test_blocks_can_be_gone_through_here(client):
    X, y = rows()
    found = list(DaskBlocks(delayed(cut([0, 700, 1500], X, y))))
    assert [block[0].shape for block in found] == [(700, 5), (800, 5)]


def test_the_plugin_is_listed():
    (record,) = [one for one in mdlearn.list_plugins() if one.distribution == "mdlearn-dask"]
    assert record.sources == ("dask",) and record.state == "ok"
    assert mdlearn_dask.mdlearn_sources() == [DaskBlocks]


X_, Y_ = rows(60)
DX, DY = da.from_array(X_, chunks=(20, 5)), da.from_array(Y_, chunks=20)
REFUSED = {
    "no collection": ((X_, Y_), TypeError, "a Dask array, a Dask data frame or a list of delayed blocks; got ndarray"),
    "no labels": ((DX,), ValueError, "y is None; give labels"),
    "lengths": ((DX, Y_[1:]), ValueError, "X has 60 rows but y has shape"),
    "blocks": ((DX, da.from_array(Y_[:40], chunks=20)), ValueError, "X has 3 blocks and y has 2"),
    "columns": ((DX[:, 0], DY), ValueError, r"X has 1 dimension\(s\)"),
    "delayed and labels": ((delayed([(X_, Y_)]), Y_), ValueError, "give neither y nor weights"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_refused_in_a_sentence(client, case):
    given, kind, told = REFUSED[case]
    with pytest.raises(kind, match=told):
        DaskBlocks(*given)


def test_what_is_wrong_with_a_block_says_which(client):
    bad = X_.copy()
    bad[3, 2] = np.nan
    with pytest.raises(ValueError, match="block 1: X contains NaN"):
        mdlearn.fit("lsvm", delayed([(X_, Y_), (bad, Y_)]), None)
    with pytest.raises(TypeError, match="block 0: a block needs to be a tuple"):
        mdlearn.fit("lsvm", delayed([X_]), None)
    with pytest.raises(ValueError, match="block 0: X has 60 rows but y has 59 labels"):
        mdlearn.fit("lsvm", delayed([(X_, Y_[1:])]), None)
