"""Mutated model files, seeded: none may crash the process, run code, take much memory or time, or be another model.

    python tests/support/fuzz_models.py --files 10000            # as damage: the digest stays what it was
    python tests/support/fuzz_models.py --files 10000 --sealed   # as an attack: the digest fits what was changed

Linux only. Files are loaded in batches, each in a process of its own with limits of memory and time. A file is fine
when loading raises ValueError, or when the model predicts the bits of the original. With --sealed it may be another
model; then predictions may raise ValueError or MemoryError. Printed: how many files ended how.
"""

from __future__ import annotations

import argparse
import json
import pickle
import signal
import subprocess
import sys
import tempfile
import warnings
from collections import Counter
from pathlib import Path

import numpy as np
import scipy.sparse as sp

MEMORY = 1 << 30
"""Bytes of address space that a batch may take beyond what libraries have taken."""
SECONDS = 10
"""Time that a single file may take."""
BATCH = 500


def originals(folder):
    """Write model files of many kinds into a folder, with rows and what the models predict for them."""
    from persistence_cases import CASES, fitted

    cases = {
        **{
            name: CASES[name] for name in ("linear", "rbf, three classes", "poly", "precomputed", "csr", "csr, float32")
        },
        "ovo": {"classes": 3, "multiclass": "ovo"},
        "proba": {"objective": "mlr", "classes": 3},
        "columns": {"objective": "uldm", "classes": 3, "kernel": "rbf", "multiclass": "fuzzy-min"},
        "landmarks": {"objective": "l3svm", "n_clusters": 3, "n_landmarks": 3},
        "soft": {"objective": "l3svm", "n_clusters": 3, "n_landmarks": 3, "projection": "rbf", "membership": "soft"}
        | {"smoothness": 1.0, "n_levels": 2},
        "nystroem": {"kernel": "rbf", "approximation": "nystroem", "n_components": 4},
        "reduced": {"kernel": "poly", "approximation": "landmarks", "n_components": 4, "classes": 3},
        "kernel of landmarks": {"objective": "l3svm", "n_clusters": 2, "n_landmarks": 3, "kernel": "rbf"},
    }
    for i, given in enumerate(cases.values()):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            model, X, _ = fitted(**given)
        model.save(folder / f"{i}.npz")
        rows = X.toarray() if sp.issparse(X) else X
        np.savez(folder / f"{i}.rows", X=rows, f=model.decision_function(X), sparse=sp.issparse(X))


def _high_water():
    """Most memory in kB that this process had; ru_maxrss would begin at what the process that started it had."""
    (line,) = (line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM"))
    return int(line.split()[1])


def batch(folder, first, last, seed, sealed, canary):
    """Load the mutated files first ... last - 1 and print their outcomes; what is printed last was being worked on."""
    import resource

    from model_attacks import attacked
    from model_damage import damaged

    import mdlearn

    warnings.simplefilter("ignore")
    kinds = []
    for path in sorted(Path(folder).glob("*.rows.npz")):
        with np.load(path) as file:
            X = sp.csr_matrix(file["X"]) if file["sparse"] else file["X"]
            kinds.append((Path(str(path).removesuffix(".rows.npz") + ".npz").read_bytes(), X, file["f"]))
        mdlearn.load(str(path).replace(".rows", "")).predict(X)  # all modules are there before memory is limited
    with open("/proc/self/statm", encoding="ascii") as counts:
        taken = int(counts.read().split()[0]) * resource.getpagesize()
    resource.setrlimit(resource.RLIMIT_AS, (taken + MEMORY, taken + MEMORY))
    signal.signal(signal.SIGALRM, _late)
    place = Path(folder) / f"batch-{first}.npz"
    for i in range(first, last):
        rng = np.random.default_rng((seed, i))
        which = int(rng.integers(len(kinds)))
        content, X, f = kinds[which]
        others = [kind[0] for kind in kinds]
        made, how = (attacked if sealed else damaged)(rng, content, others, _Canary(canary))
        place.write_bytes(made)
        signal.alarm(SECONDS)
        try:
            outcome = judge(mdlearn, place, X, f, sealed)
        except _Late:
            outcome = "FAILED: hangs"
        finally:
            signal.alarm(0)
        print(json.dumps([i, how, outcome]), flush=True)
    print(json.dumps([last, "peak", _high_water()]), flush=True)


def judge(mdlearn, path, X, f, sealed):
    """How loading a file, and predicting by what was loaded, ends."""
    try:
        model = mdlearn.load(path)
    except ValueError as error:
        told = str(error).startswith(f"{path} cannot be loaded: ") or isinstance(error, mdlearn.InsufficientMemory)
        return "refused" if told and len(str(error)) < 2000 else f"FAILED: {error}"
    except Exception as error:
        return f"FAILED: load raised {type(error).__name__}: {error}"[:300]
    try:
        own = model.decision_function(X)
        if own.tobytes() == f.tobytes() and own.dtype == f.dtype:
            used(model, X)
            return "the same model"
        if not sealed:
            return "FAILED: another model"
    except (ValueError, MemoryError) as error:
        if not sealed:
            return f"FAILED: predict raised {error}"
    except Exception as error:
        return f"FAILED: predict raised {type(error).__name__}: {error}"[:300]
    try:
        width = model.n_features_in_
        A = np.ones((3, width)) if width < 1000 else sp.csr_matrix((3, width))
        used(model, A)
        used(model, sp.csr_matrix(A))
    except (ValueError, MemoryError):
        return "another model, predict refused"
    except Exception as error:
        return f"FAILED: predict raised {type(error).__name__}: {error}"[:300]
    return "another model"


def used(model, A):
    """What users do with a model, by the arrays of which compiled loops trust some."""
    model.predict(A)
    for name in ("coef_", "folded_coef_", "dual_coef_", "predict_proba", "feature_names_in_"):
        value = getattr(model, name, None)
        if callable(value):
            value(A)
    repr(model)
    pickle.loads(pickle.dumps(model)).decision_function(A)


class _Late(BaseException):
    """A file takes too long."""


def _late(*_):
    raise _Late


class _Canary:
    """Unpickling this makes a file: nothing may."""

    def __init__(self, path):
        self.path = path

    def __reduce__(self):
        return open, (self.path, "w")


def run(files, seed=0, sealed=False, at_once=BATCH):
    """Mutate and load so many files; return how many ended how, by outcome and by kind, and the largest memory in kB.

    A batch that dies is told as the outcome of the file it died on, and goes on behind it.
    """
    outcomes, kinds, peak = Counter(), Counter(), 0
    with tempfile.TemporaryDirectory() as name:
        folder, canary = Path(name), Path(name) / "canary"
        originals(folder)
        todo = [(i, min(i + at_once, files)) for i in range(0, files, at_once)]
        while todo:
            first, last = todo.pop(0)
            code = [
                sys.executable,
                __file__,
                "--batch",
                str(folder),
                str(first),
                str(last),
                str(seed),
                str(int(sealed)),
            ]
            try:
                done = subprocess.run([*code, str(canary)], stdout=subprocess.PIPE, timeout=60 + SECONDS * 6)
                text, ended = done.stdout, f"FAILED: the process ended with {done.returncode}"
            except subprocess.TimeoutExpired as late:
                text, ended = late.stdout or b"", "FAILED: the process hangs"
            lines = [json.loads(line) for line in text.decode().splitlines() if line.endswith("]")]
            reports = [line for line in lines if line[1] != "peak"]
            peak = max([peak, *(line[2] for line in lines if line[1] == "peak")])
            if len(reports) < last - first:
                dead = reports[-1][0] + 1 if reports else first
                reports.append([dead, "?", ended])
                if dead + 1 < last:
                    todo.insert(0, (dead + 1, last))
            for i, how, outcome in reports:
                outcomes[outcome if "FAILED" not in outcome else f"{outcome} (file {i}, {how})"] += 1
                kinds[how, outcome.split(":")[0]] += 1
        if canary.exists():
            outcomes["FAILED: code of a file was run"] += 1
    return outcomes, kinds, peak


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--files", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--sealed", action="store_true")
    given = parser.parse_args()
    outcomes, kinds, peak = run(given.files, given.seed, given.sealed)
    for (how, outcome), count in sorted(kinds.items()):
        print(f"{count:7d}  {how:40s}{outcome}")
    print(f"in all, at most {peak / 1024:.0f} MB:")
    for outcome, count in outcomes.most_common():
        print(f"{count:7d}  {outcome}")
    return any("FAILED" in outcome for outcome in outcomes)


if __name__ == "__main__":
    if sys.argv[1:2] == ["--batch"]:
        folder, first, last, seed, sealed, canary = sys.argv[2:]
        batch(folder, int(first), int(last), int(seed), sealed == "1", canary)
    else:
        sys.exit(main())
