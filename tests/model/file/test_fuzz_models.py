"""A few hundred mutated model files; `python tests/support/fuzz_models.py` takes as many as one likes."""

import sys

import pytest

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="limits of memory, and how it is counted")


@pytest.mark.slow
@pytest.mark.parametrize("sealed", [False, True])
def test_mutated_files_are_refused_or_predict(sealed):
    from fuzz_models import run

    outcomes, _, peak = run(150, seed=1, sealed=sealed)
    assert sum(outcomes.values()) == 150
    assert not [outcome for outcome in outcomes if "FAILED" in outcome]
    assert outcomes["refused"] > 75 and outcomes["the same model"] > 5
    assert peak < 600_000
