"""A fit over row blocks with a checkpoint: called, or in a process of its own that a test kills.

python checkpoint_run.py OBJECTIVE CHECKPOINT SECONDS_PER_BLOCK
"""

import sys
import time

import numpy as np

import mdlearn


def fitted(objective, checkpoint, pause=0.0):
    """The model of rows that are made anew in each pass, at that many seconds for a block."""

    def source():
        for seed in range(8):
            rng = np.random.default_rng(seed)
            X = rng.standard_normal((500, 5))
            time.sleep(pause)
            yield X, X[:, 0] + rng.standard_normal(500) > 0

    blocks = mdlearn.RowBlocks(source, checkpoint=checkpoint, held=200)
    return mdlearn.fit(objective, blocks, None, tol=1e-9, multiclass="ovr")


if __name__ == "__main__":
    print("ready", flush=True)
    fitted(sys.argv[1], sys.argv[2], float(sys.argv[3]))
