"""The job `train_style`: learns a style from clips and says how well, in centimetres.

A first part of training leaves every fifth half-second out, to measure the error on frames that
the style has not seen; then these frames join and learning goes on with all. Each step is a plain
function of the run before it, so a job that was killed ends in the same bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from ..errors import UserError
from ..gp.active_set import choose
from ..gp.objective import Predictor
from ..motion import kinematics
from ..motion.clip import Clip
from ..motion.rotations import Array
from ..motion.skeleton import Indices
from ..runtime.files import write_json
from ..runtime.jobs import Job
from . import features, learning
from .features import Features, Mask
from .learning import State
from .model import StyleModel

LATENTS = range(2, 9)
CHOOSING_ROUNDS, FINAL_ROUNDS = 4, 3
HALF_SECOND = 0.5
MOST_FRAMES = 20_000
MOST_FRAMES_FULL = 4_000
"""The full algorithm keeps several matrices of frames by frames."""
MOST_ACTIVE = 1_000
"""How many poses an error to reach may keep; a solve takes tens of milliseconds with as many."""
ALGORITHMS = ("heuristic", "full")


@dataclass(frozen=True)
class Settings:
    """What `train_style` can be told."""

    latents: int = 6
    """Dimensions of the latent space, 2 to 8; 0 tries all and keeps the likeliest."""
    active: int = 200
    """How many training poses to keep; more are more exact and slower to pose with."""
    error_cm: float = 0.0
    """If above 0, keeps as few poses as predict all others with this mean error instead, though
    never more than 1,000."""
    algorithm: str = "heuristic"
    """heuristic, which is fast, or full, which arranges the latent space better (appendix B)."""
    rounds: int = 10
    """Rounds of the heuristic, or twenties of iterations of the full algorithm."""
    fps: float = 0.0
    """Frames per second to learn at; 0 for the first clip's own."""
    noise: float = 0.05
    """How smooth the model becomes in which a fresh pose is first looked for (§6.1.1)."""

    def check(self) -> None:
        """Raises a `UserError` for what makes no sense."""
        if self.latents not in (0, *LATENTS):
            raise UserError("A latent space has 2 to 8 dimensions; 0 lets training choose.")
        if self.active < 1 or self.rounds < 1:
            raise UserError("A style keeps at least one pose and takes at least one round.")
        if self.algorithm not in ALGORITHMS:
            raise UserError(f"The algorithm is one of {', '.join(ALGORITHMS)}.")
        if not (self.error_cm >= 0 and self.noise > 0 and self.fps >= 0):
            raise UserError("The error, noise and frame rate of a style cannot be negative.")


@dataclass(frozen=True, eq=False)
class Data:
    """Features of all training frames."""

    features: Features
    y: Array
    """`(N, D)` as they are."""
    held: Mask
    """`(N,)` bool: frames that the first part of training does not see."""
    labels: tuple[str, ...]
    starts: tuple[int, ...]
    root_height: float

    @property
    def caps(self) -> Array:
        """What no scale may exceed."""
        return learning.largest_scales(self.features.width)


@dataclass(frozen=True, eq=False)
class Run:
    """How far training has come."""

    phase: str
    """choosing, measuring, finishing or done."""
    state: State
    tried: dict[str, float] = field(default_factory=dict)
    """Held-out log likelihood of each number of latent dimensions that was tried."""
    heldout_cm: float = float("nan")


def prepare(clips: Sequence[Clip], settings: Settings) -> Data:
    """Reads the clips' features and marks every fifth half-second."""
    settings.check()
    found = features.fit(clips, settings.fps or None)
    each = [found.of(clip) for clip in clips]
    y = np.concatenate(each)
    _check_size(len(y), settings)
    length = max(1, round(HALF_SECOND * found.fps))
    held = (np.arange(len(y)) // length) % 5 == 2
    if held.sum() < 2 or (~held).sum() < 8:
        held[:] = False
    starts = np.cumsum([0, *(len(part) for part in each)])[:-1]
    heights = np.concatenate([clip.root_positions[:, 2] for clip in clips])
    return Data(
        found,
        y,
        held,
        tuple(clip.label for clip in clips),
        tuple(int(s) for s in starts),
        float(heights.mean()),
    )


def _check_size(frames: int, settings: Settings) -> None:
    full = settings.algorithm == "full"
    most = MOST_FRAMES_FULL if full else MOST_FRAMES
    if frames > most:
        raise UserError(
            f"The clips have {frames} frames, and a style learns from {most} at most"
            f"{' with the full algorithm' if full else ''}; choose fewer clips or a lower frame "
            f"rate{', or the heuristic' if full else ''}."
        )


def begin(data: Data, settings: Settings) -> Run:
    """The first run of a row."""
    if settings.latents:
        return _measuring(data, settings.latents, {})
    if not data.held.any():
        return _measuring(data, Settings.latents, {})
    return Run("choosing", _start(data, LATENTS[0]))


def advance(run: Run, data: Data, settings: Settings) -> Run:
    """One step of learning."""
    if run.phase == "choosing":
        return _choose(run, data, settings)
    seen = ~data.held if run.phase == "measuring" else np.ones(len(data.y), dtype=bool)
    y = data.y[seen] - data.y[seen].mean(axis=0)
    state = _learn(run.state, y, data, settings)
    run = replace(run, state=state)
    if run.phase == "measuring" and state.step >= settings.rounds:
        return _finishing(run, data, settings)
    if run.phase == "finishing" and state.step >= FINAL_ROUNDS:
        return replace(run, phase="done")
    return run


def finish(run: Run, data: Data, settings: Settings, rng: np.random.Generator) -> StyleModel:
    """The model of a run that is done."""
    mean = data.y.mean(axis=0)
    y, state = data.y - mean, run.state
    active = _active_set(run, data, settings)
    x, kept = state.x[active], y[active]
    scaled = kept * state.scales
    noise = rng.normal(0.0, np.sqrt(settings.noise), scaled.shape)
    varied = learning.varies(y, state.scales)
    smooth = learning.smoothed(x, scaled, state.kernel, noise) if varied else state.kernel
    figures = {
        "frames": len(y),
        "active": len(active),
        "latents": state.x.shape[1],
        "algorithm": settings.algorithm,
        "heldout_frames": int(data.held.sum()),
        "tried": run.tried,
    }
    return StyleModel(
        features=data.features,
        mean=mean,
        x=x,
        y=kept,
        scales=state.scales,
        kernel=state.kernel,
        smooth=smooth,
        points=state.x,
        labels=data.labels,
        starts=data.starts,
        root_height=data.root_height,
        heldout_cm=run.heldout_cm,
        figures=figures,
    )


def train(clips: Sequence[Clip], settings: Settings | None = None, seed: int = 0) -> StyleModel:
    """Learns a style in one go, for callers that need no progress."""
    settings = settings or Settings()
    data = prepare(clips, settings)
    run = begin(data, settings)
    while run.phase != "done":
        run = advance(run, data, settings)
    return finish(run, data, settings, np.random.default_rng(seed))


def train_style(job: Job) -> None:
    """Writes `result.limber` and `report.json`."""
    try:
        settings = Settings(**job.spec.settings)
    except TypeError as error:
        raise UserError(f"The settings of this job do not fit: {error}.") from error
    data = prepare(job.clips(), settings)
    content = job.restored()
    run = _restored(content.meta, content.arrays) if content else begin(data, settings)
    while run.phase != "done":
        job.progress(_fraction(run, settings), _stage(run), _figure(run))
        run = advance(run, data, settings)
        if job.checkpoint_due():
            job.checkpoint(_meta(run), run.state.arrays())
    job.progress(0.97, "Smoothing", _figure(run))
    model = finish(run, data, settings, job.rng)
    model.save(job.folder / "result.limber")
    write_json(job.folder / "report.json", {**model.figures, "heldout_cm": _plain(run.heldout_cm)})
    job.progress(1.0, "Trained", _figure(run))


def joint_errors(found: Features, predicted: Array, true: Array) -> Array:
    """Mean distance `(N,)` in centimetres of joints between pose features, hips on hips."""

    def places(pose: Array) -> Array:
        roots = np.tile([1.0, 0.0, 0.0, 0.0], (len(pose), 1))
        rotations = found.rotations(pose[:, : len(found.columns)], roots)
        return kinematics.forward(found.skeleton, np.zeros((len(pose), 3)), rotations)[0]

    apart = places(predicted) - places(true)
    return np.asarray(100.0 * np.linalg.norm(apart, axis=-1).mean(axis=-1))


def reconstruction_cm(predictor: Predictor, found: Features, mean: Array, y: Array) -> float:
    """Mean joint error of poses y `(N, D)` when all that is kept of each is its latent point."""
    centred = y - mean
    start = learning.nearest_start(predictor, centred)
    x = learning.fit_latents(predictor, start, centred, 20)
    predicted, _ = predictor.many(x)
    return float(joint_errors(found, predicted + mean, y).mean())


def _start(data: Data, latents: int) -> State:
    seen = data.y[~data.held]
    return learning.start(seen - seen.mean(axis=0), data.caps, latents)


def _learn(state: State, y: Array, data: Data, settings: Settings) -> State:
    if settings.algorithm == "full":
        return learning.full_step(state, y, data.caps)
    return learning.heuristic_step(state, y, data.caps, settings.active)


def _predictor(state: State, y: Array, size: int) -> Predictor:
    active = choose(state.x, state.kernel, size)
    return Predictor(state.x[active], y[active], state.scales, state.kernel)


def _choose(run: Run, data: Data, settings: Settings) -> Run:
    """Tries each number of dimensions in turn, always with the heuristic."""
    seen = data.y[~data.held]
    mean = seen.mean(axis=0)
    state = learning.heuristic_step(run.state, seen - mean, data.caps, settings.active)
    if state.step < CHOOSING_ROUNDS:
        return replace(run, state=state)
    latents = state.x.shape[1]
    predictor = _predictor(state, seen - mean, settings.active)
    score = learning.log_evidence(predictor, data.y[data.held] - mean)
    tried = {**run.tried, str(latents): score}
    if latents < LATENTS[-1]:
        return Run("choosing", _start(data, latents + 1), tried)
    return _measuring(data, int(max(tried, key=lambda name: tried[name])), tried)


def _measuring(data: Data, latents: int, tried: dict[str, float]) -> Run:
    phase = "measuring" if data.held.any() else "finishing"
    return Run(phase, _start(data, latents), tried)


def _finishing(run: Run, data: Data, settings: Settings) -> Run:
    """Measures the frames that were held out, and lets them join."""
    seen = data.y[~data.held]
    mean, state = seen.mean(axis=0), run.state
    predictor = _predictor(state, seen - mean, settings.active)
    held = data.y[data.held]
    error = reconstruction_cm(predictor, data.features, mean, held)
    x = np.empty((len(data.y), state.x.shape[1]))
    x[~data.held] = state.x
    start = learning.nearest_start(predictor, held - mean)
    x[data.held] = learning.fit_latents(predictor, start, held - mean, 20)
    return replace(run, phase="finishing", state=replace(state, x=x, step=0), heldout_cm=error)


def _active_set(run: Run, data: Data, settings: Settings) -> Indices:
    """By number, or the least that predicts all frames with the error that was asked for."""
    state = run.state
    if not settings.error_cm:
        return choose(state.x, state.kernel, settings.active)
    order = choose(state.x, state.kernel, min(MOST_ACTIVE, len(state.x)))
    mean = data.y.mean(axis=0)
    low, high = 1, len(order)
    while low < high:
        middle = (low + high) // 2
        part = order[:middle]
        predictor = Predictor(state.x[part], data.y[part] - mean, state.scales, state.kernel)
        predicted, _ = predictor.many(state.x)
        error = joint_errors(data.features, predicted + mean, data.y).mean()
        low, high = (low, middle) if error <= settings.error_cm else (middle + 1, high)
    return order[:low]


def _meta(run: Run) -> dict[str, Any]:
    return {"phase": run.phase, "tried": run.tried, "heldout_cm": _plain(run.heldout_cm)}


def _restored(meta: dict[str, Any], arrays: dict[str, Array]) -> Run:
    heldout = meta["heldout_cm"]
    return Run(
        meta["phase"],
        State.from_arrays(arrays),
        dict(meta["tried"]),
        float("nan") if heldout is None else heldout,
    )


def _plain(value: float) -> float | None:
    return None if np.isnan(value) else float(value)


def _fraction(run: Run, settings: Settings) -> float:
    trials = CHOOSING_ROUNDS * len(LATENTS) if run.tried or run.phase == "choosing" else 0
    total = trials + settings.rounds + FINAL_ROUNDS
    done = run.state.step
    if run.phase == "choosing":
        done += CHOOSING_ROUNDS * len(run.tried)
    elif run.phase == "measuring":
        done += trials
    else:
        done += trials + settings.rounds
    return 0.95 * min(done / total, 1.0)


def _stage(run: Run) -> str:
    if run.phase == "choosing":
        return f"Trying {run.state.x.shape[1]} dimensions"
    return "Learning" if run.phase == "measuring" else "Learning from all frames"


def _figure(run: Run) -> str:
    if np.isnan(run.heldout_cm):
        return ""
    return f"{run.heldout_cm:.1f} cm off on frames it had not seen"
