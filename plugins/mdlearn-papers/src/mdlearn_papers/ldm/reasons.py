"""What the experiments of tables 2 and 3 say of figures that are far from the printed ones."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

import numpy as np

from mdlearn_papers.comparing import errors_away
from mdlearn_papers.ldm import protocol
from mdlearn_papers.ldm.small_study import ONE_PASS, READINGS
from mdlearn_papers.printed import Figures
from mdlearn_papers.reasons import Evidence


def evidence(kernel: str, found: Mapping[tuple[str, str], np.ndarray]) -> Evidence:
    """Evidence for one kernel out of the accuracies of all methods and readings."""
    return partial(_told, kernel, found)


def _told(
    kernel: str, found: Mapping[tuple[str, str], np.ndarray], label: str, method: str, theirs: Figures
) -> list[str]:
    if method == protocol.SVM:
        near = [
            f"{name.removeprefix('SVM, ')} {found[label, name].mean():.3f} ({away:+.1f})"
            for name in (*READINGS[kernel], ONE_PASS)
            if (label, name) in found and abs(away := errors_away(found[label, name], theirs)) <= 2
        ]
        return [f"readings: {', '.join(near)}"] if near else []
    if method == protocol.LDM and (label, protocol.SCALED) in found:
        scaled = found[label, protocol.SCALED]
        away = errors_away(scaled, theirs)
        return [f"on the paper's grid LDM is the SVM; on the scale-aware grid {scaled.mean():.3f} ({away:+.1f})"]
    if method == protocol.MAMC and kernel == "linear":
        return ["closed form without parameters: other columns, another scale or a bias"]
    if method == protocol.MDO:
        return ["our parameters are a reading, the paper names none"]
    if method == protocol.KMOMD:
        return ["our lam is a reading, the paper chooses a C that KM-OMD does not have"]
    return []
