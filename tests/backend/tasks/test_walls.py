"""Meshes become walls, and rays see them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from backend.errors import UserError
from backend.tasks import walls
from backend.tasks.maze import FARTHEST, Maze
from backend.tasks.task import Roots
from backend.tasks.world import World


def test_a_cube_is_cut_into_its_outline() -> None:
    corners = np.array([[x, y, z] for x in (0, 2) for y in (0, 1) for z in (0, 3)], dtype=float)
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    triangles = np.array([t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))])
    cut = walls.slice_mesh(corners, triangles, 1.0)
    assert np.linalg.norm(cut[:, 2:] - cut[:, :2], axis=1).sum() == pytest.approx(6.0)
    assert walls.distances(np.array([5.0, 0.5]), cut) == pytest.approx(3.0)
    assert not len(walls.slice_mesh(corners, triangles, 4.0))


def test_a_corner_in_the_plane_that_cuts_makes_no_wall_of_no_length() -> None:
    corners = np.array([[x, y, z] for x in (0, 2) for y in (0, 1) for z in (0, 0.5)])
    corners[-1, 2] = 0.4  # so that the plane goes through three of the upper four
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    triangles = np.array([t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))])
    cut = walls.slice_mesh(corners, triangles, 0.5)
    assert len(cut) and np.linalg.norm(cut[:, 2:] - cut[:, :2], axis=1).min() > 0.0
    point = [[3.0, 0.0, 3.0, 0.0]]
    world = World.from_json({"walls": walls.boxed(0, 0, 8, 8).tolist() + point})
    assert len(world.walls) == 4
    assert bool(torch.isfinite(Maze(1, world.walls).clearance(torch.zeros(1, 2))).all())


@pytest.mark.parametrize(("width", "depth"), [(3.8, 3.8), (40.0, 8.0), (6.0, 0.9)])
def test_a_maze_of_any_size_begins_between_its_walls(width: float, depth: float) -> None:
    # Turned, so that corners of what is around the walls lie outside of them.
    turn = np.array([[0.8, 0.6], [-0.6, 0.8]])
    room = (walls.boxed(0.0, 0.0, width, depth).reshape(-1, 2) @ turn).reshape(-1, 4)
    task, roots = Maze(200, room), Roots.at_origin(200)
    task.begin(torch.arange(200), roots, np.random.default_rng(0))
    assert walls.inside(roots.places.numpy(), room).all()
    most = min(width, depth) / 2
    assert float(task.clearance(roots.places).min()) > min(2.0, 0.5 * most)


def test_walls_without_room_are_refused_and_loose_ones_are_not() -> None:
    narrow, roots = Maze(1, walls.boxed(0.0, 0.0, 5.0, 0.4)), Roots.at_origin(1)
    # Outside there is room, beyond what the walls take up there is none to look at.
    with pytest.raises(UserError, match="no room between the walls"):
        narrow.begin(torch.arange(1), roots, np.random.default_rng(0))
    loose = Maze(1, np.array([[-5.0, 0.0, 5.0, 0.0], [0.0, 5.0, 0.0, 9.0]]))
    loose.begin(torch.arange(1), roots, np.random.default_rng(0))
    assert float(loose.clearance(roots.places)) >= 2.0


def test_distances_and_crossings() -> None:
    wall = np.array([[0.0, -1.0, 0.0, 1.0]])
    assert walls.distances(np.array([[2.0, 0.0], [0.0, 3.0]]), wall) == pytest.approx([2.0, 2.0])
    assert walls.crossed(np.array([-1.0, 0.0]), np.array([1.0, 0.5]), wall)
    assert not walls.crossed(np.array([-1.0, 2.0]), np.array([1.0, 2.0]), wall)
    assert np.isinf(walls.distances(np.zeros(2), np.zeros((0, 4))))


def test_rays_see_as_far_as_a_wall_is() -> None:
    box = walls.boxed(0.0, 0.0, 10.0, 6.0)
    task, roots = Maze(1, box), Roots.at_origin(1)
    seen = task.rays(roots)[0]
    for angle, far in zip(task.angles.tolist(), seen.tolist()):
        x, y = abs(np.cos(angle)), abs(np.sin(angle))
        assert far == pytest.approx(min(5.0 / max(x, 1e-9), 3.0 / max(y, 1e-9)), rel=1e-4)
    roots.headings += np.pi
    np.testing.assert_allclose(task.rays(roots)[0], seen, rtol=1e-4)
    far_box = Maze(1, walls.boxed(0.0, 0.0, 100.0, 100.0))
    assert float(far_box.rays(roots).min()) == pytest.approx(FARTHEST)


def test_the_maze_ends_at_a_wall_and_pays_for_new_places() -> None:
    task = Maze(2, walls.boxed(0.0, 0.0, 20.0, 20.0))
    roots, rng = Roots.at_origin(2), np.random.default_rng(0)
    task.begin(torch.arange(2), roots, rng)
    assert float(task.clearance(roots.places).min()) >= 2.0
    roots.places[:] = torch.tensor([[0.0, 0.0], [9.9, 0.0]])
    first, hit = task.advance(roots, roots, rng)
    again, _ = task.advance(roots, roots, rng)
    assert hit.tolist() == [False, True]
    assert first[0] > again[0] == 0.0


def test_what_is_inside_a_wall() -> None:
    pillar, room = walls.boxed(3.0, 0.0, 1.0, 1.0), walls.boxed(0.0, 0.0, 4.2, 4.2)
    places = np.array([[3.0, 0.0], [0.0, 0.0], [9.0, 9.0]])
    assert walls.inside(places, pillar).tolist() == [True, False, False]
    # Walls as thick as a brick: between both outlines there is stone, within both there is room.
    thick = np.concatenate([room, walls.boxed(0.0, 0.0, 5.0, 5.0)])
    assert walls.inside(np.array([[0.0, 0.0], [0.0, 2.3]]), thick).tolist() == [False, True]
    # A plane encloses nothing, wherever it ends, and opens no outline that it does not touch.
    plane = np.array([[-1.0, 1.0, 1.0, 1.0]])
    assert not walls.inside(places, plane).any()
    assert walls.inside(places, np.concatenate([pillar, plane])).tolist() == [True, False, False]


def test_worlds_that_cannot_be() -> None:
    box = walls.boxed(3.0, 0.0, 1.0, 1.0).tolist()
    start = np.zeros(2)
    with pytest.raises(UserError, match="target is inside a wall"):
        World.from_json({"target": [3.0, 0.0], "walls": box}).check(start)
    with pytest.raises(UserError, match="target is inside a wall"):
        World.from_json({"target": [-0.9, 0.0], "walls": [[-1, -2, -1, 2]]}).check(start)
    World.from_json({"target": [0.0, 0.0], "walls": box}).check(start)
    # In a small room a target is not in a wall, however near walls are on all sides.
    room = walls.boxed(0.0, 0.0, 3.0, 3.0).tolist()
    World.from_json({"target": [0.5, 0.5], "walls": room}).check(start)
    with pytest.raises(UserError, match="goes through a wall"):
        path = np.array([[0.0, 0.0], [2.0, 0.0], [6.0, 0.0]])
        World.from_json({"walls": box}).check(start, path)
    with pytest.raises(UserError, match="does not fit"):
        World.from_json({"path": {"closed": True}})
    with pytest.raises(UserError, match="not a number"):
        World.from_json({"target": [float("nan"), 0.0]})
