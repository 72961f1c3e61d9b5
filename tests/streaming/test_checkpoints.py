"""Checkpoints: a run that is killed goes on from its last pass, to the same model."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import checkpoint_run
import numpy as np
import pytest

import mdlearn
from mdlearn.output_files import remove_abandoned_drafts, replace_file


def rows(m=800, d=5, k=2):
    rng = np.random.default_rng(3)
    X = rng.standard_normal((m, d))
    f = X @ rng.standard_normal(d) + rng.standard_normal(m)
    return X, np.digitize(f, np.quantile(f, np.arange(1, k) / k))


def source(X, y, n=4, **given):
    return mdlearn.RowBlocks([(X[part], y[part]) for part in np.array_split(np.arange(y.shape[0]), n)], **given)


def same(one, other):
    assert np.array_equal(one.coef_, other.coef_)
    assert np.array_equal(one.intercept_, other.intercept_)
    assert one.certificate == other.certificate
    assert one.n_iter == other.n_iter
    told = [
        [(s.iteration, s.objective, s.lower_bound, s.gap, s.problem) for s in model.history] for model in (one, other)
    ]
    assert told[0] == told[1]


@pytest.mark.slow
@pytest.mark.parametrize("objective, k", [("ldm", 2), ("svm", 3), ("lsvm", 3), ("mdlm", 2)])
def test_a_run_goes_on_from_any_pass(objective, k, tmp_path):
    X, y = rows(k=k)
    given = {"tol": 1e-9, "multiclass": "ovr"}
    whole = mdlearn.fit(objective, source(X, y, held=100), None, **given)
    for passes in range(1, whole.n_iter + 1):
        path = tmp_path / f"{passes}.npz"
        seen = []

        class Killed(Exception):
            pass

        def stop(state, passes=passes, seen=seen):
            seen.append(state.iteration)
            if len(set(seen)) > passes:
                raise Killed  # in the middle: what this pass found is lost

        blocks = source(X, y, held=100, checkpoint=path)
        if passes < whole.n_iter:
            with pytest.raises(Killed):
                mdlearn.fit(objective, blocks, None, callback=stop, **given)
        else:
            mdlearn.fit(objective, blocks, None, **given)
        same(mdlearn.fit(objective, blocks, None, **given), whole)


def test_a_stopped_run_goes_on(tmp_path):
    X, y = rows()
    blocks = source(X, y, held=100, checkpoint=tmp_path / "kept.npz")
    with pytest.warns(mdlearn.ConvergenceWarning, match="max_iter = 2"):
        assert mdlearn.fit("svm", blocks, None, max_iter=2).n_iter == 2
    found = mdlearn.fit("svm", blocks, None)
    same(found, mdlearn.fit("svm", source(X, y, held=100), None))
    assert [state.iteration for state in found.history] == list(range(1, found.n_iter + 1))


def test_a_file_of_another_fit_is_refused(tmp_path):
    X, y = rows()
    path = tmp_path / "kept.npz"
    mdlearn.fit("svm", source(X, y, checkpoint=path), None, C=2.0)
    for objective, given, told in (
        ("svm", {"C": 3.0}, "its C is 2.0, and not 3.0"),
        ("svm", {}, "its C is 2.0, and not None"),
        ("svm", {"C": 2.0, "bias": "free"}, "its bias is 'regularized', and not 'free'"),
        ("svm", {"C": 2.0, "class_weight": "balanced"}, "its class_weight is"),
        ("svm", {"C": 2.0, "tol": 1e-3}, "its tol is"),
        ("ldm", {"C": 2.0}, "its objective is 'svm'"),
    ):
        with pytest.raises(ValueError, match=f"belongs to another fit: {told}"):
            mdlearn.fit(objective, source(X, y, checkpoint=path), None, **given)
    with pytest.raises(ValueError, match="800 rows of weight 800 in the first pass, and 799"):
        mdlearn.fit("svm", source(X[1:], y[1:], checkpoint=path), None, C=2.0)
    path.write_bytes(path.read_bytes()[:100])
    with pytest.raises(ValueError, match="is no checkpoint"):
        mdlearn.fit("svm", source(X, y, checkpoint=path), None, C=2.0)


def test_a_file_of_another_version_is_refused(tmp_path):
    X, y = rows()
    path = tmp_path / "kept.npz"
    mdlearn.fit("svm", source(X, y, checkpoint=path), None)
    with np.load(path) as file:
        kept = dict(file)
    head = json.loads(str(kept["head"]))
    del head["layout"]
    np.savez(path, **{**kept, "head": np.array(json.dumps(head))})
    with pytest.raises(ValueError, match="belongs to another fit: its layout is None, and not 3; give another file"):
        mdlearn.fit("svm", source(X, y, checkpoint=path), None)


def started(objective, path, pause):
    """A fit in a process of its own, by the same library as here."""
    root = str(Path(mdlearn.__file__).parents[1])
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")])}
    command = [sys.executable, checkpoint_run.__file__, objective, str(path), str(pause)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, env=environment)


@pytest.mark.slow
def test_killed_at_ten_random_moments(tmp_path):
    rng, killed = random.Random(0), 0
    for objective in ("ldm", "lsvm"):
        expected = checkpoint_run.fitted(objective, tmp_path / f"{objective}.npz")
        for i in range(5):
            path = tmp_path / f"{objective}-{i}.npz"
            with started(objective, path, 0.004) as child:
                assert child.stdout.readline() == b"ready\n"
                time.sleep(rng.uniform(0.02, 0.4))
                child.send_signal(signal.SIGKILL)
                killed += child.wait() == -signal.SIGKILL
            found = checkpoint_run.fitted(objective, path)
            assert np.array_equal(found.coef_, expected.coef_)
            assert found.certificate == expected.certificate
    assert killed >= 6


def test_what_a_killed_write_left_goes_with_a_later_run(tmp_path):
    """Not so what may still be written, or belongs to another file."""
    drafts = []

    def half(file):
        drafts.append(Path(file.name))

    hours_ago = time.time() - 7200.0
    for name in ("fit.npz", "fit.npz", "other.npz"):
        replace_file(str(tmp_path / name), half)
    for draft, written in zip(drafts, (hours_ago, time.time(), hours_ago)):
        draft.write_bytes(b"half of it")
        os.utime(draft, (written, written))
    (tmp_path / "fit.npz").unlink()
    mdlearn.fit("ldm", source(*rows(60), checkpoint=tmp_path / "fit.npz"), None, tol=1e-3)
    assert [draft.exists() for draft in drafts] == [False, True, True]


def test_only_drafts_are_taken_for_what_a_killed_write_left(tmp_path):
    """Links, and other files whose names begin and end like those of drafts, stay."""
    drafts = []

    def half(file):
        drafts.append(Path(file.name))

    replace_file(str(tmp_path / "fit.npz"), half)
    (draft,) = drafts
    notes, link = draft.with_name(draft.name[:-20] + "notes.tmp"), draft.with_name(draft.name[:-5] + "0.tmp")
    notes.write_bytes(b"notes")
    link.symlink_to(tmp_path / "fit.npz")
    for path in (notes, link):
        os.utime(path, (0.0, 0.0), follow_symlinks=False)
    remove_abandoned_drafts(str(tmp_path / "fit.npz"))
    assert notes.exists() and link.is_symlink()
