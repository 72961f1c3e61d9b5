"""What bounds the memory of this process, by limits of its own and of its control groups; what is said without any."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import mdlearn
from mdlearn.cli import main
from mdlearn.model.file import loading
from mdlearn.numerics import memory


@pytest.fixture
def root(tmp_path, monkeypatch):
    """A root folder, and a function that writes files below it."""

    def write(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)

    monkeypatch.setattr(memory, "ROOT", tmp_path)
    return write


def group(write, path, limit, used, cached, version):
    limit_file, used_file, entry = memory.CGROUP_FILES["" if version == 2 else "memory"]
    for name, value in ((limit_file, limit), (used_file, used), ("memory.stat", f"anon 5\n{entry} {cached}\n")):
        write(f"sys/fs/cgroup/{path}/{name}", f"{value}\n")


def test_without_limits(root):
    assert memory._bytes_left_by_cgroups() == np.inf
    root("proc/self/cgroup", "0::/\n4:memory:/\n")
    assert memory._bytes_left_by_cgroups() == np.inf


@pytest.mark.parametrize("version", [1, 2])
@pytest.mark.parametrize("inside", [True, False])
def test_control_groups(version, inside, root):
    """The least of what any group above leaves; files that are cached do not count, because they are given back."""
    top = "." if version == 2 else "memory"
    root("proc/self/cgroup", f"1:cpu:/elsewhere\n{'0:' if version == 2 else '7:hugetlb,memory'}:/a/b\n")
    group(root, f"{top}/a/b", 80_000_000, 30_000_000, 10_000_000, version)
    if inside:
        group(root, f"{top}/a", "max" if version == 2 else 2**63 - 4096, 90_000_000, 0, version)
        group(root, top, 50_000_000, 40_000_000, 0, version)
    assert memory._bytes_left_by_cgroups() == (1e7 if inside else 6e7)
    assert memory.available_bytes() <= memory._bytes_left_by_cgroups()
    with pytest.raises(mdlearn.InsufficientMemory, match=r"a matrix needs 0\.04 GB"):
        memory.require(4e7, "a matrix", "go")


@pytest.mark.parametrize("version", [1, 2])
def test_of_a_group_without_a_limit_one_file_is_read(version, root, monkeypatch):
    """Reading all of them takes as long as a small fit."""
    root("proc/self/cgroup", "0::/\n" if version == 2 else "4:memory:/\n")
    group(root, "." if version == 2 else "memory", "max" if version == 2 else 2**63 - 4096, 90_000_000, 0, version)
    names, read = [], memory._system_file
    monkeypatch.setattr(memory, "_system_file", lambda path: (names.append(Path(path).name), read(path))[1])
    assert memory._bytes_left_by_cgroups() == np.inf
    assert names == ["cgroup", memory.CGROUP_FILES["" if version == 2 else "memory"][0]]


def test_a_container_that_sees_the_path_of_its_host(root):
    root("proc/self/cgroup", "4:memory:/docker/0123\n")
    group(root, "memory", 7_000_000, 2_000_000, 0, 1)
    assert memory._bytes_left_by_cgroups() == 5e6


def test_an_exhausted_group(root):
    root("proc/self/cgroup", "0::/\n")
    group(root, ".", 1000, 2000, 0, 2)
    assert memory._bytes_left_by_cgroups() == 0.0


@pytest.mark.skipif(sys.platform != "linux", reason="limits of Linux")
def test_the_address_space():
    code = (
        "import resource, mdlearn\nfrom mdlearn.numerics import memory\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * resource.getpagesize()\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used + 200_000_000, resource.RLIM_INFINITY))\n"
        "assert 150e6 < memory.available_bytes() <= 200e6, memory.available_bytes()\n"
        "try:\n    memory.require(120e6, 'a matrix', 'go')\n"
        "except mdlearn.InsufficientMemory as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert "half of the available memory" in done.stdout


@pytest.mark.parametrize("reason", ["", "Unable to allocate 8 GiB"])
def test_memory_that_runs_out_has_a_sentence(reason, monkeypatch, tmp_path):
    """MemoryError comes from anywhere, often without a word."""

    def full(*_, **__):
        raise MemoryError(reason)

    X = np.c_[np.arange(20.0), np.ones(20)]
    y = np.arange(20) > 9
    model = mdlearn.fit("svm", X, y)
    model.save(tmp_path / "m.npz")
    calls = {
        "mdlearn.stages.READERS": lambda: mdlearn.fit("svm", X, y),
        "mdlearn.driver.choice.Driver": lambda: mdlearn.fit("svm", X, y),
        "mdlearn.objectives.ww.WestonWatkins.arranged": lambda: mdlearn.fit("ww", X, y),
        "mdlearn.stages.make_kernel": lambda: mdlearn.fit_path("svm", X, y, {"C": [1.0]}, kernel="rbf"),
        "mdlearn.stages.build_model": lambda: mdlearn.fit("svm", X, y),
        "mdlearn.streaming.fitting.make_first_passes": lambda: mdlearn.fit("svm", [(X, y)], None),
        "mdlearn.model.model.Model._scores": lambda: model.predict(X),
    }
    for place, call in calls.items():
        with monkeypatch.context() as patched:
            patched.setattr(place, {"labels": full} if place.endswith("READERS") else full)
            with pytest.raises(mdlearn.InsufficientMemory, match=r"ran out of memory.*; use fewer rows") as caught:
                call()
            assert reason in str(caught.value)
    monkeypatch.setattr(loading, "read_model_file", full)
    with pytest.raises(mdlearn.InsufficientMemory, match=r"m\.npz ran out of memory"):
        mdlearn.load(tmp_path / "m.npz")


def test_the_command_line_tells_it(monkeypatch, tmp_path, capsys):
    def full(*_, **__):
        raise MemoryError

    (tmp_path / "a.csv").write_text("".join(f"{i},{i * i},{i > 9}\n" for i in range(20)))
    monkeypatch.setattr("mdlearn.driver.choice.Driver", full)
    assert main(["fit", str(tmp_path / "a.csv"), "-o", str(tmp_path / "m.npz")]) == 1
    assert "the fit ran out of memory; use fewer rows" in capsys.readouterr().err
