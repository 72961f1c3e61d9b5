"""``python -m mdlearn reproduce NAME``: run what is left of a study, and write the report."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from mdlearn.experiments.papers.documents import write
from mdlearn.experiments.papers.index import EXPERIMENTS
from mdlearn.experiments.papers.running import run
from mdlearn.experiments.papers.sources import Sets
from mdlearn.experiments.papers.store import RECORDS, Store
from mdlearn.experiments.papers.studies import Settings
from mdlearn.outputs import check_folder

DEFAULT_DATA = "data"
"""Folder of data sets that is looked for in the current one."""


def main(given: argparse.Namespace) -> int:
    """Reproduce one table or figure; after Ctrl-C the report is of what there is."""
    if given.name == "list":
        width = max(map(len, EXPERIMENTS))
        print(*(f"{name:<{width}}  {one.title}" for name, one in EXPERIMENTS.items()), sep="\n")
        return 0
    if given.name not in EXPERIMENTS:
        raise ValueError(f"there is no table or figure {given.name!r}; known are: {', '.join(EXPERIMENTS)}")
    if given.data is not None and not Path(given.data).is_dir():
        raise ValueError(f"there is no folder {given.data}; give the one with the data sets")
    experiment, settings = EXPERIMENTS[given.name], Settings(given.quick, given.seed)
    sets = Sets(given.data or DEFAULT_DATA)
    folder = Path(given.output) / (experiment.study.name + ("-quick" if given.quick else ""))
    begun = (folder / RECORDS).is_file()
    if given.report and not begun:
        raise ValueError(f"nothing of {given.name} has been run in {given.output}; without --report it is run")
    check_folder(folder, "give another --output, or --force to overwrite files there", own=begun, force=given.force)
    store = Store(folder, experiment.study, settings)
    try:
        if not given.report:
            run(given.name, store, sets, settings, given.jobs)
    finally:
        records = store.records()
        if records:
            files = write(experiment.report(records, sets, settings), folder, given.name)
            print(*files, sep="\n")
    failed = [record for record in records if not record.values]
    for record in failed[:5]:
        print(f"no figures of {record.method} on {record.data}: {record.note}", file=sys.stderr)
    if not records:
        print("none of the data sets are there; give their folder with --data", file=sys.stderr)
    return 0 if records else 1
