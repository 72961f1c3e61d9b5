"""Saving that is killed, runs out of room, meets another save or odd places: an old file stays whole."""

import os
import signal
import stat
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from numpy.testing import assert_array_equal
from persistence_cases import fitted

import mdlearn

posix = pytest.mark.skipif(os.name != "posix", reason="signals, limits, links and pipes of POSIX")

SAVER = """
import sys
import mdlearn
models = [mdlearn.load(path) for path in sys.argv[1:3]]
print("ready", flush=True)
while True:
    for model in models:
        model.save(sys.argv[3])
"""
FILLER = """
import resource, sys
import mdlearn
model = mdlearn.load(sys.argv[1])
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[3]), -1))
try:
    model.save(sys.argv[2])
except OSError as error:
    print(type(error).__name__, error.errno)
"""


@pytest.fixture
def two(tmp_path):
    """Two models and their files; some seconds of saving are some thousand renamings."""
    models = fitted(kernel="rbf")[0], fitted(kernel="rbf", C=50.0)[0]
    for i, model in enumerate(models):
        model.save(tmp_path / f"{i}.npz")
    return models, [tmp_path / "0.npz", tmp_path / "1.npz"]


def is_one_of(path, models):
    found = mdlearn.load(path).duals
    return any(np.array_equal(found, model.duals) for model in models)


@pytest.mark.slow
@posix
def test_a_process_that_is_killed_leaves_a_whole_file(two, tmp_path):
    models, paths = two
    path = tmp_path / "folder" / "m.npz"
    path.parent.mkdir()
    models[0].save(path)
    rng = np.random.default_rng(0)
    for _ in range(4):
        code = [sys.executable, "-c", SAVER, *map(str, paths), str(path)]
        with subprocess.Popen(code, stdout=subprocess.PIPE, text=True) as process:
            assert process.stdout.readline() == "ready\n"
            for _ in range(5):
                time.sleep(rng.uniform(0.0, 0.02))
                assert is_one_of(path, models)  # at any moment, also while it is being replaced
            process.send_signal(signal.SIGKILL)
        assert is_one_of(path, models)
        drafts = [p for p in path.parent.iterdir() if p != path]
        assert len(drafts) <= 1 and all(p.name.startswith(".mdlearn-") for p in drafts)
        for draft in drafts:
            draft.unlink()


@pytest.mark.slow
@posix
@pytest.mark.parametrize("limit", [0, 100, 4096, 7000])
def test_no_room_is_an_error_of_the_system_and_keeps_the_old_file(limit, two, tmp_path):
    (_, other), (first, second) = two
    assert second.stat().st_size > 7000
    old = first.read_bytes()
    code = [sys.executable, "-c", FILLER, str(second), str(first), str(limit)]
    done = subprocess.run(code, capture_output=True, text=True, timeout=60, check=True)
    assert done.stdout.split()[0] == "OSError"
    assert first.read_bytes() == old and len(list(tmp_path.iterdir())) == 2
    other.save(first)
    assert is_one_of(first, [other])


@posix
def test_a_folder_that_cannot_be_written_to(two, tmp_path, monkeypatch):
    models, _ = two
    folder = tmp_path / "closed"
    folder.mkdir()
    models[0].save(folder / "m.npz")
    folder.chmod(0o500)
    try:
        if os.access(folder, os.W_OK):  # root may write everywhere
            monkeypatch.setattr(os, "access", lambda *_: False)
        with pytest.raises(PermissionError, match="cannot be written to"):
            models[1].save(folder / "m.npz")
        assert is_one_of(folder / "m.npz", models[:1])
    finally:
        folder.chmod(0o700)


def test_saves_at_the_same_time(two, tmp_path):
    models, _ = two
    path = tmp_path / "m.npz"
    models[0].save(path)

    def work(i):
        if i % 3:
            models[i % 2].save(path)
        return is_one_of(path, models)

    with ThreadPoolExecutor(8) as pool:
        assert all(pool.map(work, range(120)))
    assert len(list(tmp_path.iterdir())) == 3


@posix
def test_links(two, tmp_path):
    models, (first, _) = two
    link, chain, gone, circle = (tmp_path / name for name in ("link", "chain", "gone", "circle"))
    link.symlink_to(first)
    chain.symlink_to("link")
    gone.symlink_to("later.npz")
    circle.symlink_to("circle")
    models[1].save(chain)
    assert chain.is_symlink() and link.is_symlink() and is_one_of(first, models[1:]) and is_one_of(chain, models[1:])
    models[0].save(gone)
    assert gone.is_symlink() and is_one_of(tmp_path / "later.npz", models[:1])
    with pytest.raises(OSError):
        models[0].save(circle)
    with pytest.raises(OSError):
        mdlearn.load(circle)
    assert circle.is_symlink()


@posix
def test_a_draft_is_as_private_as_the_file_that_it_replaces(two, tmp_path, monkeypatch):
    models, (first, _) = two
    first.chmod(0o600)
    seen = []
    chmod = os.chmod
    monkeypatch.setattr(os, "chmod", lambda path, mode: (seen.append(os.stat(path).st_mode), chmod(path, mode)))
    models[1].save(first)
    assert [stat.S_IMODE(mode) for mode in seen] == [0o600] and stat.S_IMODE(first.stat().st_mode) == 0o600


def test_kinds_of_paths(two, tmp_path, monkeypatch):
    models, _ = two
    X = fitted()[1]
    expected = models[0].decision_function(X)
    monkeypatch.chdir(tmp_path)
    for path in ("plain", b"bytes", os.fsencode(tmp_path / "b\u00fc"), tmp_path / "with space", "./sub/../dots"):
        (tmp_path / "sub").mkdir(exist_ok=True)
        models[0].save(path)
        assert_array_equal(mdlearn.load(path).decision_function(X), expected, strict=True)
    for path in (3, None, 1.5):
        with pytest.raises(TypeError):
            models[0].save(path)
        with pytest.raises(TypeError):
            mdlearn.load(path)
    (tmp_path / "broken").write_bytes(b"PK")
    with pytest.raises(ValueError, match=r"^broken cannot be loaded: it is not a model file of mdlearn"):
        mdlearn.load(b"broken")
    with pytest.raises(ValueError, match="null"):
        mdlearn.load("a\0b")


@posix
@pytest.mark.parametrize("kind", ["pipe", "folder", "/dev/zero", "/dev/null"])
def test_what_is_no_regular_file_is_refused_at_once(kind, tmp_path):
    path = tmp_path / kind.strip("/").replace("/", "-")
    if kind == "pipe":
        os.mkfifo(path)  # nobody writes to it: a plain open would wait for ever
    elif kind == "folder":
        path.mkdir()
    else:
        path.symlink_to(kind)
    with pytest.raises(IsADirectoryError if kind == "folder" else OSError):
        mdlearn.load(path)


def test_a_model_with_numbers_that_predict_nothing_is_not_saved(tmp_path):
    model, _, _ = fitted()
    model._coef[0, 0] = np.nan
    with pytest.raises(ValueError, match="NaN or infinity in its coef"):
        model.save(tmp_path / "m.npz")
    assert list(tmp_path.iterdir()) == []
