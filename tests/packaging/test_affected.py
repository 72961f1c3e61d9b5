"""`tests/affected`: which tests a change asks for."""

from __future__ import annotations

import importlib.util
from importlib.machinery import SourceFileLoader

from documents import ROOT

LOADER = SourceFileLoader("affected", str(ROOT / "tests" / "affected"))
affected = importlib.util.module_from_spec(importlib.util.spec_from_loader("affected", LOADER))
LOADER.exec_module(affected)


def test_a_module_asks_for_its_folder_and_for_what_imports_it():
    found = affected.affected({"mdlearn/solvers/newton_cg/newton_system.py"})
    assert "tests/solvers/newton_cg" in found and "tests/solvers/interior_point" not in found
    assert {"tests/system/test_house.py", "tests/system/test_imports.py"} <= found
    assert "tests/solvers/fixed_point" in affected.affected({"mdlearn/solvers/fixed_point.py"})
    assert "tests/forms/test_passes.py" in affected.affected({"mdlearn/data/features/linear_features.py"})
    assert "tests/_solvers" in affected.affected({"mdlearn/_solvers/sgd.pyx"})


def test_what_tests_share_asks_for_those_that_share_it():
    found = affected.affected({"tests/support/reference_qp.py"})
    assert "tests/properties/test_optimum.py" in found, "reference.py is in between"
    assert "tests/plotting/test_plot_grid.py" not in found


def test_documents_and_tests():
    assert "tests/system/test_docs.py" in affected.affected({"docs/limits.md"})
    assert "tests/data/test_blocks.py" in affected.affected({"tests/data/test_blocks.py"})
    assert affected.affected({"tests/data/test_gone.py"}) == set(affected.ALWAYS)
