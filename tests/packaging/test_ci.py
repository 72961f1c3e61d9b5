"""The checks of a commit run what a user runs, as a user runs it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import time

import pytest
from documents import README, ROOT

CI = ROOT / ".ci"
TESTS = ROOT / "tests"
pytestmark = pytest.mark.skipif(not CI.is_dir(), reason="the scripts are in a clone, not in the sdist")


def commands(name):
    """The lines of a script that are no comments."""
    lines = (CI / name).read_text(encoding="utf-8").splitlines()
    return [line for line in lines if not line.lstrip().startswith("#")]


def test_one_stage_alone_sets_a_number_of_threads():
    found = [line for name in ("run", "docs", "plugins.py") for line in commands(name) if "_THREADS" in line]
    (only,) = found
    assert (
        only.lstrip().startswith('logged threads "${bare[@]}" ')
        and '"$more && OMP_NUM_THREADS=1 pytest -m threads"' in only
    )


def test_the_command_of_the_readme_is_run_as_it_stands(tmp_path):
    """What .ci/run reads from README.md is the command there, and nothing is added to it."""
    program = re.search(r"README\.md <<'PY'\n(.*?)\nPY\n", (CI / "run").read_text(encoding="utf-8"), re.DOTALL)[1]
    told = subprocess.run(
        [sys.executable, "-c", program, str(ROOT / "README.md")], capture_output=True, text=True, timeout=60, check=True
    )
    assert f"\n{told.stdout}" in README and told.stdout.count("\n") == 1 and "pytest" in told.stdout
    (line,) = [line.strip() for line in commands("run") if '"$command"' in line and "echo" not in line]
    assert line == 'logged readme "${bare[@]}" "$command"'
    assert 'bare=(env -i "${kept[@]}" bash -euo pipefail -c)' in commands("run")
    # Nothing but extras follows: what is tested later is what that command has installed.
    (more,) = [line.strip() for line in commands("run") if line.lstrip().startswith("more=")]
    assert more.endswith('&& pip show -q mdlearn && pip install "mdlearn[test-all]"\'')


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
@pytest.mark.parametrize(
    ("codes", "last"),
    [
        ((0, 0, 0, 0, 0), "readme"),
        ((1, 0, 0, 0, 0), "plugins"),
        ((0, 1, 0, 0, 0), "threads"),
        ((0, 0, 2, 0, 0), "safe"),
        ((0, 0, 0, 1, 0), "rest"),
        ((0, 0, 0, 0, 1), "readme"),
        ((0, 1, 1, 0, 0), "safe"),
    ],
)
def test_the_last_line_counts_failures_where_there_are_any(codes, last, tmp_path):
    text = (CI / "run").read_text(encoding="utf-8")
    end = text[text.index("# The logs of what failed") :]
    names = ("plugins", "threads", "safe", "rest", "readme")
    for name, code in zip(names, codes):
        (tmp_path / f"{name}.log").write_text(f"1 of {name} in 1.0s\n")
        (tmp_path / f"{name}.status").write_text(f"{code}\n")
    script = f"set -euo pipefail\nroom={tmp_path}\nlog=$room/log\n{end}"
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=60, env=dict(os.environ))
    assert done.returncode == int(any(codes))
    assert done.stdout.splitlines()[-1] == (tmp_path / "log").read_text().strip() == f"1 of {last} in 1.0s"


@pytest.mark.skipif(shutil.which("bash") is None, reason="no bash here")
def test_a_job_in_the_background_ends_with_the_script_and_says_how_it_went(tmp_path):
    """Where a stage fails meanwhile, jobs are ended as whole groups; their failures alone do not end the script."""
    text = (CI / "run").read_text(encoding="utf-8")
    functions = text[text.index("stage=") : text.index("environment()")].replace("room=$(mktemp -d)", "")
    script = f"""set -euo pipefail
room={tmp_path}/room; mkdir "$room"
{functions}
background logged bad bash -c 'echo told; exit 3'
background logged good true
wait "${{jobs[@]}}"
jobs=()
cat "$room/bad.status" "$room/bad.log" "$room/good.status"
background bash -c 'sleep 60 & echo $! >{tmp_path}/child; wait'
until [ -s {tmp_path}/child ]; do sleep 0.05; done
enter failing
false"""
    done = subprocess.run(["bash", "-c", script], capture_output=True, text=True, timeout=50, env=dict(os.environ))
    lines = done.stdout.splitlines()
    assert (
        done.returncode == 1
        and lines[:3] == ["3", "told", "0"]
        and lines[-2:] == ["failed: failing", "0 passed, 1 failed"]
    )
    with pytest.raises(ProcessLookupError):
        for _ in range(100):
            os.kill(int((tmp_path / "child").read_text()), 0)
            time.sleep(0.05)
    assert not (tmp_path / "room").exists()


def test_what_is_about_threads_is_marked():
    """The stage with one thread of BLAS has the tests of n_threads, of processes and of equal bits."""
    marked = {path.name for path in TESTS.rglob("test_*.py") if "mark.threads" in path.read_text()}
    named = {path.name for path in TESTS.rglob("test_*threads*.py")}
    assert marked >= named | {"test_determinism.py", "test_processes.py", "test_first_calls.py"}
