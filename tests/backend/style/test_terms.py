"""Every term's gradient by all unknowns against differences of its value."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from backend.motion.rotations import from_axis_angle, normalize
from backend.style.handles import Camera, Handle, Limits, Solid
from backend.style.model import StyleModel
from backend.style.poses import Pose, from_clip
from backend.style.solver import Solver

AT = np.array([0.3, -0.2, 1.1])
CAMERA = Camera(np.array([2.0, -4.0, 1.5]), normalize(np.array([0.7, 0.65, 0.15, 0.2])))
HANDLES = {
    "position": Handle("hand.L", target=AT, offset=np.array([0.0, 0.1, 0.0])),
    "orientation": Handle("foot.R", "orientation", rotation=normalize(np.array([0.5, 1, 0.2, 0]))),
    "aim": Handle("neck", "aim", target=AT, axis=np.array([0.1, -1.0, 0.3])),
    "camera": Handle("hand.R", "camera", target=np.array([0.4, 0.6, 0.0]), camera=CAMERA),
    "relative": Handle("hand.R", "relative", other="hips", target=np.array([0.1, 0.2, 0.1])),
    "plane": Handle(kind="avoid", solid=Solid("plane", np.array([0, 0, 0.5]))),
    "sphere": Handle("hand.L", "avoid", solid=Solid("sphere", AT, size=np.full(3, 3.0))),
    "box": Handle(
        kind="avoid",
        solid=Solid("box", AT, from_axis_angle([1.0, 1, 0], 0.4), np.array([1.0, 1.2, 1.5])),
    ),
    "capsule": Handle("foot.L", "avoid", solid=Solid("capsule", AT, size=np.array([2.0, 0, 0.5]))),
}
LIMITS = Limits(
    ("upper_arm.L", "shin.R"), np.full((2, 3), -0.05), np.array([[0.05] * 3, [0.05, 0.05, np.inf]])
)


def disturbed(solver: Solver) -> None:
    """Moves the solver's state away from where its terms are at rest."""
    rng = np.random.default_rng(7)
    state = solver._state
    solver._state = replace(
        state,
        angles=state.angles + 0.2 * rng.normal(size=len(state.angles)),
        x=[x + 0.3 * rng.normal(size=len(x)) for x in state.x],
    )


def check(solver: Solver, handles: Sequence[Handle], previous: Sequence[Pose] = ()) -> None:
    solver._prepare(handles, previous)
    disturbed(solver)
    total = solver.problem.evaluate(solver._state)
    scale = max(float(np.abs(total.slope).max()), 1.0)
    for unknown in range(len(total.slope)):
        step = np.zeros(len(total.slope))
        step[unknown] = 1e-6
        high = solver.problem.evaluate(solver.problem.moved(solver._state, step)).value
        low = solver.problem.evaluate(solver.problem.moved(solver._state, -step)).value
        assert total.slope[unknown] == pytest.approx((high - low) / 2e-6, abs=2e-4 * scale)
    assert np.linalg.eigvalsh(total.matrix).min() > -1e-6 * np.abs(total.matrix).max()


@pytest.mark.parametrize("name", sorted(HANDLES))
def test_a_handle_s_gradient(walk_style: StyleModel, name: str) -> None:
    check(Solver(walk_style), [HANDLES[name]])


def test_the_gradient_of_joint_limits(walk_style: StyleModel) -> None:
    check(Solver(walk_style, limits=LIMITS), [])


def test_the_style_s_gradient_with_frames_before(walk_style: StyleModel, walk) -> None:
    solver = Solver(walk_style, fps=60.0)
    check(solver, [], [from_clip(walk, 3), from_clip(walk, 2)])
    check(solver, [], [from_clip(walk, 3)])


def test_the_gradient_of_blended_styles(walk_style: StyleModel, punch_style: StyleModel) -> None:
    solver = Solver([walk_style, punch_style])
    solver.blend([0.3, 0.7])
    check(solver, [HANDLES["position"]])


def test_a_style_s_term_is_its_l_ik(walk_style: StyleModel, walk) -> None:
    solver = Solver(walk_style)
    solver.start(from_clip(walk, 4))
    solver._prepare([], [])
    total = solver.problem.evaluate(solver._state)
    pose = (
        walk_style.features.pose(walk.rotations[4:5])
        - walk_style.mean[: solver.problem.styles[0].width]
    )
    value, _, _ = walk_style.predictor(2, False).l_ik(solver._state.x[0][None], pose)
    assert total.styles[0] == pytest.approx(value[0], rel=1e-6)
