"""Two hundred problems of the fuzz program; `python tests/fuzz/run.py` takes as many as one likes."""

import warnings

import pytest
from fuzz import run
from fuzz.properties import PROPERTIES

SEED, COUNT, SOME = 22, 200, 10
TIMED = ("late", "slow start", "slow path", "choice")
"""What depends on the machine and what else it does is left to the program."""


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, COUNT, SOME))
def test_nothing_is_found(first):
    names = [name for name in PROPERTIES if name not in TIMED]
    found = []
    for index in range(first, first + SOME):
        some, _ = run.judge(SEED, index, names)
        found += [f"problem {index} of seed {SEED} [{name}] {text} | {how} | {told}" for name, how, text, told in some]
    assert not found, "\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize(
    "seed, index",
    [
        (600, 8916),
        (600, 9518),
        (600, 9918),
        (700, 186),
        (800, 200),
        (800, 3388),
        (800, 5048),
        (800, 7909),
        (961, 2511),
        (961, 5500),
    ],
)
def test_what_was_found_is_found_no_more(seed, index):
    found, _ = run.judge(seed, index, [name for name in PROPERTIES if name not in ("late", "slow start", "slow path")])
    assert not found


def test_a_run_that_judges_nothing_is_no_success(capsys):
    with warnings.catch_warnings():
        assert run.main(["--count", "2", "--like", "no such objective"]) == 2
    assert "0 problems, 0 fits" in capsys.readouterr().out
