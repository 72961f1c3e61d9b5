"""The packages in plugins/ and two fresh ones, from wheels in a clean environment: a stage of .ci/run, as a test."""

from __future__ import annotations

import importlib.util
from functools import partial
from pathlib import Path

import pytest
from plugin_cases import GOOD, Site

import mdlearn
from mdlearn.errors import ConvergenceWarning

ROOT = Path(__file__).resolve().parents[2]
SCRIPTS = ROOT / ".ci"
NAMES = [path.parent.name for path in ROOT.glob("plugins/*/pyproject.toml")] + [
    "mdlearn-fresh-band",
    "mdlearn-fresh-corner",
]
pytestmark = pytest.mark.skipif(not SCRIPTS.is_dir(), reason="the scripts are in a clone, not in the sdist")


@pytest.mark.slow
def test_what_is_not_installed_not_certified_or_not_used_is_told(tmp_path, monkeypatch, capsys):
    spec = importlib.util.spec_from_file_location("plugin_fits", SCRIPTS / "plugin_fits.py")
    fits = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(fits)
    Site(tmp_path, monkeypatch).add("good-plugin", GOOD)
    told = [f"mean_hinge comes from {tmp_path / 'good_plugin.py'}, which is not installed"]
    assert fits.main() == [*told, "no fit took the solver renamed"]
    printed = capsys.readouterr().out.splitlines()
    assert len(printed) == 4 and all(line.startswith("mean_hinge, ") and "duality gap" in line for line in printed)
    monkeypatch.setattr(mdlearn, "fit", partial(mdlearn.fit, solver="renamed", max_iter=1))
    faults = []
    with pytest.warns(ConvergenceWarning):
        assert fits.fitted("mean_hinge", fits.load_iris, "linear", faults) == "renamed"
    assert len(faults) == 1 and faults[0].startswith("not converged: mean_hinge, linear, on iris 150 x 4: renamed, ")
