"""Pictures of what was learned."""

from __future__ import annotations

import json
import struct
import zlib
from pathlib import Path

import numpy as np
import pytest
import torch

from backend.errors import UserError
from backend.motion.clip import Clip
from backend.motion.rotations import Array
from backend.painting import Canvas, Chart, isolines, png, ticks
from backend.runtime import clip_files, job_folder, jobs
from backend.runtime.cli import main
from backend.vae import figures
from backend.vae.figures import Start, expert_weights, paint_value, paint_walks, value_starts
from backend.vae.model import MotionVae
from backend.vae.policy import Actor, Policy, fingerprint

RED = (1.0, 0.0, 0.0)


def read_png(data: bytes) -> Array:
    """`(height, width, 3)` bytes of a PNG without filters, checking every chunk's sum."""
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    place, parts = 8, {}
    while place < len(data):
        (size,) = struct.unpack(">I", data[place : place + 4])
        name, body = data[place + 4 : place + 8], data[place + 8 : place + 8 + size]
        (check,) = struct.unpack(">I", data[place + 8 + size : place + 12 + size])
        assert check == zlib.crc32(name + body)
        parts[name], place = body, place + 12 + size
    width, height, depth, kind = struct.unpack(">IIBB", parts[b"IHDR"][:10])
    assert (depth, kind) == (8, 2)
    rows = np.frombuffer(zlib.decompress(parts[b"IDAT"]), np.uint8).reshape(height, 1 + 3 * width)
    assert not rows[:, 0].any()
    return rows[:, 1:].reshape(height, width, 3)


def test_a_png_has_the_colours_that_were_painted() -> None:
    colours = np.random.default_rng(0).random((5, 7, 3))
    np.testing.assert_array_equal(read_png(png(colours)), np.round(255 * colours))


def test_a_line_covers_its_length_times_its_width() -> None:
    canvas = Canvas(60, 60, (0.0, 0.0, 0.0))
    canvas.line(np.array([[10.0, 12.0], [50.0, 42.0]]), RED, 3.0)
    # 50 pixels long, with a round end of half its width on both sides.
    assert canvas.pixels[..., 0].sum() == pytest.approx(50 * 3 + np.pi * 1.5**2, rel=0.03)
    assert not canvas.pixels[..., 1:].any()
    # One and the same line twice over is not darker, and what is outside is cut off.
    canvas.line(np.array([[-100.0, 5.5], [500.0, 5.5], [-100.0, 5.5]]), RED, 1.0, 0.5)
    assert canvas.pixels[5, 30, 0] == pytest.approx(0.5, abs=1e-6)


def test_charts_put_places_where_their_axes_say() -> None:
    chart = Chart(Canvas(120, 120), (10, 10, 110, 110), (-2.0, 0.0), (2.0, 8.0))
    np.testing.assert_allclose(chart.at(np.array([[-2.0, 0.0], [0.0, 8.0]])), [[10, 110], [60, 10]])
    assert ticks(-5.0, 5.0) == pytest.approx([-4, -2, 0, 2, 4])
    assert ticks(0.0, 0.3) == pytest.approx([0.0, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3])


def test_isolines_are_circles_where_the_field_is_a_cone() -> None:
    y, x = np.mgrid[-50:51, -50:51]
    cover = isolines(np.hypot(x, y), np.array([30.0]))
    on = np.hypot(x, y)[cover > 0.5]
    assert abs(on - 30.0).max() < 1.0
    assert cover.sum() == pytest.approx(2 * np.pi * 30 * 1.4, rel=0.15)


def test_values_are_where_their_targets_are(tiny: MotionVae) -> None:
    def values(conditions: torch.Tensor, targets: torch.Tensor) -> torch.Tensor:
        assert conditions.shape == (len(targets), tiny.shape.condition)
        return -(targets - torch.tensor([3.0, 1.0])).norm(dim=1)

    starts = [Start("here", 0)]
    canvas, report = paint_value(tiny, values, starts)
    assert report["best_targets"][0] == pytest.approx([3.0, 1.0], abs=0.1)
    bright = canvas.pixels[36 : 36 + figures.PANEL, figures.MARGIN :][:, : figures.PANEL].sum(-1)
    bright[140:190, 140:190] = 0.0  # the character itself
    row, column = np.unravel_index(bright.argmax(), bright.shape)
    # 3 m ahead is above the middle, 1 m to the left is left of it.
    pixel = 10.0 / figures.PANEL
    assert 5.0 - row * pixel == pytest.approx(3.0, abs=0.4)
    assert column * pixel - 5.0 == pytest.approx(-1.0, abs=0.4)


def test_starts_are_those_that_stand_walk_and_turn(tiny: MotionVae) -> None:
    still, walks, left, right = value_starts(tiny)
    speeds = np.linalg.norm(tiny.starts[:, -1, :2], axis=1)
    turns = tiny.starts[:, -1, 2]
    assert speeds[still.row] < np.median(speeds)
    assert abs(turns[walks.row]) < 0.5
    assert turns[left.row] > 0 > turns[right.row]


def test_walks_are_painted_over_the_data(tiny: MotionVae, walk: Clip, run: Clip) -> None:
    rng = np.random.default_rng(0)
    canvas, report = paint_walks(tiny, [0, 3], [walk, run], rng)
    assert report["with_data"] == 2
    blue = np.abs(canvas.pixels - figures.OWN).max(axis=-1) < 0.02
    assert blue.sum() > 5
    alone, report = paint_walks(tiny, [0, 3], [], rng)
    assert report["with_data"] == 0
    assert not (np.abs(alone.pixels - figures.OWN).max(axis=-1) < 0.02).any()


def test_expert_weights_sum_to_one(tiny: MotionVae) -> None:
    gates = expert_weights(tiny, 0, 12, np.random.default_rng(0))
    assert gates.shape == (12, tiny.shape.experts)
    np.testing.assert_allclose(gates.sum(axis=1), 1.0, atol=1e-6)


def test_as_jobs_and_from_the_command_line(
    tiny: MotionVae, walk: Clip, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model, policy, other = (tmp_path / name for name in ("m.limber", "p.limber", "o.limber"))
    tiny.save(model)
    actor = Actor(tiny.shape.condition + _target_width(), tiny.shape.latents)
    Policy("target", actor, fingerprint(tiny)).save(policy)
    Policy("joystick", actor, fingerprint(tiny)).save(other)
    for figure in figures.FIGURES:
        settings = {"model": str(model), "policy": str(policy), "figure": figure}
        spec = job_folder.Spec("vae_figure", settings)
        folder = job_folder.create_at(tmp_path / figure, spec, [walk])
        assert jobs.run(folder).state == "done", (folder / "log.txt").read_text()
        report = json.loads((folder / "report.json").read_text())
        pixels = read_png((folder / "figure.png").read_bytes())
        assert pixels.shape[:2] == (report["height"], report["width"])
        assert len(np.unique(pixels.reshape(-1, 3), axis=0)) > 20
    for wrong, words in (
        ({"figure": "value"}, "choose a Target policy"),
        ({"figure": "value", "policy": str(other)}, "policy for 'joystick'"),
        ({"figure": "pie"}, "no figure 'pie'"),
        ({"figure": "walks", "start": {"label": "Swim"}}, "no clip called 'Swim'"),
    ):
        spec = job_folder.Spec("vae_figure", {"model": str(model), **wrong})
        status = jobs.run(job_folder.create(tmp_path / "wrong", spec))
        assert status.state == "failed"
        assert words in status.sentence
    clips, out = tmp_path / "clips.limber", tmp_path / "walks.png"
    clip_files.save_clips(clips, [walk])
    assert main(["vae", "figure", str(model), str(clips), "--out", str(out), "--frame", "4"]) == 0
    assert "pixels" in capsys.readouterr().out
    assert read_png(out.read_bytes()).any()


def test_a_policy_of_another_model_gives_a_sentence(tiny: MotionVae, tmp_path: Path) -> None:
    actor = Actor(tiny.shape.condition + _target_width(), tiny.shape.latents)
    with pytest.raises(UserError, match="another Motion VAE"):
        Policy("target", actor, "0").check(tiny)


def _target_width() -> int:
    from backend.tasks.target import features

    return int(features(torch.zeros(1, 2)).shape[1])
