"""Bodies as files for other programs."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import mujoco
import numpy as np
import pytest

from backend.physics.mjcf import Ball, mjcf
from backend.physics.states import place
from backend.physics.urdf import urdf
from backend.runtime import clip_files
from backend.runtime.cli import main

from .bodies import at_rest, human, motion


@pytest.fixture(scope="module")
def clips(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("clips") / "clips.limber"
    clip_files.save_any(path, [motion(name) for name in ("walk", "kick", "spinkick")])
    return path


def written(clips: Path, out: Path) -> Path:
    assert main(["physics", "body", str(clips), "--out", str(out), "--mass", "62"]) == 0
    return out


@pytest.mark.parametrize("form", ["xml", "urdf"])
def test_mujoco_reads_both_formats(clips: Path, tmp_path: Path, form: str) -> None:
    model = mujoco.MjModel.from_xml_path(str(written(clips, tmp_path / f"body.{form}")))
    masses = [link.mass for link in human().links]
    np.testing.assert_allclose(model.body_mass[1:], masses, rtol=1e-6)


def test_pybullet_reads_urdf(clips: Path, tmp_path: Path) -> None:
    """Its reader of MJCF knows no ball joints."""
    pybullet = pytest.importorskip("pybullet")
    out = written(clips, tmp_path / "body.urdf")
    client = pybullet.connect(pybullet.DIRECT)
    try:
        body = pybullet.loadURDF(str(out), physicsClientId=client)
        links = range(-1, pybullet.getNumJoints(body, physicsClientId=client))
        found = [pybullet.getDynamicsInfo(body, n, physicsClientId=client)[0] for n in links]
    finally:
        pybullet.disconnect(client)
    np.testing.assert_allclose(found, [link.mass for link in human().links], rtol=1e-6)


def test_urdf_stands_as_the_body_does(clips: Path, tmp_path: Path) -> None:
    """MuJoCo finds the centres of mass of the URDF where those of the MJCF are."""
    placed = []
    for model in (
        mujoco.MjModel.from_xml_path(str(written(clips, tmp_path / "body.urdf"))),
        mujoco.MjModel.from_xml_string(mjcf([human()])),
    ):
        data = mujoco.MjData(model)
        mujoco.mj_forward(model, data)
        weighs = model.body_mass > 0.0
        placed.append(data.xipos[weighs] - data.xipos[weighs][0])
    np.testing.assert_allclose(placed[0], _turned_like(placed[0], placed[1]), atol=1e-6)
    assert np.ptp(placed[1][:, 2]) > 1.0


def _turned_like(wanted: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Points turned as one onto others: a URDF's first link has axes of its own."""
    left, _, right = np.linalg.svd(points.T @ wanted)
    return np.asarray(points @ left @ right)


def test_the_command_tells_what_it_wrote(
    clips: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "body.xml"
    assert main(["physics", "body", str(clips), "--out", str(out), "--mass", "62", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["kilograms"] == pytest.approx(62.0)
    assert {part["joint"] for part in told["parts"]} == {"free", "ball", "hinge"}
    assert main(["physics", "body", str(clips), "--out", str(tmp_path / "body.obj")]) == 1
    assert "must end in .xml for MJCF or in .urdf" in capsys.readouterr().err


def test_bones_may_be_called_what_formats_keep_for_themselves() -> None:
    body = human()
    first, second, third, *others = body.links
    renamed = (replace(first, name="world"), replace(second, name="floor"))
    body = replace(body, links=(*renamed, replace(third, name="ball0"), *others))
    for text in (mjcf([body]), mjcf([body, body], [Ball()]), urdf(body)):
        model = mujoco.MjModel.from_xml_string(text)
        names = [model.body(n).name for n in range(1, 4)]
        assert all(name.startswith("body.") for name in names)


def test_the_exported_mjcf_is_at_rest_where_the_body_is() -> None:
    body = human()
    model = mujoco.MjModel.from_xml_string(mjcf([body]))
    data = mujoco.MjData(model)
    state = at_rest(body)
    data.qpos[:] = state[0, : body.positions]
    mujoco.mj_forward(model, data)
    np.testing.assert_allclose(data.xpos[1:], place(body, state).joints[0], atol=1e-8)
