"""`.limber` files: a stored zip of `model.json` and `arrays.safetensors`; reading runs no code.

The safetensors layout is written and read here because Blender's Python has no such package. All
sizes that a file declares are checked against the file's own size before anything is allocated.
"""

from __future__ import annotations

import json
import math
import struct
import zipfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from ..errors import UserError
from .files import aside, plain_errors
from .versions import limber_version

VERSION = 1
"""Version of the layout; a reader refuses newer ones."""
SUFFIX = ".limber"
MAX_FILE_BYTES = 8 << 30
MAX_JSON_BYTES = 64 << 20
MAX_DIMENSIONS = 32

AnyArray = NDArray[Any]

_DTYPES = {
    "BOOL": np.dtype(np.bool_),
    "U8": np.dtype("u1"),
    "I8": np.dtype("i1"),
    "I16": np.dtype("<i2"),
    "I32": np.dtype("<i4"),
    "I64": np.dtype("<i8"),
    "F16": np.dtype("<f2"),
    "F32": np.dtype("<f4"),
    "F64": np.dtype("<f8"),
}
_CODES = {dtype: code for code, dtype in _DTYPES.items()}
_MEMBERS = ("model.json", "arrays.safetensors")
_OLDEST = (1980, 1, 1, 0, 0, 0)
# All that zipfile and json raise on bytes that mean nothing to them.
_NONSENSE = (
    zipfile.BadZipFile,
    EOFError,
    IndexError,
    KeyError,
    NotImplementedError,
    OverflowError,
    RuntimeError,
    TypeError,
    ValueError,
    struct.error,
)


@dataclass(frozen=True)
class Content:
    """What a `.limber` file holds."""

    kind: str
    """What the file is: "clips", "checkpoint", or the method whose model it holds."""
    meta: dict[str, Any]
    """Settings and names, as JSON."""
    arrays: dict[str, AnyArray] = field(default_factory=dict)
    """Arrays by name, each writable and of its own."""


class _Damaged(Exception):
    """The bytes do not follow the layout; the text says where."""


def write(path: Path, kind: str, meta: Mapping[str, Any], arrays: Mapping[str, AnyArray]) -> None:
    """Writes aside, then renames; the same content gives the same bytes."""
    model = {
        "format": "limber",
        "version": VERSION,
        "kind": kind,
        "made_by": f"Limber {limber_version()}",
        "meta": dict(meta),
    }
    header, ordered = _pack(arrays)
    with aside(path) as stream, zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED) as archive:
        archive.writestr(_member(_MEMBERS[0]), json.dumps(model, allow_nan=False))
        with archive.open(_member(_MEMBERS[1]), "w", force_zip64=True) as member:
            member.write(header)
            for array in ordered:
                member.write(array.reshape(-1).view(np.uint8).data)


def read(path: Path, kind: str | None = None) -> Content:
    """The content of a file, of the `kind` that is asked for; anything else is a `UserError`."""
    with plain_errors(path, "read"), path.open("rb") as stream:
        size = stream.seek(0, 2)
        if size > MAX_FILE_BYTES:
            raise UserError(f"{path.name} is larger than Limber's files can be; choose another.")
        stream.seek(0)
        if stream.read(4) != b"PK\x03\x04":
            raise UserError(f"{path.name} is not a Limber file; choose one that Limber saved.")
        try:
            content = _read(path, stream, size)
        except _Damaged as error:
            raise UserError(f"{path.name} is damaged ({error}); save or copy it again.") from error
        except _NONSENSE as error:
            raise UserError(f"{path.name} is damaged; save or copy it again.") from error
    if kind is not None and content.kind != kind:
        raise UserError(
            f"{path.name} holds {content.kind!r} and not {kind!r}; choose another file."
        )
    return content


def _read(path: Path, stream: IO[bytes], size: int) -> Content:
    with zipfile.ZipFile(stream) as archive:
        members = {info.filename: info for info in archive.infolist()}
        if "model.json" not in members:
            raise UserError(f"{path.name} is a zip but not a Limber file; choose another.")
        for info in members.values():
            # Stored members cannot unpack to more than the file has, so there are no zip bombs.
            if info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size:
                raise _Damaged("its content is compressed")
            if info.file_size > size:
                raise _Damaged("it declares more than it holds")
        if members["model.json"].file_size > MAX_JSON_BYTES:
            raise _Damaged("its description is too long")
        model = _model(path, archive.read("model.json"))
        if sorted(archive.namelist()) != sorted(_MEMBERS):
            raise _Damaged("it holds files that do not belong there")
        data = np.empty(members["arrays.safetensors"].file_size, np.uint8)
        with archive.open("arrays.safetensors") as member:
            _fill(member, data)
    return Content(model["kind"], model["meta"], _unpack(data))


def _model(path: Path, text: bytes) -> dict[str, Any]:
    model = _strict_json(text)
    if model.get("format") != "limber":
        raise UserError(f"{path.name} is a zip but not a Limber file; choose another.")
    version = model.get("version")
    if not isinstance(version, int) or version < 1:
        raise _Damaged("it has no version")
    if version > VERSION:
        made_by = str(model.get("made_by", "a newer Limber"))[:60]
        raise UserError(f"{path.name} was made by {made_by}; update Limber to open it.")
    if not isinstance(model.get("kind"), str) or not isinstance(model.get("meta"), dict):
        raise _Damaged("its description is incomplete")
    return model


def _strict_json(text: bytes) -> dict[str, Any]:
    """One object without repeated keys or numbers that are not numbers."""

    def unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        if len(dict(pairs)) != len(pairs):
            raise _Damaged("a name occurs twice")
        return dict(pairs)

    def refuse(constant: str) -> None:
        raise _Damaged(f"{constant} is no number")

    data = json.loads(text.decode(), object_pairs_hook=unique, parse_constant=refuse)
    if not isinstance(data, dict):
        raise _Damaged("its description is not an object")
    return data


def _member(name: str) -> zipfile.ZipInfo:
    return zipfile.ZipInfo(name, _OLDEST)


def _pack(arrays: Mapping[str, AnyArray]) -> tuple[bytes, list[AnyArray]]:
    """The safetensors header, and the arrays in the order of their bytes.

    Wide types come first, so that each array is aligned to its own width.
    """
    header: dict[str, Any] = {}
    ordered = []
    offset = 0
    for name in sorted(arrays, key=lambda name: (-arrays[name].dtype.itemsize, name)):
        array = np.asarray(arrays[name])
        dtype = array.dtype.newbyteorder("<")
        if dtype not in _CODES:
            raise TypeError(f"arrays of {array.dtype} do not fit into a .limber file: {name!r}")
        header[name] = {
            "dtype": _CODES[dtype],
            "shape": list(array.shape),
            "data_offsets": [offset, offset + array.nbytes],
        }
        offset += array.nbytes
        ordered.append(np.ascontiguousarray(array, dtype))
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text, ordered


def _unpack(data: NDArray[np.uint8]) -> dict[str, AnyArray]:
    if len(data) < 8:
        raise _Damaged("its arrays are cut off")
    (length,) = struct.unpack("<Q", data[:8].tobytes())
    if length > min(len(data) - 8, MAX_JSON_BYTES):
        raise _Damaged("its arrays have no header")
    header = _strict_json(data[8 : 8 + length].tobytes())
    body = data[8 + length :]
    return dict(_views(header, body))


def _views(header: dict[str, Any], body: NDArray[np.uint8]) -> Iterator[tuple[str, AnyArray]]:
    """The arrays, whose bytes must follow one another without gap or overlap to the very end."""
    header.pop("__metadata__", None)
    end = 0
    for name, entry in sorted(header.items(), key=lambda pair: pair[1]["data_offsets"]):
        dtype = _DTYPES[entry["dtype"]]
        shape, (start, stop) = entry["shape"], entry["data_offsets"]
        if not all(type(number) is int and number >= 0 for number in (*shape, start, stop)):
            raise _Damaged(f"the size of {name[:60]!r} is no number")
        if len(shape) > MAX_DIMENSIONS or stop - start != math.prod(shape) * dtype.itemsize:
            raise _Damaged(f"the size of {name[:60]!r} is wrong")
        if start != end or stop > len(body):
            raise _Damaged(f"{name[:60]!r} is not where it should be")
        end = stop
        # A copy of its own is aligned, writable and does not keep the whole file in memory.
        raw = body[start:stop].copy()
        array = raw != 0 if dtype == np.bool_ else raw.view(dtype).astype(dtype.newbyteorder("="))
        yield name, array.reshape(shape)
    if end != len(body):
        raise _Damaged("it holds bytes that belong to no array")


def _fill(stream: IO[bytes], buffer: NDArray[np.uint8]) -> None:
    done = 0
    while done < len(buffer):
        chunk = stream.read(min(len(buffer) - done, 1 << 24))
        if not chunk:
            raise _Damaged("it is cut off")
        buffer[done : done + len(chunk)] = np.frombuffer(chunk, np.uint8)
        done += len(chunk)
    if stream.read(1):
        raise _Damaged("it is longer than it says")
