"""What an animator would miss: handles met, no flips, and sentences for what cannot be done."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from backend.errors import UserError
from backend.motion import kinematics
from backend.motion.clip import Clip
from backend.motion.rotations import angle_between, from_axis_angle, multiply, rotate, to_euler
from backend.style.handles import Camera, Handle, Limits, Solid
from backend.style.model import StyleModel
from backend.style.poses import Pose, Solution, from_clip
from backend.style.solver import Solver
from backend.style.training import Settings, train

from .people import ENDS, ends, motion, places


def turns(clip: Clip, pose: Pose) -> np.ndarray:
    """World rotations of all joints in a pose."""
    return kinematics.forward(clip.skeleton, pose.root_position[None], pose.rotations[None])[1][0]


def fine(solution: Solution) -> bool:
    numbers = [solution.root_position, solution.rotations, solution.misses, *solution.latents]
    return all(np.isfinite(values).all() for values in numbers)


def test_five_handles_of_a_known_frame_give_that_frame(walk: Clip, walk_style: StyleModel) -> None:
    solver = Solver(walk_style)
    positions, _ = kinematics.pose(walk)
    for frame in (0, 13, 27):
        solution = solver.solve(ends(walk, frame), fresh=True)
        off = np.linalg.norm(places(walk, solution) - positions[frame], axis=1)
        assert off.mean() < 0.02
        assert solution.misses.max() < 0.005


def test_the_pose_follows_a_walk_that_moves_and_turns_away(
    walk: Clip, walk_style: StyleModel
) -> None:
    turn = from_axis_angle([0, 0, 1.0], 2.0)
    positions = rotate(turn, kinematics.pose(walk)[0]) + [5.0, -3.0, 0.0]
    solver = Solver(walk_style)
    for frame in range(walk.frames):
        targets = positions[frame]
        handles = [Handle(name, target=targets[walk.skeleton.index(name)]) for name in ENDS]
        solution = solver.solve(handles, fresh=frame == 0)
        assert np.linalg.norm(places(walk, solution) - targets, axis=1).mean() < 0.04


def test_hard_handles_are_met_to_a_millimetre_far_from_all_training(
    walk: Clip, walk_style: StyleModel
) -> None:
    solver = Solver(walk_style)
    handles = ends(walk, 5, hard=True)
    handles[0] = replace(handles[0], target=handles[0].target + [0.05, -0.25, 0.35])
    solution = solver.solve(handles)
    assert solution.misses.max() < 1e-3
    assert solution.unmet == ()
    assert solution.sentence(handles) == ""


def test_a_handle_out_of_reach_is_named_and_the_closest_pose_stretches_towards_it(
    walk: Clip, walk_style: StyleModel
) -> None:
    solver = Solver(walk_style)
    handles = ends(walk, 5, hard=True)
    handles[0] = replace(handles[0], target=handles[2].target + [0, -5.0, 1.0], name="Far")
    handles = [handles[0], *[replace(h, hard=True) for h in handles[2:4]]]
    solution = solver.solve(handles)
    assert fine(solution)
    assert "'Far'" in solution.sentence(handles)
    arm = places(walk, solution)[[walk.skeleton.index(n) for n in ("upper_arm.L", "hand.L")]]
    assert np.linalg.norm(arm[1] - arm[0]) > 0.48  # of 0.534 m


def test_contradicting_hard_handles_end_between_their_targets(
    walk: Clip, walk_style: StyleModel
) -> None:
    solver = Solver(walk_style)
    place = ends(walk, 5)[0].target
    pair = [
        Handle("hand.L", target=place + [0, 0, sign * 0.2], hard=True, name=name)
        for sign, name in ((1, "high"), (-1, "low"))
    ]
    handles = [*pair, *ends(walk, 5, hard=True)[2:4]]
    solution = solver.solve(handles)
    assert fine(solution)
    assert set(solution.unmet) == {0, 1}
    np.testing.assert_allclose(solution.misses[:2], 0.2, atol=0.01)
    assert solution.misses[2:].max() < 0.005


def test_a_hard_handle_wins_over_a_soft_one(walk: Clip, walk_style: StyleModel) -> None:
    place = ends(walk, 5)[0].target
    handles = [
        Handle("hand.L", target=place, hard=True),
        Handle("hand.L", target=place + [0.1, 0, 0]),
        *ends(walk, 5)[2:4],
    ]
    solution = Solver(walk_style).solve(handles)
    assert solution.misses[0] < 1e-3
    assert solution.misses[1] == pytest.approx(0.1, abs=0.002)


def test_with_all_handles_off_the_character_stays_in_a_likely_pose(
    walk: Clip, walk_style: StyleModel
) -> None:
    solver = Solver(walk_style)
    solver.start(from_clip(walk, 8))
    handles = [replace(handle, on=False) for handle in ends(walk, 30)]
    solution = solver.solve(handles)
    np.testing.assert_allclose(solution.misses, 0.0)
    assert np.linalg.norm(solution.root_position - walk.root_positions[8]) < 0.01
    apart = places(walk, solution) - kinematics.pose(walk)[0][8]
    assert np.linalg.norm(apart, axis=1).mean() < 0.05
    assert fine(Solver(walk_style).solve([]))


def test_a_handle_that_moves_a_millimetre_flips_no_limb(walk: Clip, walk_style: StyleModel) -> None:
    solver = Solver(walk_style)
    handles = ends(walk, 10)
    start = handles[0].target
    before = solver.solve(handles)
    before = solver.solve(handles)
    angle = 0.0
    # All around a circle of 30 cm, much of it out of reach.
    for step in range(400):
        angle = step / 400 * 2 * np.pi
        goal = start + 0.3 * np.array([0.0, -np.sin(angle), 1 - np.cos(angle)])
        here = handles[0].target
        way = goal - here
        handles[0] = replace(handles[0], target=here + way / max(np.linalg.norm(way) / 1e-3, 1.0))
        after = solver.solve(handles)
        assert angle_between(before.rotations, after.rotations).max() < np.radians(10.0)
        before = after


def test_handles_that_jump_start_afresh_and_drags_do_not(
    walk: Clip, walk_style: StyleModel, monkeypatch: pytest.MonkeyPatch
) -> None:
    solver = Solver(walk_style)
    searches = []
    search = solver._search
    monkeypatch.setattr(solver, "_search", lambda keep: searches.append(keep) or search(keep))
    solver.solve(ends(walk, 0))
    assert len(searches) == 1
    near = [replace(h, target=h.target + [0.02, 0, 0]) for h in ends(walk, 0)]
    solver.solve(near)
    assert len(searches) == 1
    solver.solve([replace(h, target=h.target + [0, 0, 1.0]) for h in near])
    assert len(searches) == 2


def test_orientation_aim_and_relative_handles_are_met(walk: Clip, walk_style: StyleModel) -> None:
    skeleton = walk.skeleton
    wanted = multiply(from_axis_angle([0, 0, 1.0], 0.3), kinematics.pose(walk)[1][6, 5])
    aim_at = np.array([1.0, -3.0, 1.6]) + walk.root_positions[6]
    handles = [
        *ends(walk, 6)[2:4],
        Handle("foot.R", "orientation", rotation=wanted, hard=True),
        Handle("neck", "aim", target=aim_at, axis=np.array([0, -1.0, 0]), hard=True),
        Handle("hand.L", "relative", other="hips", target=np.array([0.2, -0.1, 0.1]), hard=True),
    ]
    solution = Solver(walk_style).solve(handles)
    assert solution.unmet == ()
    world, where = turns(walk, solution), places(walk, solution)
    assert angle_between(world[skeleton.index("foot.R")], wanted) < np.radians(0.5)
    neck = skeleton.index("neck")
    looks = rotate(world[neck], np.array([0, -1.0, 0]))
    towards = (aim_at - where[neck]) / np.linalg.norm(aim_at - where[neck])
    assert np.degrees(np.arccos(np.clip(looks @ towards, -1, 1))) < 0.5
    on_hip = where[0] + rotate(world[0], np.array([0.2, -0.1, 0.1]))
    np.testing.assert_allclose(where[skeleton.index("hand.L")], on_hip, atol=1e-3)


def test_points_seen_in_a_camera_give_a_whole_pose(walk: Clip, walk_style: StyleModel) -> None:
    positions, _ = kinematics.pose(walk)
    side = multiply(
        from_axis_angle([0, 0, 1.0], np.pi / 2), from_axis_angle([1.0, 0, 0], np.pi / 2)
    )
    camera = Camera(positions[20, 0] + [4.0, 0, 0.2], side)
    handles = [
        Handle(name, "camera", np.array([*camera.picture(positions[20, i]), 0.0]), camera=camera)
        for name, i in ((n, walk.skeleton.index(n)) for n in ENDS)
    ]
    solver = Solver(walk_style)
    solution = solver.solve(handles)
    for handle in handles:
        seen = camera.picture(places(walk, solution)[walk.skeleton.index(handle.joint)])
        np.testing.assert_allclose(seen, handle.target[:2], atol=2e-3)
    assert np.linalg.norm(places(walk, solution) - positions[20], axis=1).mean() < 0.15


def test_no_joint_enters_the_ground_or_a_solid(walk: Clip, walk_style: StyleModel) -> None:
    skeleton = walk.skeleton
    handles = ends(walk, 12)
    floor = Handle(kind="avoid", solid=Solid("plane", np.array([0, 0, 0.12])), hard=True)
    hand = handles[0].target
    ball = Handle("hand.L", "avoid", solid=Solid("sphere", hand, size=np.full(3, 0.1)), hard=True)
    solution = Solver(walk_style).solve([*handles, floor, ball])
    where = places(walk, solution)
    tails = where + rotate(turns(walk, solution), skeleton.tail_offsets)
    assert min(where[:, 2].min(), tails[:, 2].min()) > 0.12 - 2e-3
    assert np.linalg.norm(where[skeleton.index("hand.L")] - hand) > 0.1 - 2e-3


def test_joints_keep_to_their_limits(walk: Clip, walk_style: StyleModel) -> None:
    knee = walk.skeleton.index("shin.L")
    handles = ends(walk, 12)
    raised = [
        replace(h, target=h.target + [0, 0, 0.25]) if "foot.L" in h.joint else h for h in handles
    ]
    free = Solver(walk_style).solve(raised)
    bent = to_euler(free.rotations[knee])[0]
    limit = 0.5 * bent
    low, high = np.full((1, 3), -np.inf), np.full((1, 3), np.inf)
    (low if bent < 0 else high)[0, 0] = limit
    held = Solver(walk_style, limits=Limits(("shin.L",), low, high)).solve(raised)
    assert abs(to_euler(held.rotations[knee])[0]) < abs(limit) + np.radians(2.0)


def test_a_motion_of_frames_after_frames_stays_with_its_handles(
    walk: Clip, walk_style: StyleModel
) -> None:
    solver = Solver(walk_style, fps=walk.fps)
    positions, _ = kinematics.pose(walk)
    previous: list[Solution] = []
    for frame in range(walk.frames):
        solution = solver.solve(ends(walk, frame), previous)
        previous = [solution, *previous][:2]
        assert np.linalg.norm(places(walk, solution) - positions[frame], axis=1).mean() < 0.05


def test_styles_blend_monotonically(
    punch: Clip, walk_style: StyleModel, punch_style: StyleModel
) -> None:
    hands = [h for h in ends(punch, 30) if "hand" in h.joint or "foot" in h.joint]
    solver = Solver([walk_style, punch_style])
    found = []
    for part in (0.0, 0.5, 1.0):
        solver.blend([1.0 - part, part])
        found.append(solver.solve(hands, fresh=True).likelihoods)
    walk_likes, punch_likes = np.array(found).T
    assert (np.diff(walk_likes) < 0).all()
    assert (np.diff(punch_likes) > 0).all()


def test_three_styles_of_different_sizes_blend(
    walk_style: StyleModel, punch_style: StyleModel, walk: Clip
) -> None:
    third = train([motion("run")], Settings(latents=2, active=12, rounds=2))
    solver = Solver([walk_style, punch_style, third])
    solver.blend([1, 1, 2])
    solution = solver.solve(ends(walk, 4))
    assert [len(x) for x in solution.latents] == [3, 3, 2]
    assert solution.misses.max() < 0.005
    solver.blend([0, 0, 1])
    alone = solver.solve(ends(walk, 4), fresh=True)
    single = Solver(third).solve(ends(walk, 4))
    assert alone.likelihoods[2] == pytest.approx(single.likelihoods[0], abs=1.0)
    with pytest.raises(UserError, match="blended out"):
        solver.blend([0, 0, 0])


@pytest.mark.parametrize("frames", [1, 2, 40])
def test_a_style_of_one_pose_poses_sensibly(walk: Clip, frames: int) -> None:
    same = replace(
        walk,
        rotations=np.repeat(walk.rotations[5:6], frames, axis=0),
        root_positions=np.repeat(walk.root_positions[5:6], frames, axis=0),
        loop=False,
    )
    model = train([same], Settings(rounds=2))
    handles = ends(walk, 5)
    solution = Solver(model).solve(handles)
    assert np.linalg.norm(places(walk, solution) - kinematics.pose(walk)[0][5], axis=1).max() < 0.01
    handles[0] = replace(handles[0], target=handles[0].target + [0, -0.15, 0.2])
    moved = Solver(model).solve(handles)
    assert fine(moved)
    assert moved.misses.max() < 0.01


def test_bad_handles_give_sentences(walk_style: StyleModel) -> None:
    solver = Solver(walk_style)
    for handle, words in (
        (Handle("tail"), "no joint named 'tail'"),
        (Handle("hand.L", "fly"), "unknown kind"),
        (Handle("hand.L", "camera"), "needs a camera"),
        (Handle("hand.L", "relative"), "second bone"),
        (Handle("hand.L", target=np.array([np.nan, 0, 0])), "nowhere"),
        (Handle(), "has no bone"),
    ):
        with pytest.raises(UserError, match=words):
            solver.solve([handle])
    assert fine(solver.solve([Handle("hand.L", target=np.array([1e6, 0, 0]))]))


def test_a_point_of_the_latent_space_is_kept_while_handles_pull(
    walk: Clip, walk_style: StyleModel
) -> None:
    x = walk_style.points[25]
    solver = Solver(walk_style)
    alone = solver.solve([], latents=[x])
    np.testing.assert_array_equal(alone.latents[0], x)
    f, _ = walk_style.predictor(2, False).many(x[None])
    pose = f[0] + walk_style.mean[: walk_style.features.width]
    found = walk_style.features.pose(alone.rotations[None])[0]
    np.testing.assert_allclose(found, pose, atol=1e-3)
    pulled = solver.solve(ends(walk, 3), latents=[x])
    np.testing.assert_array_equal(pulled.latents[0], x)
    assert pulled.misses.max() < 1e-3


def test_handles_survive_their_json(walk_style: StyleModel) -> None:
    camera = Camera(np.array([1.0, 2, 3]), np.array([1.0, 0, 0, 0]), (0.3, 0.2), (0.1, 0.0))
    handle = Handle("hand.L", "camera", np.array([0.2, 0.3, 0]), camera=camera, hard=True, name="A")
    assert Handle.from_json(handle.to_json()).to_json() == handle.to_json()
    ball = Handle(kind="avoid", solid=Solid("sphere"))
    assert Handle.from_json(ball.to_json()).to_json() == ball.to_json()
    with pytest.raises(UserError, match="3 numbers"):
        Handle.from_json({"joint": "hand.L", "target": [0, 0]})
    np.testing.assert_allclose(
        camera.picture(camera.position + 3 * camera.ray(np.array([0.2, 0.3]))), [0.2, 0.3]
    )


def test_no_handles_whatever_give_nan(walk_style: StyleModel) -> None:
    rng = np.random.default_rng(0)
    solver = Solver(walk_style)
    names = walk_style.skeleton.names
    solids = ("plane", "sphere", "box", "capsule")
    kinds = ("position", "orientation", "aim", "camera", "relative", "avoid")
    previous: list[Solution] = []
    for _ in range(60):
        handles = [
            Handle(
                str(rng.choice(names)),
                str(rng.choice(kinds)),
                rng.normal(size=3) * 10.0 ** rng.uniform(-2, 3),
                rng.normal(size=4),
                other=str(rng.choice(names)),
                camera=Camera(rng.normal(size=3), np.array([1.0, 0, 0, 0])),
                solid=Solid(str(rng.choice(solids)), rng.normal(size=3), size=rng.uniform(size=3)),
                weight=10.0 ** rng.uniform(-3, 2),
                hard=bool(rng.integers(2)),
            )
            for _ in range(rng.integers(0, 6))
        ]
        solution = solver.solve(handles, previous if rng.uniform() < 0.3 else ())
        previous = [solution, *previous][:2]
        assert fine(solution)
        np.testing.assert_allclose(np.linalg.norm(solution.rotations, axis=1), 1.0, atol=1e-6)


def test_what_is_no_number_gives_a_sentence_in_the_midst_of_a_drag(
    walk: Clip, walk_style: StyleModel
) -> None:
    nan, level = np.full(3, np.nan), np.array([1.0, 0, 0, 0])
    camera, ground = Camera(np.array([0, -4.0, 1.0]), level), Solid("plane")
    handles = [
        Handle("hand.L", "camera", np.array([0.5, 0.5, 0]), camera=camera),
        Handle(kind="avoid", solid=ground),
        Handle("neck", "aim", np.array([0, -3.0, 1.5])),
    ]
    solver = Solver(walk_style)
    solver.solve(handles)
    for place, wrong in (
        (0, replace(handles[0], camera=replace(camera, position=nan))),
        (0, replace(handles[0], camera=replace(camera, tangents=(np.nan, 0.2)))),
        (0, replace(handles[0], camera=replace(camera, rotation=np.zeros(4)))),
        (0, replace(handles[0], weight=np.nan)),
        (0, replace(handles[0], weight=-1.0)),
        (1, replace(handles[1], solid=replace(ground, position=nan))),
        (2, replace(handles[2], axis=nan)),
    ):
        with pytest.raises(UserError):
            solver.solve([*handles[:place], wrong, *handles[place + 1 :]])
    assert fine(solver.solve(handles))


def test_poses_that_are_none_give_a_sentence(walk: Clip, walk_style: StyleModel) -> None:
    solver = Solver(walk_style)
    pose = from_clip(walk, 3)
    broken = replace(pose, rotations=np.full_like(pose.rotations, np.nan))
    with pytest.raises(UserError, match="not numbers"):
        solver.start(broken)
    with pytest.raises(UserError, match="not numbers"):
        solver.solve(ends(walk, 3), [broken])
    with pytest.raises(UserError, match="other joints"):
        solver.start(replace(pose, rotations=pose.rotations[:-1]))
    with pytest.raises(UserError, match="above zero"):
        Solver(walk_style, fps=float("nan"))
    assert fine(solver.solve(ends(walk, 3)))


def test_a_handle_switched_off_far_away_leaves_the_body_where_it_is(
    walk: Clip, walk_style: StyleModel
) -> None:
    solver = Solver(walk_style)
    far = [replace(h, target=h.target + [5.0, -3.0, 0]) for h in ends(walk, 8)]
    before = solver.solve(far)
    after = solver.solve([far[0], *(replace(h, on=False) for h in far[1:])])
    assert np.linalg.norm(places(walk, after) - places(walk, before), axis=1).max() < 0.1


def test_a_style_blended_out_still_says_how_likely_the_pose_is(
    walk: Clip, walk_style: StyleModel, punch_style: StyleModel
) -> None:
    solver = Solver([walk_style, punch_style])
    solver.blend([0, 1])
    handles = ends(walk, 4)
    solver.solve(handles, fresh=True)
    # Dragged on, through the walk, while the walk's own style sleeps.
    for frame in (6, 8, 10, 12):
        solution = solver.solve(ends(walk, frame))
    awake = Solver(walk_style)
    awake.start(solution)
    best = -awake.problem.styles[0].cost(
        awake._state.angles, awake._state.matrix[2], awake._state.x[0]
    )
    assert solution.likelihoods[0] > best - 25.0


def test_a_body_of_one_bone_is_posed(walk: Clip) -> None:
    skeleton = replace(
        walk.skeleton,
        names=("crate",),
        parents=(-1,),
        rest_heads=walk.skeleton.rest_heads[:1],
        rest_tails=walk.skeleton.rest_tails[:1],
        rest_rotations=walk.skeleton.rest_rotations[:1],
        mirror=(0,),
        feet=(),
    )
    clip = replace(walk, skeleton=skeleton, rotations=walk.rotations[:, :1])
    solver = Solver(train([clip], Settings(rounds=2)))
    target = np.array([1.0, 2.0, 3.0])
    solution = solver.solve([Handle("crate", target=target, hard=True)])
    np.testing.assert_allclose(solution.root_position, target, atol=1e-3)
    assert fine(solver.solve([Handle("crate", "orientation", rotation=walk.rotations[9, 0])]))


def test_another_frame_rate_than_the_style_s_poses_the_same_motion(
    walk: Clip, walk_style: StyleModel
) -> None:
    slow = walk.resampled(walk.fps / 2)
    solver = Solver(walk_style, fps=slow.fps)
    previous: list[Solution] = []
    positions, _ = kinematics.pose(slow)
    for frame in range(slow.frames):
        solution = solver.solve(ends(slow, frame), previous)
        previous = [solution, *previous][:2]
        assert np.linalg.norm(places(walk, solution) - positions[frame], axis=1).mean() < 0.05
