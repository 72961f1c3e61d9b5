"""Let the checker judge random model files, each as it is and with one number changed.

    python tests/fuzz/verify.py --seed 1 --count 10000

A line per file that is judged wrongly, and a table at the end: of files as they are, those agreed on; of changed ones,
those refuted. The exit code is 1 where any is judged wrongly. A model depends on seed and number alone.
"""

import argparse
import collections
import sys
import tempfile
import warnings
from pathlib import Path

import numpy as np

HERE = Path(__file__).resolve()
sys.path[:0] = [str(HERE.parents[2]), str(HERE.parents[1] / "support")]


def judged(seed, index, folder):
    """(number changed, verdict on the file as it is, on the changed one, changes that said nothing) of one model."""
    from tampered_models import content_of, drawn, places, says_something_else, tampered, written

    from mdlearn.verifier.checker import Finding, check_model

    def verdict(path):
        try:
            check_model(path, *data)
        except Finding as finding:
            return ("refuted", "not checked")[finding.args[0] - 1]
        return "agreed"

    rng = np.random.default_rng([seed, index])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of what did not converge
        model, *data = drawn(rng)
    whole = content_of(model, folder)
    names, place, changed, idle = places(*whole), "", whole, -1
    while idle < 0 or not says_something_else(whole, changed, place, data):
        place, idle = names[rng.integers(len(names))], idle + 1
        changed = tampered(*whole, place, rng)
    return f"{model.objective} {place}", verdict(folder / "whole.npz"), verdict(written(*changed, folder)), idle


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--start", type=int, default=0, help="number of the first model")
    parser.add_argument("--count", type=int, default=100)
    given, table = parser.parse_args(), collections.Counter()
    with tempfile.TemporaryDirectory() as folder:
        for index in range(given.start, given.start + given.count):
            place, first, second, idle = judged(given.seed, index, Path(folder))
            table["as it is", first] += 1
            table["drawn anew:", "says no more"] += idle
            table[f"changed: {place.split()[1]}", second] += 1
            if (first, second) != ("agreed", "refuted"):
                print(f"{index}: {place}: {first} as it is, {second} when changed", flush=True)
    for (what, verdict), number in sorted(table.items()):
        print(f"{what:<24}{verdict:<14}{number}")
    right = table["as it is", "agreed"], sum(n for (what, verdict), n in table.items() if verdict == "refuted")
    right = right[0], right[1] - table["as it is", "refuted"]
    print(f"agreed {right[0]} of {given.count}, refuted {right[1]} of {given.count}")
    return int(right != (given.count, given.count))


if __name__ == "__main__":
    sys.exit(main())
