"""The latent map and the live session's requests."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from backend.errors import UserError
from backend.motion.clip import Clip
from backend.motion.rotations import angle_between
from backend.runtime.messages import Message
from backend.runtime.session import HANDLERS, Request, Session
from backend.style import session as live
from backend.style.latent_map import LatentMap
from backend.style.model import StyleModel
from backend.style.solver import Solver

from .people import ends


def ask(session: Session, name: str, values: dict, arrays: dict | None = None) -> Message:
    module, _, function = HANDLERS[name].partition(":")
    assert module == ".style.session"
    request = Request(1, name, "", values, arrays or {}, {})
    return getattr(live, function)(session, request)


@pytest.fixture
def opened(walk_style: StyleModel, punch_style: StyleModel, tmp_path: Path) -> Session:
    paths = []
    for name, model in (("walk", walk_style), ("punch", punch_style)):
        paths.append(str(tmp_path / f"{name}.limber"))
        model.save(Path(paths[-1]))
    session = Session()
    skeleton = walk_style.skeleton.to_json()
    reply = ask(session, "style.open", {"name": "A", "styles": paths, "skeleton": skeleton})
    assert [style["labels"] for style in reply.values["styles"]] == [["walk"], ["punch"]]
    return session


def test_a_session_poses_as_the_solver_does(
    opened: Session, walk: Clip, walk_style: StyleModel
) -> None:
    handles = ends(walk, 9)
    values = {"name": "A", "handles": [h.to_json() for h in handles], "blend": [1.0, 0.0]}
    reply = ask(opened, "style.solve", {**values, "fresh": True})
    alone = Solver(walk_style).solve(handles, fresh=True)
    assert angle_between(reply.arrays["rotations"], alone.rotations).max() < np.radians(2.0)
    assert max(reply.values["misses"]) < 0.005
    assert reply.values["sentence"] == ""
    previous = {
        "previous_positions": np.stack([reply.arrays["root_position"]] * 2),
        "previous_rotations": np.stack([reply.arrays["rotations"]] * 2),
    }
    again = ask(opened, "style.solve", values, previous)
    assert np.isfinite(again.arrays["rotations"]).all()


def test_a_session_starts_from_the_character_s_pose(opened: Session, walk: Clip) -> None:
    arrays = {"root_position": walk.root_positions[7], "rotations": walk.rotations[7]}
    ask(opened, "style.start", {"name": "A"}, arrays)
    reply = ask(opened, "style.solve", {"name": "A", "handles": [], "blend": [1.0, 0.0]})
    assert np.linalg.norm(reply.arrays["root_position"] - walk.root_positions[7]) < 0.02


def test_the_pointer_on_the_map_poses_and_keeps_handles(opened: Session, walk: Clip) -> None:
    reply = ask(opened, "style.map", {"name": "A", "style": 0, "size": 40})
    picture, points = reply.arrays["picture"], reply.arrays["points"]
    assert picture.shape == (40, 40)
    assert (picture.min(), picture.max()) == (0.0, 1.0)
    assert ((points > 0) & (points < 1)).all()
    values = {"name": "A", "blend": [1.0, 0.0], "style": 0, "place": points[12].tolist()}
    posed = ask(opened, "style.solve", {**values, "handles": []})
    np.testing.assert_allclose(posed.values["places"][0], points[12], atol=1e-6)
    handles = [h.to_json() for h in ends(walk, 4)[:2]]
    kept = ask(opened, "style.solve", {**values, "handles": handles})
    assert max(kept.values["misses"]) < 1e-3
    np.testing.assert_allclose(kept.values["places"][0], points[12], atol=1e-6)


def test_what_is_not_open_says_so(opened: Session) -> None:
    with pytest.raises(UserError, match="No style is open"):
        ask(opened, "style.solve", {"name": "B", "handles": []})
    ask(opened, "style.close", {"name": "A"})
    with pytest.raises(UserError, match="No style is open"):
        ask(opened, "style.map", {"name": "A"})


def test_training_poses_lie_on_the_likely_part_of_the_map(walk_style: StyleModel) -> None:
    chart = LatentMap(walk_style)
    picture = chart.picture(64)
    places = chart.drop(walk_style.points)
    at = np.clip((places * 64).astype(int), 0, 63)
    corners = picture[[0, 0, -1, -1], [0, -1, 0, -1]]
    assert picture[at[:, 1], at[:, 0]].mean() > corners.mean()


def test_the_map_is_a_sheet_through_the_training_points(walk_style: StyleModel) -> None:
    chart = LatentMap(walk_style)
    places = chart.drop(walk_style.points)
    lifted = chart.lift(places)
    np.testing.assert_allclose(chart.drop(lifted), places, atol=1e-9)
    apart = np.linalg.norm(lifted - walk_style.points, axis=1)
    flat = np.linalg.norm(walk_style.points - walk_style.points.mean(axis=0), axis=1)
    assert apart.mean() < flat.mean()
