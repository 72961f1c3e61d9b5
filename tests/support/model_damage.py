"""Damage to model files: bytes, members, their headers and texts; the digest stays what it was."""

import io
import json
import pickle
import struct
import warnings
import zipfile

import numpy as np
from persistence_cases import opened

from mdlearn.model.file import persistence

LOCAL, CENTRAL = b"PK\x03\x04", b"PK\x01\x02"


def damaged(rng, content, others, canary):
    """Return mutated bytes of a model file and the name of the mutation; its digest does not fit any more."""
    how = list(DAMAGE)[rng.integers(len(DAMAGE))]
    return bytes(DAMAGE[how](rng, bytearray(content), others, canary)), how


def packed(header, arrays, text=None):
    """The file of a header and arrays, with a digest where there can be one."""
    if text is None:
        header["arrays"] = {name: [a.dtype.str, list(a.shape)] for name, a in arrays.items()}
        text = json.dumps(header, allow_nan=True).encode()
    body = np.frombuffer(text, np.uint8)
    try:
        digest = persistence._model_file_digest(body, arrays)
    except (ValueError, TypeError, BufferError):
        digest = np.zeros(32, np.uint8)
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, array in {"header": body, "digest": digest, **arrays}.items():
            with archive.open(f"{name}.npy", "w") as member, warnings.catch_warnings():
                warnings.simplefilter("ignore")
                np.lib.format.write_array(member, array, allow_pickle=True)
    return out.getvalue()


def _flip(rng, data, others, canary):
    for _ in range(int(rng.integers(1, 4))):
        data[rng.integers(len(data))] ^= 1 << int(rng.integers(8))
    return data


def _bytes(rng, data, others, canary):
    at, n = int(rng.integers(len(data))), int(rng.integers(1, 60))
    kind = rng.integers(3)
    if kind == 0:
        data[at : at + n] = rng.bytes(n)
    elif kind == 1:
        del data[at : at + n]
    else:
        data[at:at] = rng.bytes(n)
    return data


def _cut(rng, data, others, canary):
    return data[: int(rng.integers(len(data)))]


def _splice(rng, data, others, canary):
    other = others[rng.integers(len(others))]
    at, there = int(rng.integers(len(data))), int(rng.integers(len(other)))
    return data[:at] + other[there : there + int(rng.integers(1, 3000))] + data[at + int(rng.integers(2000)) :]


def _swapped(rng, data, others, canary):
    """Members of this file in another order, doubled, dropped, renamed, or those of another file."""
    with zipfile.ZipFile(io.BytesIO(data)) as old:
        members = [[name, old.read(name)] for name in old.namelist()]
    with zipfile.ZipFile(io.BytesIO(others[rng.integers(len(others))])) as old:
        more = [[name, old.read(name)] for name in old.namelist()]
    i, j = (int(n) for n in rng.integers(len(members), size=2))
    kind = int(rng.integers(6))
    if kind == 0:
        members[i], members[j] = members[j], members[i]
    elif kind == 1:
        members.append(members[i])
    elif kind == 2:
        del members[i]
    elif kind == 3:
        members[i][0] = ["\u00fc.npy", "../x.npy", "/etc/x", "coef\u202e.npy", "x", "a" * 3000][rng.integers(6)]
    elif kind == 4:
        members[i][1] = more[rng.integers(len(more))][1]
    else:
        members += more
    out = io.BytesIO()
    with warnings.catch_warnings(), zipfile.ZipFile(out, "w", int(rng.choice([0, 0, 8, 14]))) as new:
        warnings.simplefilter("ignore")
        new.comment = b"x" * int(rng.choice([0, 0, 10, 60000]))
        for name, body in members:
            new.writestr(name, body)
    return out.getvalue()


def _zip_field(rng, data, others, canary):
    """Flags (encrypted ...), methods, sizes, lengths and places in the headers of members and of the directory."""
    tag, fields = [
        (LOCAL, [(4, 2), (6, 2), (8, 2), (14, 4), (18, 4), (22, 4), (26, 2), (28, 2)]),
        (CENTRAL, [(8, 2), (10, 2), (20, 4), (24, 4), (28, 2), (30, 2), (32, 2), (42, 4)]),
        (b"PK\x05\x06", [(8, 2), (10, 2), (12, 4), (16, 4), (20, 2)]),
    ][rng.integers(3)]
    places = [i for i in range(len(data) - 4) if data[i] == 80 and data[i : i + 4] == tag]
    at = places[rng.integers(len(places))]
    offset, size = fields[rng.integers(len(fields))]
    values = [0, 1, 8, 0x41, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, len(data), int(rng.integers(2**32))]
    value = int(values[rng.integers(len(values))]) % 256**size
    data[at + offset : at + offset + size] = value.to_bytes(size, "little")
    if rng.random() < 0.3 and tag == LOCAL:
        data[at + 34 : at + 34] = struct.pack("<2H2Q", 1, 16, 2**40, 2**40)
    return data


def _npy_header(rng, data, others, canary):
    """Shapes, dtypes and orders that the members themselves declare, of the same length as before."""
    places = [i for i in range(len(data) - 6) if data[i : i + 6] == b"\x93NUMPY"]
    at = places[rng.integers(len(places))] + 10
    end = data.index(b"\n", at)
    text = data[at:end].decode("latin-1").rstrip()
    huge = ["(10000000000,)", "(-1,)", "(0,)", "()", "(1" + "0" * 30 + ",)", "(2, 99999999999)", "(" * 30, "((1,),)"]
    dtypes = ["|O", "<U99999999", "<f2", "<c16", ">f8", "|V8", "<M8[ns]", "<i8", "<f4", "|b1", "<f16", "__import__"]
    shape, descr = text[text.index("(") : text.index(")") + 1], text.split("'")[3]
    kind = rng.integers(3)
    if kind == 0:
        text = text.replace(shape, huge[rng.integers(len(huge))])
    elif kind == 1:
        text = text.replace(descr, dtypes[rng.integers(len(dtypes))])
    else:
        text = text.replace("False", "True") if "False" in text else text.replace("True", "False")
    data[at:end] = text.encode().ljust(end - at)[: end - at]
    return data


def _header_value(rng, data, others, canary):
    """Digits and names in the text of the header, of the same length."""
    start = data.index(b'{"format"')
    end = data.index(LOCAL, start)
    digits = [i for i in range(start, end) if 48 <= data[i] <= 57 or 97 <= data[i] <= 122]
    for _ in range(int(rng.integers(1, 4))):
        at = digits[rng.integers(len(digits))]
        data[at] = rng.integers(48, 58) if data[at] < 58 else rng.integers(97, 123)
    return data


def _pickled(rng, data, others, canary):
    """A pickle as the file, around it, or as one of the members."""
    kind = rng.integers(3)
    if kind == 0:
        return pickle.dumps(canary, int(rng.integers(6)))
    if kind == 1:
        return pickle.dumps([canary, bytes(data)]) + data
    header, arrays = opened(bytes(data))
    arrays[list(arrays)[rng.integers(len(arrays))]] = np.array([canary, canary], dtype=object)
    return packed(header, arrays)


DAMAGE = {
    "bits": _flip,
    "bytes": _bytes,
    "cut": _cut,
    "splice": _splice,
    "members": _swapped,
    "fields of the zip": _zip_field,
    "npy headers": _npy_header,
    "header values": _header_value,
    "pickles": _pickled,
}
