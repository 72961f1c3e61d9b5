"""Records of a study in a file, one JSON object per line, kept as they come; an interrupted run goes on from there."""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np

from mdlearn_papers.studies import Record, Settings, Study, Unit

RECORDS = "records.jsonl"
"""File of the records in the folder of a study."""


class Store:
    """Records of a study by unit.

    Parameters
    ----------
    folder : Path
        Made where it is absent. Records are in ``records.jsonl``; the first line says what they belong to.
    study : Study
    settings : Settings

    Raises
    ------
    ValueError
        When the file is of another study, version or settings, or is no such file.
    """

    def __init__(self, folder: Path, study: Study, settings: Settings) -> None:
        self.path = folder / RECORDS
        self.head = {"study": study.name, "version": study.version, **asdict(settings)}
        self.found: dict[Unit, list[Record]] = {}
        folder.mkdir(parents=True, exist_ok=True)
        if self.path.exists():
            self._read()
        else:
            self._write([self.head], "w")

    def add(self, unit: Unit, records: list[Record]) -> None:
        """Keep the records of a unit, on disk before this returns."""
        self.found[unit] = records
        self._write([{"unit": asdict(unit), "records": [asdict(one) for one in records]}], "a")

    def done(self, unit: Unit) -> bool:
        """Whether a unit has records, none of them a failure."""
        return unit in self.found and all(record.values for record in self.found[unit])

    def records(self) -> list[Record]:
        """All records, in the order of their units."""
        return [record for unit in sorted(self.found) for record in self.found[unit]]

    def _read(self) -> None:
        whole = self.path.read_bytes().decode("utf-8", errors="replace")
        text = whole[: whole.rfind("\n") + 1]
        if not text and json.dumps(self.head).startswith(whole):  # killed in the middle of the first line
            self._write([self.head], "w")
            return
        try:
            head, *lines = [json.loads(line) for line in text.splitlines()]
            if head == self.head:
                for line in lines:
                    self.found[Unit(**line["unit"])] = [Record(**one) for one in line["records"]]
        except (KeyError, TypeError, ValueError) as error:
            raise ValueError(f"{self.path} does not hold records ({error}); give another --output") from None
        if head != self.head:
            raise ValueError(f"{self.path} holds records of {head}, not of {self.head}; give another --output")
        if text != whole:  # killed in the middle of a line
            self.path.write_text(text, encoding="utf-8")

    def _write(self, lines: list[dict[str, Any]], mode: str) -> None:
        with open(self.path, mode, encoding="utf-8") as file:
            file.writelines(json.dumps(line, default=_plain) + "\n" for line in lines)
            file.flush()
            os.fsync(file.fileno())


def _plain(value: Any) -> Any:
    """NumPy's numbers and arrays as Python's."""
    if isinstance(value, (np.ndarray, np.generic)):
        return value.tolist()
    raise TypeError(f"records hold numbers and lists; got {type(value).__name__}")
