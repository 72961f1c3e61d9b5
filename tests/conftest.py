"""Test options. The helper modules beside this file (reference, data, cases) are imported by their plain names."""

import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).parent))


def pytest_addoption(parser):
    parser.addoption("--slow", action="store_true", help="also run the tests marked slow (large real sets, minutes)")


def pytest_configure(config):
    config.addinivalue_line("markers", "slow: minutes on one core; run with --slow")


def pytest_collection_modifyitems(config, items):
    if config.getoption("--slow"):
        return
    for item in items:
        if "slow" in item.keywords:
            item.add_marker(pytest.mark.skip(reason="slow; run with --slow"))
