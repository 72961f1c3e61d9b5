"""A short run of the fuzz program for data files, and a look at what it can see."""

import fuzz_data
import numpy as np
import pytest

pytest.importorskip("sklearn", reason="svmlight files are read by scikit-learn")
pytest.importorskip("resource", reason="the bound on memory is one of POSIX")


@pytest.mark.slow
def test_a_short_run_finds_nothing():
    outcomes, faults = fuzz_data.fuzz(seed=3, count=300, size=150)
    assert not faults
    assert sum(outcomes.values()) == 300
    assert {"loaded as CSV, predicted", "loaded as svmlight, predicted", "refused"} <= set(outcomes)


def test_a_run_is_the_same_again():
    assert [fuzz_data.case(1, i) for i in range(20)] == [fuzz_data.case(1, i) for i in range(20)]
    assert len({fuzz_data.case(1, i)[1] for i in range(20)}) == 20


@pytest.mark.parametrize(
    "name, content, spoil",
    [
        ("a.csv", b"1,2,1\n3,4,0\n", lambda table: np.add(table.X, 1e-9, out=table.X)),
        ("a.csv", b"1,2,1\n3,4,0\n", lambda table: np.add(table.y, 1, out=table.y)),
        ("a.svm", b"1 1:2\n-1 2:3\n", lambda table: np.add(table.X.data, 1e-9, out=table.X.data)),
    ],
)
def test_a_wrong_load_is_a_fault(name, content, spoil, tmp_path, monkeypatch):
    from mdlearn.files import reading

    sound = reading.read_for_fit

    def wrong(*arguments):
        table = sound(*arguments)
        spoil(table)
        return table

    path = tmp_path / name
    path.write_bytes(content)
    monkeypatch.setattr(reading, "read_for_fit", wrong)
    with pytest.raises(AssertionError):
        fuzz_data.judge(path, content, tmp_path / "m.npz", fitted=False)
