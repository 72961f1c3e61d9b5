"""Memory that a fit takes beyond its data, measured in a process of its own.

The process loads the rows from files, fits a few of them so that everything is imported, and then compares its largest
resident size before and after the fit. As a program: ``memory.py FOLDER``, which prints the two sizes in bytes.
"""

import json
import os
import subprocess
import sys
import tempfile
import warnings
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import scipy.sparse as sp

import mdlearn

PARTS = ("data", "indices", "indptr")
FEW = 500
"""Rows of the fit that imports everything."""


def extra_share(X, y, settings):
    """Memory beyond X and y that ``mdlearn.fit(X=X, y=y, **settings)`` takes, as a share of X.

    Parameters
    ----------
    X : ndarray or CSR matrix of shape (m, d)
    settings : dict
        What JSON can hold.

    Returns
    -------
    share : float
    extra : float
        The same in bytes.
    """
    arrays = {name: getattr(X, name) for name in PARTS} if sp.issparse(X) else {"X": X}
    with tempfile.TemporaryDirectory() as folder:
        for name, array in {**arrays, "y": y}.items():
            np.save(Path(folder) / f"{name}.npy", array)
        Path(folder, "settings.json").write_text(json.dumps({"settings": settings, "width": X.shape[1]}))
        path = os.pathsep.join([str(Path(mdlearn.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
        environment = {**os.environ, "PYTHONPATH": path}
        done = subprocess.run(
            [sys.executable, __file__, folder], env=environment, capture_output=True, text=True, check=False
        )
    if done.returncode:
        raise RuntimeError(done.stderr[-1000:])
    before, after = (int(part) for part in done.stdout.split())
    extra = float(after - before)
    return extra / sum(array.nbytes for array in arrays.values()), extra


def largest_resident():
    """The largest resident size of this program so far, in bytes."""
    try:
        # On Linux getrusage goes on from the process that started this one, which held the data too.
        lines = Path("/proc/self/status").read_text().splitlines()
        return 1024 * next(int(line.split()[1]) for line in lines if line.startswith("VmHWM:"))
    except (OSError, StopIteration):
        pass
    try:
        import resource
    except ImportError:
        raise NotImplementedError("the system does not tell a process its largest size") from None
    size = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return size if sys.platform == "darwin" else 1024 * size


def measured(folder):
    """Largest resident sizes before and after a fit of the problem in a folder."""
    kept = json.loads((folder / "settings.json").read_text())
    y = np.load(folder / "y.npy")
    if (folder / "X.npy").exists():
        X = np.load(folder / "X.npy")
    else:
        parts = [np.load(folder / f"{name}.npy") for name in PARTS]
        X = sp.csr_matrix(tuple(parts), shape=(y.size, kept["width"]))
    warnings.simplefilter("ignore")
    mdlearn.fit(X=X[:FEW], y=y[:FEW], max_iter=3, **kept["settings"])
    before = largest_resident()
    mdlearn.fit(X=X, y=y, **kept["settings"])
    return before, largest_resident()


@dataclass(frozen=True)
class ExtraMemory:
    """A row of the table of peers whose ratio is a share of the memory of X.

    Attributes
    ----------
    X, y
        The data.
    settings : dict
        Arguments of `mdlearn.fit`.
    goal : float
        Largest share.
    """

    X: object
    y: np.ndarray
    settings: dict
    goal: float

    def lines(self):
        """One line."""
        from .contest import COLUMNS, Line

        share, extra = extra_share(self.X, self.y, self.settings)
        floor = f"**X: {self.X.nbytes / 1e6:.0f} MB**"
        cells = {**dict.fromkeys(COLUMNS, ""), "floor": floor}
        return [Line(cells, f"`{self.settings['solver']}` {extra / 1e6:.1f} MB more", "", share, self.goal)]


if __name__ == "__main__":
    print(*measured(Path(sys.argv[1])))
