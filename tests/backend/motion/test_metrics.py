"""The figures of motions for which they are known on paper."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from backend.errors import UserError
from backend.motion import bvh, metrics
from backend.motion import rotations as r
from backend.motion.clip import Clip
from backend.motion.feet import PENETRATION_LIMIT, SKATE_HEIGHT, SLIDE_LIMIT, Feet, foot_skate
from backend.motion.flaws import Flaw
from backend.motion.kinematics import pose
from backend.motion.skeleton import Skeleton

from .conftest import BIPED, WALKER, Walk, build, placed

RATES = (24.0, 30.0, 60.0, 120.0)


def kinds(clip: Clip, **settings: float) -> list[str]:
    return [flaw.kind for flaw in metrics.measure(clip, **settings).flaws]


def only(clip: Clip, kind: str, **settings: float) -> Flaw:
    """The one flaw of this kind."""
    (flaw,) = (f for f in metrics.measure(clip, **settings).flaws if f.kind == kind)
    return flaw


def carried(skeleton: Skeleton, path: np.ndarray, fps: float = 30.0) -> Clip:
    """The whole body at rest, moved along a path `(frames, 3)`."""
    return placed(skeleton, skeleton.rest_heads + path[:, None], fps)


def line(seconds: float, fps: float, velocity: tuple[float, float, float]) -> np.ndarray:
    return np.arange(round(seconds * fps) + 1)[:, None] / fps * np.array(velocity)


@pytest.fixture
def walker() -> Skeleton:
    return build(WALKER)


# Foot skate, Motion VAE paper, §7.1: s = d (2 - 2^(h/H)) with H = 3.3 cm.


@pytest.mark.parametrize(
    ("height", "part"),
    [
        (0.0, 1.0),  # on the ground all of it counts
        (0.033, 0.0),  # from H up nothing does
        (0.1, 0.0),
        (0.0165, 2.0 - np.sqrt(2.0)),  # at half of H
        (0.033 * np.log2(1.5), 0.5),
        (-0.02, 1.0),  # below the ground no more than all
    ],
)
def test_skate_formula(height: float, part: float) -> None:
    assert SKATE_HEIGHT == 0.033
    assert foot_skate(np.array(2.5), np.array(height)) == pytest.approx(2.5 * part, abs=1e-12)


@pytest.mark.parametrize("fps", RATES)
@pytest.mark.parametrize("height", [0.0, 0.01, 0.02, 0.03, 0.05])
def test_a_body_that_glides_at_a_constant_height(
    walker: Skeleton, fps: float, height: float
) -> None:
    """0.6 m/s is 2 cm per frame at 30 frames per second, whatever the clip's own rate."""
    clip = carried(walker, line(2.0, fps, (0.0, -0.6, 0.0)) + np.array([0, 0, height]), fps)
    expected = 2.0 * max(2.0 - 2.0 ** (height / 0.033), 0.0)
    found = metrics.measure(clip, ground=0.0)
    assert found.foot_skate == pytest.approx(expected)
    assert found.foot_skate_worst == pytest.approx(expected)


def test_skate_is_the_mean_over_frames_and_feet(walker: Skeleton) -> None:
    """One foot stands; the other glides for half of the time."""
    path = np.tile(walker.rest_heads, (21, 1, 1))
    path[10:, 1, 0] += 0.01 * np.arange(11)
    found = metrics.measure(placed(walker, path), ground=0.0)
    assert found.foot_skate == pytest.approx(1.0 / 4.0)
    assert found.foot_skate_worst == pytest.approx(1.0)


def test_skate_takes_the_higher_of_two_heights_of_the_lowest_point(biped: Skeleton) -> None:
    """Any poses, against the formula written out for each frame and foot."""
    rng = np.random.default_rng(8)
    path = biped.rest_heads + np.cumsum(rng.normal(scale=0.004, size=(40, 15, 3)), axis=0)
    clip = placed(biped, path)
    total = []
    for frame in range(39):
        for side in "LR":
            best = (np.inf, 0.0)
            for name, tail, standing in (("foot", 0, 0.08), ("toe", 0, 0), ("toe", 1, 0)):
                joint = biped.index(f"{name}.{side}")
                rest = biped.rest_tails[joint] - biped.rest_heads[joint]
                a, b = path[frame : frame + 2, joint] + tail * rest
                h = max(a[2], b[2]) - standing
                best = min(best, (h, 100 * np.hypot(*(b - a)[:2])))
            h, d = best
            total.append(d * (2 - 2 ** min(max(h / 0.033, 0), 1)))
    assert metrics.measure(clip, ground=0.0).foot_skate == pytest.approx(np.mean(total))


@pytest.mark.parametrize("size", [0.2, 8.0])
def test_much_smaller_and_larger_bodies_scale_the_height_and_the_limit(size: float) -> None:
    """Twice the size has twice the H, and twice the skate is twice as far for it."""
    found = []
    for scale in (size, 2 * size):
        skeleton = Walk(scale=scale / 1.8).skeleton
        path = scale * (line(1.0, 30, (0.0, -0.5, 0.0)) + np.array([0, 0, 0.004]))
        clip = carried(skeleton, path)
        mean = metrics.measure(clip, ground=0.0).foot_skate
        found.append((mean, only(clip, "skate", ground=0.0).severity))
    assert found[1][0] == pytest.approx(2 * found[0][0])
    assert found[1][1] == pytest.approx(found[0][1])


# Slides and penetration.


def test_how_far_a_standing_foot_slides(walker: Skeleton) -> None:
    """8 cm in 2 s, slow enough to stand."""
    path = np.tile(walker.rest_heads, (61, 1, 1))
    path[:, 2, 0] += np.linspace(0.0, 0.08, 61)
    clip = placed(walker, path)
    slide = only(clip, "slide")
    assert slide.joint == "foot.R"
    assert slide.amount == pytest.approx(8.0)
    assert slide.severity == pytest.approx(0.08 / (SLIDE_LIMIT * 1.8))
    assert metrics.measure(clip).slide_worst == pytest.approx(8.0)
    assert "right foot slides 8.0 cm" in slide.sentence()


def test_a_foot_that_rolls_from_heel_to_toe_does_not_slide(biped: Skeleton) -> None:
    """Each point moves while the other stands: as far in all, but never the one that stands."""
    path = np.tile(biped.rest_heads, (61, 1, 1))
    ankle, toe = biped.index("foot.L"), biped.index("toe.L")
    early, late = np.linspace(0, 1, 31) * 0.06, np.full(30, 0.06)
    path[:, toe, 0] += np.concatenate([early, late])
    path[:, ankle, 0] += np.concatenate([np.zeros(30), early])
    assert "slide" not in kinds(placed(biped, path))


@pytest.mark.parametrize("fps", RATES)
def test_a_foot_that_dips(walker: Skeleton, fps: float) -> None:
    path = np.tile(walker.rest_heads, (41, 1, 1))
    path[10:13, 1, 2] -= 0.05
    clip = placed(walker, path, fps)
    found = metrics.measure(clip)
    assert found.ground == pytest.approx(0.0, abs=1e-12)
    assert found.penetration_worst == pytest.approx(50.0)
    assert found.penetration_frames == 3
    dip = only(clip, "penetration")
    assert (dip.joint, dip.start, dip.stop) == ("foot.L", 10, 12)
    assert dip.severity == pytest.approx(0.05 / (PENETRATION_LIMIT * 1.8))
    assert dip.sentence(first_frame=1) == (
        "The left foot sinks 50 mm below the ground at frames 11–13."
    )


def test_the_ground_can_be_given(walker: Skeleton) -> None:
    clip = carried(walker, np.zeros((10, 3)))
    found = metrics.measure(clip, ground=0.1)
    assert found.ground == 0.1
    assert found.penetration_worst == pytest.approx(100.0)
    assert metrics.measure(clip, ground=-0.5).standing == 0.0


# Jerk.


@pytest.mark.parametrize("fps", RATES)
def test_jerk_of_a_cubic_is_six(walker: Skeleton, fps: float) -> None:
    """x = t³ m has the third derivative 6 m/s³; third differences of a cubic are exact."""
    times = np.arange(round(1.5 * fps)) / fps
    found = metrics.measure(carried(walker, times[:, None] ** 3 * np.array([0, 1.0, 0]), fps))
    assert found.jerk_mean == pytest.approx(6.0)
    assert found.jerk_worst == pytest.approx(6.0)
    assert list(found.jerk_by_joint) == ["hips", "foot.L", "foot.R"]
    assert list(found.jerk_by_joint.values()) == pytest.approx([6.0] * 3)


def test_jerk_of_a_steady_turn() -> None:
    """At a radius of 1 m and 2 rad/s it is r ω³ = 8 m/s³."""
    arm = build([("hub", "", (0, 0, 0), (1, 0, 0)), ("tip", "hub", (1, 0, 0), (1.1, 0, 0))])
    turns = np.tile(r.IDENTITY, (240, 2, 1))
    turns[:, 0] = r.about_z(2.0 * np.arange(240) / 120)
    found = metrics.measure(Clip(arm, 120.0, np.zeros((240, 3)), turns))
    assert found.jerk_by_joint["hub"] == pytest.approx(0.0, abs=1e-6)
    assert found.jerk_by_joint["tip"] == pytest.approx(8.0, rel=1e-3)


def test_a_snap_is_found_where_it_is(biped: Skeleton) -> None:
    """A step of 0.5 m in one frame is a third difference of 2 · 0.5 m at most: 27,000 m/s³."""
    path = np.tile(biped.rest_heads, (40, 1, 1))
    path[20:, biped.index("hand.R"), 0] -= 0.5
    clip = placed(biped, path)
    assert metrics.measure(clip).jerk_worst == pytest.approx(2 * 0.5 * 30**3)
    snap = only(clip, "jerk")
    assert snap.joint == "hand.R"
    assert snap.start <= 20 <= snap.stop
    assert snap.stop - snap.start <= 3
    assert snap.severity == pytest.approx(27_000 / metrics.JERK_LIMIT)


# Speeds, jumps, flips.


@pytest.mark.parametrize("fps", RATES)
def test_a_joint_that_spins(biped: Skeleton, still: Callable[..., Clip], fps: float) -> None:
    """A hand at 50 rad/s for half a second, 10 above the limit."""
    clip = still(biped, round(2 * fps) + 1, fps)
    times = np.arange(clip.frames) / fps
    rotations = clip.rotations.copy()
    hand = biped.index("hand.L")
    rotations[:, hand] = r.from_axis_angle([1.0, 0, 0], 50.0 * np.clip(times - 0.5, 0, 0.5))
    found = metrics.measure(replace(clip, rotations=rotations))
    assert found.joint_speed_worst == pytest.approx(50.0)
    assert found.joint_speed_excess == pytest.approx(50.0 - metrics.SPEED_LIMIT)
    (spin,) = (flaw for flaw in found.flaws if flaw.kind == "speed")
    assert spin.joint == "hand.L"
    assert spin.start / fps == pytest.approx(0.5, abs=1.01 / fps)
    assert spin.stop / fps == pytest.approx(1.0, abs=1.01 / fps)
    assert found.jumps == 0


def test_a_body_that_teleports(walker: Skeleton) -> None:
    """A steady walk with a jump sideways."""
    path = line(2.0, 30, (0.0, -1.2, 0.0))
    path[31:, 0] += 0.5
    jump = only(carried(walker, path), "jump")
    assert (jump.start, jump.stop) == (31, 31)
    assert jump.amount == pytest.approx(50.0, rel=0.01)
    assert metrics.measure(carried(walker, path)).jumps == 1


def test_a_body_that_is_gone_for_one_frame(walker: Skeleton) -> None:
    path = line(2.0, 30, (0.0, -1.2, 0.0))
    path[31, 2] += 0.5
    clip = carried(walker, path)
    jump = only(clip, "jump")
    assert (jump.start, jump.stop) == (31, 32)
    assert jump.amount == pytest.approx(50.0, rel=0.01)
    assert metrics.measure(clip).jumps == 1


@pytest.mark.parametrize("speed", [0.5, 3.0, 12.0])
def test_speed_alone_is_no_jump(walker: Skeleton, speed: float) -> None:
    """Also not at the first and last frame, and not where the speed grows."""
    steady = carried(walker, line(1.0, 30, (speed, 0, 0)))
    times = np.arange(31)[:, None] / 30
    growing = carried(walker, 0.5 * speed * times**2 * np.array([1.0, 0, 0]))
    assert metrics.measure(steady).jumps == metrics.measure(growing).jumps == 0


@pytest.mark.parametrize("stays", [True, False])
def test_a_joint_that_flips(biped: Skeleton, still: Callable[..., Clip], stays: bool) -> None:
    """By 150°, for good or for one frame, and it is not said to be too fast as well."""
    clip = still(biped, 40)
    rotations, arm = clip.rotations.copy(), biped.index("arm.L")
    end = 40 if stays else 21
    rotations[20:end, arm] = r.from_axis_angle([0.3, 1.0, 0], np.radians(150))
    clip = replace(clip, rotations=rotations)
    flip = only(clip, "flip")
    assert flip.joint == "arm.L"
    assert flip.start == 20
    assert flip.amount == pytest.approx(150.0)
    assert "speed" not in kinds(clip)
    assert metrics.measure(clip).jumps == 1


def test_signs_of_quaternions_do_not_matter(biped: Skeleton, still: Callable[..., Clip]) -> None:
    clip = still(biped, 20)
    signs = np.random.default_rng(0).choice([-1.0, 1.0], (20, 15, 1))
    assert kinds(replace(clip, rotations=clip.rotations * signs)) == []


def test_a_stretch_that_is_frozen(walker: Skeleton) -> None:
    """Two seconds of motion with one second, 30 steps, of none between."""
    times = np.concatenate([np.arange(30), np.full(30, 29), np.arange(29, 60)]) / 30
    clip = carried(walker, times[:, None] * np.array([0.0, -1.0, 0]))
    frozen = only(clip, "frozen")
    assert (frozen.start, frozen.stop) == (29, 60)
    assert frozen.amount == pytest.approx(31 / 30)
    assert metrics.measure(clip).frozen_seconds == pytest.approx(31 / 30)
    assert metrics.measure(carried(walker, np.zeros((90, 3)))).frozen_seconds == 0.0


def test_quaternions_that_are_not_of_unit_length(
    biped: Skeleton, still: Callable[..., Clip]
) -> None:
    clip = still(biped, 10)
    rotations = clip.rotations.copy()
    rotations[4:6, 7] *= 1.2
    flaw = only(replace(clip, rotations=rotations), "unit")
    assert (flaw.joint, flaw.start, flaw.stop) == ("thigh.L", 4, 5)
    assert flaw.amount == pytest.approx(1.2)


# The whole.


@pytest.mark.parametrize("fps", RATES)
def test_a_clean_walk_has_no_flaws(fps: float) -> None:
    walk = Walk(fps)
    found = metrics.measure(walk.clip)
    assert found.problems() == []
    assert found.travel == pytest.approx(4.8)
    assert found.speed_mean == pytest.approx(1.2)
    assert found.seconds == pytest.approx(4.0)
    assert found.standing == 1.0
    assert found.foot_skate < 0.3  # what the swing adds as it lands and leaves
    assert found.slide_worst < 0.2
    assert found.penetration_worst < 0.1


def test_worst_frames_are_in_order_of_time(walker: Skeleton) -> None:
    path = line(4.0, 30, (0.0, -1.2, 0.0))
    path[31:, 0] += 0.3
    path[91:, 0] += 0.8
    found = metrics.measure(carried(walker, path))
    assert [flaw.severity for flaw in found.flaws] == sorted(
        (flaw.severity for flaw in found.flaws), reverse=True
    )
    two = found.worst_frames(2)
    assert [frame for frame, _ in two] == sorted(frame for frame, _ in two)
    assert all(89 <= frame <= 93 for frame, _ in two)
    assert len(found.worst_frames(1000)) == len(found.flaws)


def test_every_flaw_has_its_words() -> None:
    for kind in (
        "slide",
        "skate",
        "jerk",
        "penetration",
        "speed",
        "jump",
        "flip",
        "frozen",
        "unit",
    ):
        flaw = Flaw(kind, "Bip01 R Foot", 3, 5, 4, 12.3456, 2.0)
        assert 3 < len(flaw.label()) < 50
        assert flaw.sentence().endswith(".")
        assert "12.3456" not in flaw.sentence() + flaw.label()
    assert (
        "The right foot slides 12.3 cm"
        in Flaw("slide", "Bip01 R Foot", 3, 5, 4, 12.3, 2).sentence()
    )
    assert "front hoof" in Flaw("slide", "front_hoof.L", 3, 5, 4, 12.3, 2).sentence()
    assert "at frame 3." in Flaw("penetration", "tentacle", 3, 3, 3, 12.3, 2).sentence()


def _figures_are_plain(clip: Clip) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = metrics.measure(clip)
    json.dumps(found.to_json(), allow_nan=False)


@pytest.mark.parametrize("frames", [1, 2, 3, 4])
def test_clips_of_few_frames(biped: Skeleton, wild: Callable[..., Clip], frames: int) -> None:
    for translated in (False, True):
        _figures_are_plain(wild(biped, frames, translated=translated))


def test_bodies_without_feet_or_size(wild: Callable[..., Clip]) -> None:
    point = build([("dot", "", (0, 0, 0), (0, 0, 0))])
    snake = build([("a", "", (0, 0, 0), (0, 1, 0)), ("b", "a", (0, 1, 0), (0, 1, 0))])
    for skeleton in (point, snake, replace(point, feet=(0,))):
        _figures_are_plain(wild(skeleton))
    found = metrics.measure(wild(snake))
    assert found.foot_skate is found.standing is found.penetration_worst is None
    assert metrics.measure(wild(snake), ground=0.4).ground == 0.4


def test_nan_never_gets_this_far(biped: Skeleton, still: Callable[..., Clip]) -> None:
    rotations = still(biped, 3).rotations.copy()
    rotations[1, 2, 3] = np.nan
    with pytest.raises(UserError, match="not numbers; delete the damaged keys"):
        replace(still(biped, 3), rotations=rotations)


def test_the_same_motion_anywhere_has_the_same_figures(wild: Callable[..., Clip]) -> None:
    clip = wild(build(BIPED), 30)
    turn, shift = r.about_z(1.1), np.array([3.0, -2.0, 0.7])
    rests = clip.skeleton.local_rests[0]
    rotations = clip.rotations.copy()
    rotations[:, 0] = r.multiply(
        r.conjugate(rests), r.multiply(turn, r.multiply(rests, rotations[:, 0]))
    )
    moved = replace(
        clip, root_positions=r.rotate(turn, clip.root_positions) + shift, rotations=rotations
    )
    one, other = metrics.measure(clip), metrics.measure(moved)
    assert other.ground - one.ground == pytest.approx(0.7)
    for name in ("foot_skate", "jerk_mean", "slide_worst", "penetration_worst", "travel"):
        assert getattr(one, name) == pytest.approx(getattr(other, name))
    assert [flaw.kind for flaw in one.flaws] == [flaw.kind for flaw in other.flaws]


def test_captured_walks_are_good(cmu_files: list[Path]) -> None:
    """Real walking: 103 clips, of which every third is looked at here."""
    index = "".join(path.read_text() for path in {p.parent / "INDEX.tsv" for p in cmu_files})
    about = {row.split("\t")[0]: row.split("\t")[-1].lower() for row in index.splitlines()}
    walks = [path for path in cmu_files if about[path.stem].startswith("walk")][::3]
    assert len(walks) > 30
    found, slides, stances, under, frames = [], 0, 0, 0, 0
    for path in walks:
        clip = bvh.read(path)
        found.append(metrics.measure(clip))
        feet = Feet.of(clip, *pose(clip), None)
        assert feet is not None
        stances += len(feet.slides)
        slides += sum(slide.severity > 1.0 for slide in feet.slides)
        under += feet.frames_under
        frames += clip.frames
    skate = np.array([one.foot_skate for one in found])
    assert 0.1 < np.median(skate) < 0.7
    assert (skate > 1.0).mean() < 0.05
    assert slides / stances < 0.08
    assert under / frames < 0.03
    assert np.median([one.standing for one in found]) > 0.95
    assert sum(flaw.kind == "jump" for one in found for flaw in one.flaws) == 0
