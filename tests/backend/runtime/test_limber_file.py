"""`.limber` files: exact round trips, the standard's layout, and a sentence for every bad file."""

from __future__ import annotations

import io
import json
import os
import struct
import zipfile
from pathlib import Path

import numpy as np
import pytest
import safetensors.numpy

from backend.errors import UserError
from backend.runtime import limber_file

ARRAYS = {
    "a": np.arange(6, dtype=np.float32).reshape(2, 3),
    "flags": np.array([True, False, True]),
    "nothing": np.zeros((0, 4)),
    "one": np.array(7, dtype=np.int64),
    "bytes": np.arange(5, dtype=np.uint8),
    "exact": np.array([np.pi, np.nan, -0.0, np.inf]),
    "small": np.array([[1], [2]], dtype=np.int32),
}


def saved(folder: Path) -> Path:
    path = folder / "model.limber"
    limber_file.write(path, "style", {"joints": ["hips"], "scale": 0.1}, ARRAYS)
    return path


def repack(path: Path, *, compression: int = zipfile.ZIP_STORED, **members: bytes) -> Path:
    """The same file with other members, as a careless or hostile program would write it."""
    names = {"model": "model.json", "arrays": "arrays.safetensors", "extra": "extra.py"}
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    content |= {names[name]: data for name, data in members.items()}
    with zipfile.ZipFile(path, "w", compression) as archive:
        for name, data in content.items():
            archive.writestr(name, data)
    return path


def tensors(header: object, body: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return struct.pack("<Q", len(text)) + text + body


def entry(start: int, stop: int, shape: object, dtype: str = "F32") -> dict[str, object]:
    return {"dtype": dtype, "shape": shape, "data_offsets": [start, stop]}


def test_round_trip_keeps_every_bit(tmp_path: Path) -> None:
    content = limber_file.read(saved(tmp_path), "style")
    assert content.meta == {"joints": ["hips"], "scale": 0.1}
    assert content.arrays.keys() == ARRAYS.keys()
    for name, array in ARRAYS.items():
        found = content.arrays[name]
        assert (found.dtype, found.shape) == (array.dtype, array.shape)
        assert found.tobytes() == array.tobytes()
        assert found.flags.writeable and found.flags.aligned


def test_arrays_are_what_the_safetensors_package_reads_and_writes(tmp_path: Path) -> None:
    path = saved(tmp_path)
    with zipfile.ZipFile(path) as archive:
        theirs = safetensors.numpy.load(archive.read("arrays.safetensors"))
    for name, array in ARRAYS.items():
        np.testing.assert_array_equal(theirs[name], array)
    other = {name: array for name, array in ARRAYS.items() if name != "flags"}
    repack(path, arrays=safetensors.numpy.save(other, {"author": "someone"}))
    ours = limber_file.read(path).arrays
    assert ours.keys() == other.keys()
    for name, array in other.items():
        np.testing.assert_array_equal(ours[name], array)


def test_foreign_byte_order_and_strides_are_stored_right(tmp_path: Path) -> None:
    path = tmp_path / "x.limber"
    array = np.arange(12, dtype=">f8").reshape(3, 4).T
    limber_file.write(path, "x", {}, {"array": array})
    np.testing.assert_array_equal(limber_file.read(path).arrays["array"], array)


def test_same_content_gives_same_bytes(tmp_path: Path) -> None:
    first = saved(tmp_path).read_bytes()
    limber_file.write(
        tmp_path / "model.limber",
        "style",
        {"joints": ["hips"], "scale": 0.1},
        dict(reversed(ARRAYS.items())),
    )
    assert (tmp_path / "model.limber").read_bytes() == first


def test_failed_write_leaves_the_old_file_and_nothing_else(tmp_path: Path) -> None:
    before = saved(tmp_path).read_bytes()
    with pytest.raises(TypeError):
        limber_file.write(tmp_path / "model.limber", "x", {}, {"a": np.array(["text"])})
    with pytest.raises(ValueError):
        limber_file.write(tmp_path / "model.limber", "x", {"bad": float("nan")}, {})
    assert [path.name for path in tmp_path.iterdir()] == ["model.limber"]
    assert (tmp_path / "model.limber").read_bytes() == before


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs a process limit of POSIX")
def test_full_disk_is_a_sentence_and_the_old_file_stays(tmp_path: Path) -> None:
    import resource
    import signal

    before = saved(tmp_path).read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    handler = signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
    resource.setrlimit(resource.RLIMIT_FSIZE, (4096, limits[1]))
    try:
        with pytest.raises(UserError, match="disk is full"):
            limber_file.write(tmp_path / "model.limber", "x", {}, {"a": np.zeros(10_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
        signal.signal(signal.SIGXFSZ, handler)
    assert [path.name for path in tmp_path.iterdir()] == ["model.limber"]
    assert (tmp_path / "model.limber").read_bytes() == before


def test_files_that_are_not_ours(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="cannot be read"):
        limber_file.read(tmp_path / "missing.limber")
    with pytest.raises(UserError, match="cannot be read"):
        limber_file.read(tmp_path)
    for content in (b"", b"PK", b"\x80\x04pickle", b"HIERARCHY\n"):
        (tmp_path / "foreign.limber").write_bytes(content)
        with pytest.raises(UserError, match="is not a Limber file"):
            limber_file.read(tmp_path / "foreign.limber")
    with zipfile.ZipFile(tmp_path / "photos.limber", "w") as archive:
        archive.writestr("photo.png", b"x")
    with pytest.raises(UserError, match="a zip but not a Limber file"):
        limber_file.read(tmp_path / "photos.limber")
    repack(saved(tmp_path), model=b'{"format": "other"}')
    with pytest.raises(UserError, match="a zip but not a Limber file"):
        limber_file.read(tmp_path / "model.limber")


def test_wrong_kind_and_newer_version(tmp_path: Path) -> None:
    path = saved(tmp_path)
    with pytest.raises(UserError, match="holds 'style' and not 'clips'"):
        limber_file.read(path, "clips")
    newer = {"format": "limber", "version": 2, "made_by": "Limber 9.1", "kind": "x", "meta": {}}
    repack(path, model=json.dumps(newer).encode())
    with pytest.raises(UserError, match=r"made by Limber 9\.1; update Limber"):
        limber_file.read(path)


def test_compressed_bomb_is_refused_unopened(tmp_path: Path) -> None:
    path = repack(saved(tmp_path), compression=zipfile.ZIP_DEFLATED, arrays=bytes(50 << 20))
    assert path.stat().st_size < 1 << 20
    with pytest.raises(UserError, match="compressed"):
        limber_file.read(path)


def test_oversized_file_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "huge.limber"
    with path.open("wb") as stream:
        stream.truncate(limber_file.MAX_FILE_BYTES + 1)
    with pytest.raises(UserError, match="larger than"):
        limber_file.read(path)


@pytest.mark.parametrize(
    "model",
    [
        b"",
        b"[]",
        b"[" * 100_000,
        b"\xff\xfe",
        b'{"format": "limber", "version": "1", "kind": "x", "meta": {}}',
        b'{"format": "limber", "version": 0, "kind": "x", "meta": {}}',
        b'{"format": "limber", "version": 1, "kind": 3, "meta": {}}',
        b'{"format": "limber", "version": 1, "kind": "x", "meta": []}',
        b'{"format": "limber", "version": 1, "kind": "x", "meta": {"a": NaN}}',
        b'{"format": "limber", "version": 1, "kind": "x", "kind": "y", "meta": {}}',
    ],
)
def test_broken_description(tmp_path: Path, model: bytes) -> None:
    with pytest.raises(UserError, match=r"is damaged|not a Limber file"):
        limber_file.read(repack(saved(tmp_path), model=model))


@pytest.mark.parametrize(
    "arrays",
    [
        b"",
        b"short",
        struct.pack("<Q", 1 << 60) + b"{}",
        tensors(b"[]", b""),
        tensors(b"{}", b"left over"),
        tensors({"a": entry(0, 8, [2])}, bytes(4)),
        tensors({"a": entry(0, 8, [1 << 40])}, bytes(8)),
        tensors({"a": entry(0, 8, [-2])}, bytes(8)),
        tensors({"a": entry(0, 8, [2.0])}, bytes(8)),
        tensors({"a": entry(0, 8, [True, 2])}, bytes(8)),
        tensors({"a": entry(0, 8, "2")}, bytes(8)),
        tensors({"a": entry(0, 8, [1] * 64 + [2])}, bytes(8)),
        tensors({"a": entry(0, 0, [0, 1 << 70])}, b""),
        tensors({"a": entry(8, 0, [2])}, bytes(8)),
        tensors({"a": entry(-8, 0, [2])}, bytes(8)),
        tensors({"a": entry(0, 8, [2], "OBJECT")}, bytes(8)),
        tensors({"a": entry(0, 8, [2], ["F32"])}, bytes(8)),  # type: ignore[arg-type]
        tensors({"a": entry(0, 8, [2]), "b": entry(4, 12, [2])}, bytes(12)),
        tensors({"a": entry(0, 8, [2]), "b": entry(12, 20, [2])}, bytes(20)),
        tensors({"a": None}, b""),
        tensors(b'{"a": 1, "a": 2}', b""),
    ],
)
def test_broken_arrays(tmp_path: Path, arrays: bytes) -> None:
    with pytest.raises(UserError, match="is damaged"):
        limber_file.read(repack(saved(tmp_path), arrays=arrays))


def test_members_that_do_not_belong(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="do not belong"):
        limber_file.read(repack(saved(tmp_path), extra=b"print('hello')"))


def test_any_damage_is_a_sentence_or_harmless(tmp_path: Path) -> None:
    """Flips single bits and cuts the file at many places."""
    whole = saved(tmp_path).read_bytes()
    wanted = limber_file.read(tmp_path / "model.limber")
    rng = np.random.default_rng(5)
    path = tmp_path / "damaged.limber"
    harmless = 0
    for trial in range(1500):
        damaged = bytearray(whole)
        place = int(rng.integers(len(whole)))
        if trial % 5 == 0:
            del damaged[place:]
        elif trial % 5 == 1:
            damaged[place : place + 4] = rng.bytes(4)
        else:
            damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            found = limber_file.read(path)
        except UserError as error:
            assert str(error).endswith(".") and "\n" not in str(error)
            continue
        harmless += 1
        assert (found.kind, found.meta) == (wanted.kind, wanted.meta)
        for name, array in wanted.arrays.items():
            assert found.arrays[name].tobytes() == array.tobytes()
    assert harmless < 600


def test_file_is_a_plain_zip(tmp_path: Path) -> None:
    with zipfile.ZipFile(io.BytesIO(saved(tmp_path).read_bytes())) as archive:
        assert archive.testzip() is None
        model = json.loads(archive.read("model.json"))
    assert (model["format"], model["version"], model["kind"]) == ("limber", 1, "style")
    assert model["made_by"].startswith("Limber ")
