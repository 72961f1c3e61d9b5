"""
Saving and loading
==================

A model is one file of arrays with a JSON header. Nothing in it is executed when it is read, and the loaded model
predicts the same bits.
"""

import tempfile
from pathlib import Path

import numpy as np

import mdlearn
from mdlearn.plotting import decision_boundary

X, y = mdlearn.datasets.checkerboard(400, random_state=0)
model = mdlearn.fit("ldm", X, y, kernel="rbf", gamma=4.0, C=10)
path = Path(tempfile.mkdtemp()) / "checkerboard.npz"
model.save(path)
loaded = mdlearn.load(path)
print(loaded)
print("same bits:", (loaded.decision_function(X) == model.decision_function(X)).all())
print("same certificate:", loaded.certificate == model.certificate)
decision_boundary(loaded, X, y, support=False)

# %%
# What is in the file: plain arrays, and a header that any program can read.

with np.load(path, allow_pickle=False) as file:
    for name in file.files:
        print(f"{name:12s} {file[name].dtype.str:6s} {file[name].shape}")

# %%
# A file that was changed is refused: it has a checksum.

data = bytearray(path.read_bytes())
data[len(data) // 2] ^= 1
path.write_bytes(bytes(data))
try:
    mdlearn.load(path)
except ValueError as error:
    print(str(error).replace(str(path), path.name))
