"""How style-based inverse kinematics does beside its peers, all on one core.

    .venv/bin/python bench/style.py [--only PART …]

Prints a table for each part and, as its last line, JSON. Parts: solve, train, heldout, markers,
blend. GPy is a peer only, which `make bench` puts into .venv/peers;
Blender's own IK runs on the `bpy` wheel in .venv/blender/5.0. A peer that is not there is said to
be missing, and what depends on it is null.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import json
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np

PROJECT = Path(__file__).resolve().parents[1]
PEERS = PROJECT / ".venv" / "peers" / "bin" / "python"
BPY = PROJECT / ".venv" / "blender" / "5.0"
CMU = PROJECT.parent / "shared" / "data" / "cmu"
Array = np.ndarray
ENDS = ("hand.L", "hand.R", "foot.L", "foot.R", "neck")
CMU_ENDS = ("LeftHand", "RightHand", "LeftFoot", "RightFoot", "Head")


# Parts that run in another Python: just numpy and the peer.


def fit_gpy(source: str, target: str) -> None:
    """100 L-BFGS iterations of GPy's GPLVM on the features in a file."""
    import GPy

    data = np.load(source)
    np.random.seed(0)
    model = GPy.models.GPLVM(
        data["y"], int(data["latents"]), kernel=GPy.kern.RBF(int(data["latents"]))
    )
    began = time.process_time()
    model.optimize("lbfgs", max_iters=100, messages=False)
    seconds = time.process_time() - began
    np.savez(
        target,
        seconds=seconds,
        x=np.asarray(model.X),
        variance=float(model.kern.variance[0]),
        lengthscale=float(model.kern.lengthscale[0]),
        noise=float(model.likelihood.variance[0]),
    )


def blender_ik(source: str, target: str) -> None:
    """Blender's own IK constraints on frames in a file: each limb alone, and all of the body."""
    import bpy
    from mathutils import Matrix, Quaternion, Vector

    data = np.load(source)
    names, parents = [str(n) for n in data["names"]], data["parents"]
    heads, tails, rests = data["heads"], data["tails"], data["rests"]
    bpy.ops.wm.read_homefile(use_empty=True)
    rig = bpy.data.objects.new("Rig", bpy.data.armatures.new("Rig"))
    bpy.context.collection.objects.link(rig)
    bpy.context.view_layer.objects.active = rig
    bpy.ops.object.mode_set(mode="EDIT")
    for j, name in enumerate(names):
        bone = rig.data.edit_bones.new(name)
        bone.head, bone.tail = heads[j], tails[j]
        if (bone.tail - bone.head).length < 1e-3:
            bone.tail = bone.head + Vector((0, 0, 0.02))
        if parents[j] >= 0:
            bone.parent = rig.data.edit_bones[names[parents[j]]]
    bpy.ops.object.mode_set(mode="POSE")
    local = [rig.data.bones[name].matrix_local.copy() for name in names]
    empties, constraints = [], []
    for joint in data["ends"]:
        empty = bpy.data.objects.new("Target", None)
        bpy.context.collection.objects.link(empty)
        owner = rig.pose.bones[names[parents[joint]]]
        constraint = owner.constraints.new("IK")
        constraint.target, constraint.iterations = empty, 500
        empties.append(empty)
        constraints.append(constraint)
    found = np.empty((2, len(data["positions"]), len(names), 3))
    for variant, counts in enumerate((data["chains"], np.zeros(len(constraints), int))):
        for constraint, count in zip(constraints, counts):
            constraint.chain_count = int(count)
        for frame, (places, turns) in enumerate(zip(data["positions"], data["turns"])):
            pose: list[Any] = []
            for j, name in enumerate(names):
                spin = Quaternion(turns[j]) @ Quaternion(rests[j]).inverted()
                matrix = spin.to_matrix().to_4x4() @ local[j].to_3x3().to_4x4()
                matrix.translation = Vector(places[j])
                pose.append(matrix)
                above = (
                    Matrix() if parents[j] < 0 else pose[parents[j]] @ local[parents[j]].inverted()
                )
                rig.pose.bones[name].matrix_basis = (above @ local[j]).inverted() @ matrix
            for empty, place in zip(empties, data["targets"][frame]):
                empty.location = place
            bpy.context.view_layer.update()
            posed = rig.evaluated_get(bpy.context.evaluated_depsgraph_get()).pose.bones
            found[variant, frame] = [posed[name].head for name in names]
    np.savez(target, places=found)


if len(sys.argv) == 4 and sys.argv[1] in ("--gpy", "--blender-ik"):
    (fit_gpy if sys.argv[1] == "--gpy" else blender_ik)(sys.argv[2], sys.argv[3])
    sys.stdout.flush()
    os._exit(0)


sys.path.insert(0, str(PROJECT))
import pybullet_data
from scipy.linalg import lapack

from backend.gp.kernel import Kernel
from backend.gp.objective import Predictor
from backend.motion import bvh, deepmimic, kinematics
from backend.motion.clip import Clip
from backend.motion.rotations import about_z, conjugate, multiply, rotate, to_matrix
from backend.motion.skeleton import Skeleton
from backend.style import features, learning
from backend.style.body import Body, small_turn
from backend.style.handles import Handle
from backend.style.markers import Markers, Placing, fill, marker_places
from backend.style.solver import Pose, Solver
from backend.style.terms import HandleTerm, Sum
from backend.style.training import (
    Settings,
    reconstruction_cm,
    train,
)

# Joints at which arms and legs begin.
LIMBS = ("LHipJoint", "RHipJoint", "LeftShoulder", "RightShoulder") + tuple(
    f"{name}.{side}" for name in ("thigh", "upper_arm") for side in "LR"
)
# Ways to drag hands, feet and neck in which a standing body can follow.
DRAGS = np.array(
    [[0.3, -0.8, 0.5], [-0.5, -0.5, 0.7], [0, -0.5, 0.6], [0.2, 0, 0.8], [0, -0.5, -0.8]]
)
MOTIONS = Path(pybullet_data.getDataPath()) / "data" / "motions"


def motion(name: str) -> Clip:
    return deepmimic.read(MOTIONS / f"humanoid3d_{name}.txt")


def with_head_and_toes(clip: Clip) -> Clip:
    """The sample human's 18 bones: head and toes, which the captured motions do not move."""
    old = clip.skeleton
    extra = [("head", "neck", (0, 0, 0.075)), ("toe.L", "foot.L", (0, -0.115, -0.03))]
    extra.append(("toe.R", "foot.R", (0, -0.115, -0.03)))
    at = [old.index(parent) for _, parent, _ in extra]
    heads = old.rest_heads[at] + np.array([offset for *_, offset in extra])
    count = len(old)
    skeleton = replace(
        old,
        names=(*old.names, *(name for name, *_ in extra)),
        parents=(*old.parents, *at),
        rest_heads=np.vstack([old.rest_heads, heads]),
        rest_tails=np.vstack([old.rest_tails, heads + [0, -0.06, 0.06]]),
        rest_rotations=np.vstack([old.rest_rotations, np.tile([1.0, 0, 0, 0], (3, 1))]),
        mirror=(*old.mirror, count, count + 2, count + 1),
    )
    still = np.tile([1.0, 0, 0, 0], (clip.frames, 3, 1))
    return replace(clip, skeleton=skeleton, rotations=np.concatenate([clip.rotations, still], 1))


def places_of(skeleton: Skeleton, pose: Pose) -> Array:
    return kinematics.forward(skeleton, pose.root_position[None], pose.rotations[None])[0][0]


def peer(python: Path, flag: str, arrays: dict[str, Any], path: Path | None = None) -> Any:
    """Runs a part of this file in another Python; None where that is not there."""
    if not python.exists() or (path is not None and not path.exists()):
        return None
    variables = dict(os.environ)
    if path is not None:
        variables["PYTHONPATH"] = str(path)
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "in.npz", Path(folder) / "out.npz"
        np.savez(source, **arrays)
        command = [str(python), str(Path(__file__).resolve()), flag, str(source), str(target)]
        done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
        if not target.exists():
            print(f"{flag} failed: {done.stderr[-500:]}")
            return None
        return dict(np.load(target))


# Posing: how fast, and how near handles are.


def measure_solve() -> dict[str, Any]:
    clips = [with_head_and_toes(motion(name)) for name in ("walk", "run", "punch", "kick")]
    model = train(clips, Settings(latents=3, active=100))
    solver = Solver(model)
    where, _ = kinematics.pose(clips[0])
    joints = [clips[0].skeleton.index(name) for name in ENDS]
    base = where[10, joints]
    rng = np.random.default_rng(0)
    times, busy, misses = [], [], []

    def handles(targets: Array, hard: bool = False) -> list[Handle]:
        return [Handle(name, target=target, hard=hard) for name, target in zip(ENDS, targets)]

    for dragged in range(5):
        solver.solve(handles(base), fresh=True)
        for step in range(200):
            # A mouse's path: up to 20 cm away within reach, some millimetres per event.
            angle = step / 200 * 4 * np.pi
            targets = base.copy()
            reach = 0.1 * (1 - np.cos(angle)) * (0.5 if step < 100 else 1.0)
            targets[dragged] += reach * DRAGS[dragged]
            asked = handles(targets)
            began, worked = time.perf_counter(), time.process_time()
            solution = solver.solve(asked)
            times.append(time.perf_counter() - began)
            busy.append(time.process_time() - worked)
            misses.append(solution.misses.max())
    hard_misses = []
    for _ in range(60):
        # Reachable by construction: the ends of a training pose with every angle disturbed.
        clip = clips[int(rng.integers(len(clips)))]
        frame = int(rng.integers(clip.frames))
        turns = model.features.rotations(
            model.features.angles(clip.rotations[frame : frame + 1])
            + rng.normal(0, 0.15, (1, len(model.features.columns))),
            clip.rotations[frame : frame + 1, 0],
        )
        pose = Pose(clip.root_positions[frame], turns[0])
        targets = places_of(clip.skeleton, pose)[joints]
        hard_misses.append(solver.solve(handles(targets, hard=True), fresh=True).misses.max())
    result = {
        "solve_p50_ms": round(1e3 * float(np.median(times)), 3),
        "solve_p95_ms": round(1e3 * float(np.percentile(times, 95)), 3),
        "hard_handle_mm": round(1e3 * float(np.max(hard_misses)), 4),
        "soft_handle_mm": round(1e3 * float(np.percentile(misses, 95)), 3),
        "soft_handle_worst_mm": round(1e3 * float(np.max(misses)), 3),
    }
    half, most = (1e3 * float(np.percentile(busy, part)) for part in (50, 95))
    print(f"Warm drag, 18 bones, 100 active points, 5 handles: {half:.2f} ms of the core's time")
    print(f"at the median, {most:.2f} ms at 95%; more on the clock where other programs run.")
    result["drag_p95_ms"] = drag_in_blender()
    return result


def drag_in_blender() -> float | None:
    """Through the live session and onto pose bones: measured in Blender by bench/style_drag.py."""
    script = Path(__file__).with_name("style_drag.py")
    if not script.exists() or not BPY.exists():
        print("drag_p95_ms: bench/style_drag.py or the bpy wheel is not there")
        return None
    variables = {**os.environ, "PYTHONPATH": str(BPY)}
    done = subprocess.run(
        [sys.executable, str(script)], env=variables, capture_output=True, text=True, check=False
    )
    try:
        return float(json.loads(done.stdout.strip().splitlines()[-1])["drag_p95_ms"])
    except (IndexError, KeyError, ValueError):
        print(f"drag_p95_ms: {done.stderr[-500:]}")
        return None


# Training: beside GPy, and both algorithms' times.

ALL_MOTIONS = (
    *("walk", "run", "kick", "punch", "spinkick", "jump", "dance_a", "dance_b", "spin"),
    *("cartwheel", "crawl", "getup_faceup", "getup_facedown", "roll", "backflip"),
)


def frames_of(count: int) -> tuple[features.Features, Array, Array]:
    """Features of `count` training frames, with every fifth half-second held out."""
    clips = [motion(name) for name in ALL_MOTIONS]
    found = features.fit(clips, 60.0)
    y = np.concatenate([found.of(clip) for clip in clips])
    held = (np.arange(len(y)) // 30) % 5 == 4
    last = int(np.searchsorted(np.cumsum(~held), count)) + 1
    return found, y[:last][~held[:last]], y[:last][held[:last]]


def measure_train() -> dict[str, Any]:
    print("Seconds of one core, so that other programs on the machine favour neither.")
    print(f"{'frames':>8}{'GPy s':>9}{'GPy cm':>9}{'our s':>9}{'our cm':>9}{'ratio':>8}")
    ratios = []
    for count in (200, 500, 1000):
        found, y, held = frames_of(count)
        mean = y.mean(axis=0)
        centred = y - mean
        spread = centred.std(axis=0)
        moving = spread > 1e-6
        standard = centred[:, moving] / spread[moving]
        theirs = peer(PEERS, "--gpy", {"y": standard, "latents": 3})
        if theirs is None:
            print("GPy is not in .venv/peers; train_ratio is null")
            break
        kernel = Kernel(
            float(theirs["variance"]),
            1.0 / float(theirs["noise"]),
            1.0 / float(theirs["lengthscale"]) ** 2,
        )
        scales = np.where(moving, 1.0 / np.maximum(spread, 1e-6), 1e-6)
        goal = reconstruction_cm(Predictor(theirs["x"], centred, scales, kernel), found, mean, held)
        ours, error = _time_to_reach(found, centred, mean, held, goal)
        ratio = float(theirs["seconds"]) / ours if error <= goal else 0.0
        ratios.append(ratio)
        print(
            f"{len(y):8d}{float(theirs['seconds']):9.2f}{goal:9.2f}{ours:9.3f}{error:9.2f}{ratio:8.1f}"
        )
    result: dict[str, Any] = {"train_ratio": round(min(ratios), 2) if len(ratios) == 3 else None}
    clips = [motion(name) for name in ALL_MOTIONS]
    kept, total = [], 0
    for clip in clips:
        kept.append(clip.cut(0, 500 - total))
        total += kept[-1].frames
        if total >= 500:
            break
    for name, settings in (
        ("train_heuristic_s", Settings(active=100)),
        ("train_full_s", Settings(active=100, algorithm="full")),
    ):
        began = time.perf_counter()
        model = train(kept, settings)
        result[name] = round(time.perf_counter() - began, 2)
        print(f"{name}: {result[name]} s for {total} frames, {model.heldout_cm:.1f} cm held out")
    return result


def _time_to_reach(
    found: features.Features, centred: Array, mean: Array, held: Array, goal: float
) -> tuple[float, float]:
    """Seconds of learning until held-out frames are as near as `goal`, and how near they are."""
    caps = learning.largest_scales(found.width)
    size = max(100, len(centred) // 5)
    seconds, error, state = 0.0, np.inf, None
    for round_ in range(12):
        began = time.process_time()
        if state is None:
            state = learning.start(centred, caps, 3)
        if round_ < 4:
            state = learning.heuristic_step(state, centred, caps, size)
        else:
            state = learning.full_step(state, centred, caps)
        # All frames stay in the model, as all stay in GPy's.
        predictor = Predictor(state.x, centred, state.scales, state.kernel)
        seconds += time.process_time() - began
        error = reconstruction_cm(predictor, found, mean, held)
        if error <= goal:
            break
    return seconds, error


# Held-out frames from hands, feet and head alone.


def pieces(clips: list[Clip], fold: int) -> tuple[list[Clip], list[Clip]]:
    """Clips without every fifth half-second, and these; `fold` says with which to begin."""
    kept, held, count = [], [], 0
    for clip in clips:
        length = round(0.5 * clip.fps)
        out = ((count + np.arange(clip.frames)) // length) % 5 == fold
        count += clip.frames
        edges = [0, *(np.flatnonzero(np.diff(out.astype(int))) + 1), clip.frames]
        for start, stop in pairwise(edges):
            (held if out[start] else kept).append(clip.cut(int(start), int(stop)))
    return kept, held


@dataclass
class Baselines:
    """The nearest training pose, and PCA with a Gaussian prior under the same handles."""

    clips: list[Clip]
    ends: tuple[str, ...]
    keep: float = 0.98

    def __post_init__(self) -> None:
        self.skeleton = self.clips[0].skeleton
        self.joints = [self.skeleton.index(name) for name in self.ends]
        self.rotations = np.concatenate([clip.rotations for clip in self.clips])
        self.found = features.fit(self.clips)
        origin = np.zeros((len(self.rotations), 3))
        self.places, _ = kinematics.forward(self.skeleton, origin, self.rotations)
        poses = self.found.pose(self.rotations)
        self.mean = poses.mean(axis=0)
        values, vectors = np.linalg.eigh(np.cov((poses - self.mean).T, bias=True))
        values, vectors = values[::-1], vectors[:, ::-1]
        count = int(np.searchsorted(np.cumsum(values) / values.sum(), self.keep)) + 1
        noise = max(float(values[count:].mean()), 1e-4)
        main = vectors[:, :count] * np.maximum(values[:count] - noise, 0.0)
        self.precision = np.linalg.inv(main @ vectors[:, :count].T + noise * np.eye(len(values)))
        self.body = Body(self.skeleton, self.found.references, self.found.columns)

    def nearest(self, targets: Array) -> Pose:
        """The training pose whose ends fit best after the best move and turn about Z."""
        ends = self.places[:, self.joints]
        middle, goal = ends.mean(axis=1, keepdims=True), targets.mean(axis=0)
        a, b = ends - middle, targets - goal
        sine = (a[..., 0] * b[:, 1] - a[..., 1] * b[:, 0]).sum(axis=1)
        cosine = (a[..., 0] * b[:, 0] + a[..., 1] * b[:, 1]).sum(axis=1)
        turn = about_z(np.arctan2(sine, cosine))
        there = rotate(turn[:, None], ends)
        moved = goal - there.mean(axis=1)
        cost = np.square(there + moved[:, None] - targets).sum(axis=(1, 2))
        best = int(np.argmin(cost))
        rotations = self.rotations[best].copy()
        rest = self.skeleton.local_rests[0]
        world = multiply(turn[best], multiply(rest, rotations[0]))
        rotations[0] = multiply(conjugate(rest), world)
        return Pose(moved[best], rotations)

    def pca(self, start: Pose, targets: Array) -> Array:
        """Joint places of the likeliest pose under the handles, from the nearest pose."""
        handles = [Handle(name, target=place) for name, place in zip(self.ends, targets)]
        term = HandleTerm(self.body, self.skeleton, handles)
        term.aim_at(handles)
        count = self.body.unknowns
        up = np.array([[0.0, -1.0, 0.0], [1.0, 0.0, 0.0], [0.0, 0.0, 0.0]])

        def evaluate(root: Array, matrix: Array, angles: Array) -> Sum:
            self.body.pose(root, matrix, angles)
            self.body.differentiate()
            out = Sum(0.0, np.zeros(count), np.zeros((count, count)))
            term.add(out)
            apart = np.concatenate([angles, matrix[2]]) - self.mean
            slopes = np.zeros((len(apart), count))
            slopes[:-3, 6:] = np.eye(len(angles))
            slopes[-3:, 3:6] = matrix.T @ up
            pull = self.precision @ apart
            out.value += 0.5 * float(apart @ pull)
            out.slope += pull @ slopes
            out.matrix += slopes.T @ self.precision @ slopes
            return out

        rest = to_matrix(multiply(self.skeleton.local_rests[0], start.rotations[0]))
        state = (start.root_position, rest, self.found.angles(start.rotations[None])[0])
        here, damping = evaluate(*state), 1e-3
        for _ in range(100):
            matrix = here.matrix + 1e-3 * np.eye(count)
            matrix.flat[:: count + 1] *= 1.0 + damping
            _, step, _ = lapack.dposv(matrix, -here.slope, lower=1)
            step = step / max(1.0, float(np.abs(step[3:]).max()) / 0.4)
            trial = (state[0] + step[:3], small_turn(step[3:6]) @ state[1], state[2] + step[6:])
            there = evaluate(*trial)
            if there.value < here.value:
                gain = here.value - there.value
                state, here, damping = trial, there, 0.1 * damping
                if gain < 1e-3:
                    break
            elif (damping := 10.0 * damping) > 1e8:
                break
        self.body.pose(*state)
        return self.body.frames[self.body.place, :3, 3].copy()


def held_out(
    clips: list[Clip], ends: tuple[str, ...], folds: range, stride: int
) -> dict[str, float]:
    """Mean joint errors in centimetres of all methods on the held-out frames."""
    errors: dict[str, list[float]] = {}

    def note(name: str, places: Array, truth: Array) -> None:
        errors.setdefault(name, []).append(
            100.0 * float(np.linalg.norm(places - truth, axis=-1).mean())
        )

    for fold in folds:
        kept, held = pieces(clips, fold)
        baselines = Baselines(kept, ends)
        model = train(kept, Settings(latents=8, active=200))
        solver, alone = Solver(model), Solver(model)
        plain = Solver(train(kept))
        skeleton, joints = baselines.skeleton, baselines.joints
        truths, starts, targets = [], [], []
        for clip in held:
            where, _ = kinematics.pose(clip)
            previous: list[Pose] = []
            for frame in range(clip.frames):
                goal = where[frame, joints]
                handles = [Handle(name, target=place) for name, place in zip(ends, goal)]
                solution = solver.solve(handles, previous, fresh=frame == 0)
                previous = [solution, *previous][:2]
                static = alone.solve(handles, fresh=frame == 0)
                default = plain.solve(handles, fresh=frame == 0)
                if frame % stride:
                    continue
                truths.append(where[frame])
                targets.append(goal)
                starts.append(baselines.nearest(goal))
                note("ours", places_of(skeleton, solution), where[frame])
                # The peers see one frame at a time; so do we here.
                note("(ours, frame alone)", places_of(skeleton, static), where[frame])
                note("(ours, default size)", places_of(skeleton, default), where[frame])
                note("nearest pose", places_of(skeleton, starts[-1]), where[frame])
                note("PCA", baselines.pca(starts[-1], goal), where[frame])
        for name, rows in (by_blender(skeleton, joints, starts, targets) or {}).items():
            for places, truth in zip(rows, truths):
                note(name, places, truth)
    return {name: float(np.mean(rows)) for name, rows in errors.items()}


def by_blender(
    skeleton: Skeleton, joints: list[int], starts: list[Pose], targets: list[Array]
) -> dict[str, Array] | None:
    """Joint places of Blender's own IK from the starts, limb by limb and with all of the body."""
    roots = np.stack([pose.root_position for pose in starts])
    positions, turns = kinematics.forward(skeleton, roots, np.stack([p.rotations for p in starts]))
    # Two bones for each hand and foot; the spine up to the hips, but not them, for the head.
    chains = [
        2
        if len(skeleton.above(joint)) > 3
        and "ead" not in skeleton.names[joint]
        and "neck" not in skeleton.names[joint]
        else max(len(skeleton.above(joint)) - 2, 1)
        for joint in joints
    ]
    found = peer(
        Path(sys.executable),
        "--blender-ik",
        {
            "names": np.array(skeleton.names),
            "parents": np.array(skeleton.parents),
            "heads": skeleton.rest_heads,
            "tails": skeleton.rest_tails,
            "rests": skeleton.rest_rotations,
            "ends": np.array(joints),
            "chains": np.array(chains),
            "positions": positions,
            "turns": turns,
            "targets": np.stack(targets),
        },
        BPY,
    )
    if found is None:
        print("the bpy wheel is not there; Blender's own IK is left out")
        return None
    return {"Blender IK, limbs": found["places"][0], "Blender IK, body": found["places"][1]}


def measure_heldout() -> dict[str, Any]:
    clips = [motion(name) for name in ("walk", "run", "punch", "kick")]
    found = held_out(clips, ENDS, range(5), 1)
    result = _heldout_table("human: walk, run, punch, kick", found, "heldout")
    walks = sorted((CMU / "style_walks").glob("*.bvh"))
    if not walks:
        print("CMU style walks: not at ../shared/data/cmu, skipped")
        return result
    each = []
    for name in ("137_24", "137_33", "137_42"):
        clip = bvh.read(CMU / "style_walks" / f"{name}.bvh")
        each.append(held_out([clip.cut(0, 300)], CMU_ENDS, range(1), 3))
    mean = {key: float(np.mean([row[key] for row in each])) for key in each[0]}
    return result | _heldout_table("CMU: style walks", mean, "cmu_heldout")


def _heldout_table(title: str, found: dict[str, float], key: str) -> dict[str, Any]:
    print(f"Held-out frames, {title}: mean joint error, cm")
    for name, error in sorted(found.items(), key=lambda pair: pair[1]):
        print(f"  {name:<22}{error:8.2f}")
    best = min(error for name, error in found.items() if "ours" not in name)
    return {
        f"{key}_ratio": round(found["ours"] / best, 3),
        f"{key}_alone_ratio": round(found["(ours, frame alone)"] / best, 3),
        f"{key}_default_ratio": round(found["(ours, default size)"] / best, 3),
        f"{key}_cm": round(found["ours"], 2),
        f"{key}_best_other_cm": round(best, 2),
    }


# Markers with gaps.


def measure_markers() -> dict[str, Any]:
    """60% of the markers gone at random for stretches of 2 s, in long takes of their own style."""
    if (CMU / "style_walks").exists():
        names = ("137_24", "137_33", "137_42")
        takes = [bvh.read(CMU / "style_walks" / f"{name}.bvh").cut(0, 540) for name in names]
    else:
        print("CMU style walks: not at ../shared/data/cmu; the human's dance instead")
        takes = [motion("dance_b")]
    rows = [_fill_gaps(take, np.random.default_rng(1)) for take in takes]
    off = {name: float(np.mean([row[name] for row in rows])) for name in rows[0]}
    print("Markers gone: mean error of their places, cm")
    for name, error in off.items():
        each = "".join(f"{row[name]:8.2f}" for row in rows)
        print(f"  {name:<22}{error:8.2f}   takes:{each}")
    # Whole-body IK is no peer of ours by the bar's own list; it is shown for orientation.
    best = min(value for name, value in off.items() if name not in ("ours", "(whole-body IK)"))
    return {
        "marker_ratio": round(off["ours"] / best, 3),
        "marker_cm": round(off["ours"], 2),
        "marker_best_other_cm": round(best, 2),
    }


def _fill_gaps(take: Clip, rng: np.random.Generator) -> dict[str, float]:
    """Mean errors in centimetres of markers that are gone, by method."""
    placings = _markers_on(take.skeleton)
    truth = marker_places(take, placings)
    # The style comes from the take's first part, where all markers are seen (§7.3).
    learned = take.frames // 2
    gone = np.zeros(truth.shape[:2], dtype=bool)
    length = int(2 * take.fps)
    for start in range(learned + 15, max(take.frames - length - 14, learned + 16), length + 30):
        lost = rng.permutation(len(placings))[: round(0.6 * len(placings))]
        gone[start : min(start + length, take.frames - 10), lost] = True
    seen = np.where(gone[..., None], np.nan, truth)[learned:]
    names = tuple(placing.marker for placing in placings)
    model = train([take.cut(0, learned)], Settings(latents=8, active=200))
    ours = fill(Solver(model, fps=take.fps), Markers(names, take.fps, seen), placings)
    found = {
        "ours": marker_places(ours, placings),
        "linear interpolation": _interpolated(seen),
        "PCA": _marker_pca(truth[:learned], seen),
        "per-limb IK": _limb_ik(take, placings, seen, learned, whole=False),
        "(whole-body IK)": _limb_ik(take, placings, seen, learned, whole=True),
    }
    lost_places = gone[learned:]
    return {
        name: 100.0 * float(np.linalg.norm(places - truth[learned:], axis=-1)[lost_places].mean())
        for name, places in found.items()
    }


def _markers_on(skeleton: Skeleton) -> list[Placing]:
    """Two markers beside each bone that is longer than 7 cm."""
    found = []
    for joint, name in enumerate(skeleton.names):
        along = skeleton.tail_offsets[joint]
        length = float(np.linalg.norm(along))
        if length < 0.07:
            continue
        side = np.cross(along / length, [0.3, 0.5, 0.8])
        side *= 0.04 / np.linalg.norm(side)
        for number, (part, sign) in enumerate(((0.25, 1.0), (0.75, -1.0))):
            found.append(Placing(f"{name}{number}", name, part * along + sign * side))
    return found


def _interpolated(seen: Array) -> Array:
    out = seen.copy()
    frames = np.arange(len(seen))
    for marker in range(seen.shape[1]):
        for axis in range(3):
            values = seen[:, marker, axis]
            known = np.isfinite(values)
            out[:, marker, axis] = np.interp(frames, frames[known], values[known])
    return out


def _aligned(reference: Array, places: Array, known: Array) -> tuple[Array, Array]:
    """The turn about Z and the move that bring `reference` `(K, 3)` best onto known places."""
    a, b = reference[known], places[known]
    ma, mb = a.mean(axis=0), b.mean(axis=0)
    a, b = a - ma, b - mb
    angle = np.arctan2(
        (a[:, 0] * b[:, 1] - a[:, 1] * b[:, 0]).sum(), (a[:, 0] * b[:, 0] + a[:, 1] * b[:, 1]).sum()
    )
    turn = to_matrix(about_z(angle))
    return turn, mb - turn @ ma


def _marker_pca(learned: Array, seen: Array) -> Array:
    """Marker positions as a Gaussian with PCA's covariance, in a frame that follows the body."""
    reference = learned[0]
    everything = np.ones(len(reference), dtype=bool)
    local = []
    for places in learned:
        turn, move = _aligned(reference, places, everything)
        local.append((places - move) @ turn)
    flat = np.stack(local).reshape(len(learned), -1)
    mean = flat.mean(axis=0)
    values, vectors = np.linalg.eigh(np.cov((flat - mean).T, bias=True))
    values, vectors = values[::-1], vectors[:, ::-1]
    count = int(np.searchsorted(np.cumsum(values) / values.sum(), 0.99)) + 1
    noise = max(float(values[count:].mean()), 1e-6)
    basis, spread = vectors[:, :count], np.maximum(values[:count] - noise, 1e-9)
    out = seen.copy()
    shape = mean.reshape(-1, 3)
    for frame, places in enumerate(seen):
        known = np.isfinite(places).all(axis=-1)
        if known.all():
            continue
        guess = shape
        for _ in range(10):
            turn, move = _aligned(guess, places, known)
            rows = np.repeat(known, 3)
            target = ((places - move) @ turn).reshape(-1)
            part = basis[rows]
            inner = part.T @ part / noise + np.diag(1.0 / spread)
            weights = np.linalg.solve(inner, part.T @ (target - mean)[rows] / noise)
            guess = (mean + basis @ weights).reshape(-1, 3)
        filled = guess @ turn.T + move
        out[frame, ~known] = filled[~known]
    return out


def _limb_ik(take: Clip, placings: list[Placing], seen: Array, learned: int, whole: bool) -> Array:
    """Least squares on the markers that are seen, each joint held softly where it last was.

    Limb by limb: first the trunk follows its own markers, then each arm and leg follows its own.
    With `whole`, all of the body follows all of them at once.
    """
    skeleton = take.skeleton
    found = features.fit([take.cut(0, learned)])
    body = Body(skeleton, found.references, found.columns)
    group_of = _limbs(skeleton)
    if whole:
        group_of = np.zeros_like(group_of)
    column_group = group_of[found.columns // 3 + 1]
    groups = [np.flatnonzero(column_group == g) + 6 for g in range(group_of.max() + 1)]
    groups[0] = np.concatenate([np.arange(6), groups[0]])
    marker_joint = np.array([skeleton.index(p.joint) for p in placings])
    offsets = np.hstack([np.stack([p.offset for p in placings]), np.ones((len(placings), 1))])
    out = seen.copy()
    root = take.root_positions[learned]
    matrix = to_matrix(multiply(skeleton.local_rests[0], take.rotations[learned, 0]))
    angles = found.angles(take.rotations[learned : learned + 1])[0]
    for frame, places in enumerate(seen):
        known = np.isfinite(places).all(axis=-1)
        last = angles
        for group, unknowns in enumerate(groups):
            rows = np.flatnonzero(known & (group_of[marker_joint] == group))
            joints = body.place[marker_joint[rows]]
            for _ in range(15 if len(rows) else 0):
                body.pose(root, matrix, angles)
                body.differentiate()
                at = body.points(joints, offsets[rows])
                slopes = body.point_slopes(joints, at).reshape(-1, body.unknowns)[:, unknowns]
                miss = (at - places[rows]).reshape(-1)
                held = np.concatenate([np.zeros(6), angles - last])[unknowns]
                left = 1e6 * slopes.T @ slopes + 100.0 * np.eye(len(unknowns))
                step = np.zeros(body.unknowns)
                step[unknowns] = -np.linalg.solve(left, 1e6 * slopes.T @ miss + 100.0 * held)
                step /= max(1.0, float(np.abs(step[3:]).max()) / 0.4)
                root, angles = root + step[:3], angles + step[6:]
                matrix = small_turn(step[3:6]) @ matrix
                if np.abs(step).max() < 1e-5:
                    break
        body.pose(root, matrix, angles)
        out[frame, ~known] = body.points(body.place[marker_joint], offsets)[~known]
    return out


def _limbs(skeleton: Skeleton) -> Array:
    """For each joint 0 for the trunk, or the number of its arm or leg."""
    starts = [n for n in skeleton.names if n in LIMBS]
    group = np.zeros(len(skeleton), dtype=int)
    for joint, parent in enumerate(skeleton.parents):
        if skeleton.names[joint] in starts:
            group[joint] = 1 + starts.index(skeleton.names[joint])
        elif parent >= 0:
            group[joint] = group[parent]
    return group


# Styles between styles.


def measure_blend() -> dict[str, Any]:
    models = [train([motion(name)]) for name in ("walk", "punch")]
    solver = Solver(models)
    wins = total = 0
    print("Blend of walk and punch: -L_IK under each style at s = 0, 1/2, 1")
    for name, frames in (("punch", range(5, 60, 12)), ("walk", range(0, 36, 9))):
        clip = motion(name)
        where, _ = kinematics.pose(clip)
        for frame in frames:
            handles = [
                Handle(end, target=where[frame, clip.skeleton.index(end)]) for end in ENDS[:4]
            ]
            rows = []
            for part in (0.0, 0.5, 1.0):
                solver.blend([1.0 - part, part])
                rows.append(solver.solve(handles, fresh=True).likelihoods)
            walk, punch = np.array(rows).T
            good = bool((np.diff(walk) <= 1e-6).all() and (np.diff(punch) >= -1e-6).all())
            wins, total = wins + good, total + 1
            print(f"  {name} {frame:3d}  walk {np.round(walk, 1)}  punch {np.round(punch, 1)}")
    return {"style_monotonic": wins == total, "style_monotonic_part": round(wins / total, 3)}


PARTS = {
    "solve": measure_solve,
    "train": measure_train,
    "heldout": measure_heldout,
    "markers": measure_markers,
    "blend": measure_blend,
}


def main() -> None:
    chosen = sys.argv[2:] if sys.argv[1:2] == ["--only"] else list(PARTS)
    result: dict[str, Any] = {}
    for name in chosen:
        began = time.perf_counter()
        found = PARTS[name]()
        result |= found
        print(f"{name}: {json.dumps(found)}  ({time.perf_counter() - began:.0f} s)\n", flush=True)
    print(json.dumps(result))


main()
