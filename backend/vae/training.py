"""The job `train_vae`: learns a Motion VAE from clips (Ling 2020, §3.4).

Every number follows from the clips, the settings and the job's generator of chance, so a job that
was killed goes on from its checkpoint to the same model. Stopped early, it keeps what it has
learned in `result.limber`. When the model is complete, the job can go on to policies of it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn.functional import one_hot

from ..errors import UserError
from ..motion.clip import Clip
from ..runtime import clip_files
from ..runtime.files import write_json
from ..runtime.jobs import Job
from ..runtime.limber_file import AnyArray, Content
from ..runtime.progress import Cancelled
from . import data as training_data
from .bones import Bones
from .data import ROLLOUT, Data
from .model import MotionVae, set_weights, weights
from .network import Network, Shape, losses
from .policy_training import RESULT, Turn, learn_in_turn, turns_after
from .walk import FARTHEST, random_walk

MODES = (1 / 9, 2 / 9)
"""Parts of the epochs at which scheduled sampling begins and ends: 20 and 40 of 180 (§3.4)."""
FEWEST_STEPS = 20
"""Rollouts of a batch in an epoch, where clips are so short that they would give fewer."""
GRADIENT = 1.0
"""Length to which longer gradients are cut."""
COLLAPSE = 1e-3
"""KL divergence, as a part of the reconstruction loss, below which z says nothing any more."""
LOWER = 0.2
"""What β is multiplied with when the posterior has collapsed."""
FIRM = (8 / 9, 10.0)
"""From this part of the epochs on, bone lengths count so many times as much: what is rare in random
walks is learned last, when the steps are small."""
RESTART = 0.05
"""Chance, for each rollout, that a character that walks at random begins anew from a clip."""
PREVIEWS = 40
"""How often, in a whole training, a model and a walk are left for those who cannot wait."""
PREVIEW_FRAMES = 300
_FORGET = 0.98
"""How much of the running means stays with each batch."""
_RUNNING = ("reconstruction", "divergence", "error_cm")


@dataclass(frozen=True)
class Settings:
    """What `train_vae` can be told; the defaults are the paper's but for fewer epochs at a higher
    rate, with which all was measured."""

    epochs: int = 45
    """How long to learn: in an epoch as many frames are predicted as there are in the clips."""
    frames: int = 1
    """Poses before, on which the next is conditioned: 1, or 2 for smoother and less varied
    motion."""
    beta: float = 0.2
    """Weight of the KL divergence: higher for more variety, lower for closer to the clips."""
    latents: int = 32
    """Dimensions of the latent space."""
    experts: int = 6
    """Expert networks that are mixed."""
    hidden: int = 256
    """Units of each inner layer."""
    batch: int = 64
    """Rollouts that are learned from at once."""
    rate: float = 5e-4
    """Learning rate at the beginning; it falls to zero in a straight line."""
    mirror: bool = True
    """Whether to learn from all clips seen in a mirror as well."""
    types: dict[str, str] = field(default_factory=dict)
    """Motion types by the labels of clips (§7.4); clips that are not named have one of their
    own."""
    free: int = 32
    """Characters that walk at random beside each batch and are held to their bone lengths."""
    bones: float = 10.0
    """Weight of bone lengths, for predictions and for the characters that walk at random."""
    left_out: list[str] = field(default_factory=list)
    """Sentences about clips that could not even be read, for the report."""
    then: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Tasks to learn policies for right afterwards, each with settings of `train_policy`; others
    than Target begin as a Target policy, which is learned as well."""

    def check(self) -> None:
        """Raises a `UserError` for what makes no sense."""
        if self.frames not in (1, 2):
            raise UserError("A Motion VAE looks back one frame or two.")
        for name in ("epochs", "latents", "experts", "hidden", "batch"):
            if not 1 <= getattr(self, name) <= 100_000:
                raise UserError(f"The number of {name} must be at least 1.")
        if not (self.beta >= 0 and self.rate > 0):
            raise UserError("β cannot be negative, and the learning rate must be above zero.")
        if not (0 <= self.free <= 100_000 and self.bones >= 0):
            raise UserError("Free walkers and the weight of bone lengths cannot be negative.")


class Learner:
    """A training as it stands: networks, Adam's memory, β and running means."""

    def __init__(self, data: Data, settings: Settings, rng: np.random.Generator) -> None:
        settings.check()
        self.data, self.settings, self.rng = data, settings, rng
        torch.manual_seed(int(rng.integers(1 << 31)))
        shape = Shape(
            data.poses.width,
            settings.frames,
            settings.latents,
            settings.hidden,
            settings.experts,
            len(data.types),
        )
        self.network = Network(shape)
        # One pass over the weights for all of Adam's sums.
        self.adam = torch.optim.Adam(self.network.parameters(), lr=settings.rate, fused=True)
        self.beta = settings.beta
        self.step = 0
        """Rollouts of a batch done so far."""
        self.running = dict.fromkeys(_RUNNING, 0.0)
        """Means over the last batches, weighted down with age."""
        self.lowered: list[int] = []
        """Epochs in which the posterior had collapsed."""
        self._rows = torch.from_numpy(data.rows)
        self._row_types = torch.from_numpy(data.row_types)
        self._bones = Bones(data.poses, data.mean, data.spread)
        self._walked = self._fresh(settings.free)
        """Conditions `(free, condition)` of the characters that walk at random."""
        self._metres = torch.from_numpy(data.spread[data.poses.groups[1]].astype(np.float32))

    @property
    def left_out(self) -> list[str]:
        """Sentences about the clips that nothing was learned from."""
        return [*self.settings.left_out, *self.data.left_out]

    @property
    def steps_per_epoch(self) -> int:
        """Rollouts of a batch in an epoch."""
        whole = round(len(self.data.rows) / (ROLLOUT * self.settings.batch))
        return max(whole, FEWEST_STEPS)

    @property
    def steps(self) -> int:
        """Rollouts of a batch in the whole training."""
        return self.settings.epochs * self.steps_per_epoch

    @property
    def epoch(self) -> int:
        """Epochs that are complete."""
        return self.step // self.steps_per_epoch

    @property
    def truth(self) -> float:
        """p of §3.4, the chance that a prediction follows on the data and not on the last one."""
        begin, end = (part * self.steps for part in MODES)
        return float(np.clip((end - self.step) / max(end - begin, 1.0), 0.0, 1.0))

    @property
    def mode(self) -> str:
        """What is being done, for people."""
        truth = self.truth
        if truth >= 1.0:
            return "Learning single steps"
        return "Learning to follow on itself" if truth > 0.0 else "Learning to go on by itself"

    def advance(self) -> None:
        """One rollout of a batch: eight predictions, each with its step of Adam."""
        settings, truth = self.settings, self.truth
        rate = settings.rate * (1.0 - self.step / self.steps)
        for group in self.adam.param_groups:
            group["lr"] = rate
        self._restart_walkers()
        firsts = torch.from_numpy(self.rng.choice(self.data.firsts, settings.batch))
        condition = self._conditions(firsts)
        for ahead in range(ROLLOUT):
            following = self._rows[firsts + ahead]
            predicted = self._learn(condition, following)
            if truth < 1.0:
                real = torch.from_numpy(self.rng.random(settings.batch) < truth)
                following = torch.where(real[:, None], following, predicted)
            condition = self.network.shape.followed(condition, following)
        self.step += 1
        if self.step % self.steps_per_epoch == 0:
            self._answer_collapse()

    def _learn(self, condition: Tensor, following: Tensor) -> Tensor:
        """One step of Adam; gives back what was predicted, apart from its gradients."""
        free = self._walked if self.settings.bones > 0.0 else self._walked[:0]
        noise = self._noise(len(condition))
        predicted, walked, mu, log_variance = self.network.beside(
            condition, following, noise, free, self._noise(len(free))
        )
        reconstruction, divergence = losses(predicted, following, mu, log_variance)
        loss = reconstruction + self.beta * divergence
        if self.settings.bones > 0.0:
            loss = loss + self._bone_weight * self._bone_loss(predicted, walked)
        self.adam.zero_grad(set_to_none=True)
        torch.autograd.backward(loss)
        torch.nn.utils.clip_grad_norm_(self.network.parameters(), GRADIENT)
        self.adam.step()
        predicted = predicted.detach()
        self._watch(reconstruction.item(), divergence.item(), predicted - following)
        return predicted

    @property
    def _bone_weight(self) -> float:
        begin, firmer = FIRM
        return self.settings.bones * (firmer if self.step >= begin * self.steps else 1.0)

    def _noise(self, count: int) -> Tensor:
        size = (count, self.settings.latents)
        return torch.from_numpy(self.rng.standard_normal(size, dtype=np.float32))

    def _bone_loss(self, predicted: Tensor, walked: Tensor) -> Tensor:
        """How far bones are off their lengths, of predictions and of one step of those who walk at
        random: where those go no clip is, so nothing else would teach the model what a body is."""
        loss = self._bones.off(predicted).square().mean()
        if not len(walked):
            return loss
        taken = walked.detach().clamp(-FARTHEST, FARTHEST)
        self._walked = self.network.shape.followed(self._walked, taken)
        return loss + self._bones.off(walked).square().mean()

    def _fresh(self, count: int) -> Tensor:
        """Conditions `(count, condition)` from the clips."""
        return self._conditions(torch.from_numpy(self.rng.choice(self.data.firsts, count)))

    def _conditions(self, firsts: Tensor) -> Tensor:
        """Conditions `(batch, condition)` of the frames before rows `firsts`, with their types."""
        frames = range(self.settings.frames, 0, -1)
        parts = [self._rows[firsts - back] for back in frames]
        if self.data.types:
            parts.append(one_hot(self._row_types[firsts], len(self.data.types)).float())
        return torch.cat(parts, dim=1)

    def _restart_walkers(self) -> None:
        again = torch.from_numpy(self.rng.random(len(self._walked)) < RESTART)
        self._walked[again] = self._fresh(int(again.sum()))

    def _watch(self, reconstruction: float, divergence: float, apart: Tensor) -> None:
        if not np.isfinite(reconstruction):
            raise UserError(
                "Learning went out of bounds; lower the learning rate, or look at the clips with "
                "Check Motion."
            )
        metres = (apart[:, self.data.poses.groups[1]] * self._metres).reshape(len(apart), -1, 3)
        error = 100.0 * float(metres.norm(dim=2).mean())
        for name, value in zip(_RUNNING, (reconstruction, divergence, error)):
            fresh = self.running[name] == 0.0
            old = value if fresh else self.running[name]
            self.running[name] = _FORGET * old + (1.0 - _FORGET) * value

    def _answer_collapse(self) -> None:
        """Lowers β where z has come to say nothing."""
        if self.running["divergence"] < COLLAPSE * self.running["reconstruction"]:
            self.beta *= LOWER
            self.lowered.append(self.epoch)

    def model(self) -> MotionVae:
        """What has been learned so far."""
        starts = self.data.starts(self.settings.frames)
        network = Network(self.network.shape)
        set_weights(network, weights(self.network))
        figures = self.figures()
        return MotionVae(
            self.data.poses,
            network,
            self.data.mean,
            self.data.spread,
            starts.poses,
            starts.labels,
            starts.frames,
            figures,
            self.data.types,
            starts.types,
            starts.even,
        )

    def figures(self) -> dict[str, Any]:
        """What a report says."""
        return {
            "epochs": self.epoch,
            "of_epochs": self.settings.epochs,
            "clips": len(self.data.labels),
            "poses": len(self.data.rows),
            "seconds": round(self.data.seconds, 2),
            **{name: round(value, 6) for name, value in self.running.items()},
            "beta": self.beta,
            "collapsed_in_epochs": list(self.lowered),
            "predictions": self.steps * ROLLOUT * self.settings.batch,
            "left_out": self.left_out,
            "remarks": list(self.data.remarks),
            "expect": expectation(self.data.seconds),
        }

    def state(self) -> tuple[dict[str, Any], dict[str, AnyArray]]:
        """What a checkpoint keeps."""
        meta = {
            "step": self.step,
            "beta": self.beta,
            "running": dict(self.running),
            "lowered": list(self.lowered),
        }
        arrays = weights(self.network)
        arrays["walked"] = self._walked.numpy().copy()
        for name, value in self.network.named_parameters():
            kept = self.adam.state[value]
            for part in ("step", "exp_avg", "exp_avg_sq"):
                arrays[f"adam.{part}.{name}"] = kept[part].numpy().copy()
        return meta, arrays

    def restore(self, content: Content) -> None:
        """The inverse of `state`."""
        meta, arrays = content.meta, content.arrays
        set_weights(self.network, arrays)
        for name, value in self.network.named_parameters():
            self.adam.state[value] = {
                part: torch.from_numpy(arrays[f"adam.{part}.{name}"])
                for part in ("step", "exp_avg", "exp_avg_sq")
            }
        self._walked = torch.from_numpy(np.array(arrays["walked"]))
        self.step, self.beta = int(meta["step"]), float(meta["beta"])
        self.running, self.lowered = dict(meta["running"]), list(meta["lowered"])


def train(clips: Sequence[Clip], settings: Settings | None = None, seed: int = 0) -> MotionVae:
    """Learns in one go, for callers that need no progress."""
    settings = settings or Settings()
    settings.check()
    data = training_data.prepare(clips, settings.frames, settings.mirror, settings.types)
    learner = Learner(data, settings, np.random.default_rng(seed))
    while learner.step < learner.steps:
        learner.advance()
    return learner.model()


def train_vae(job: Job) -> None:
    """Writes `result.limber`, `report.json` and, while it learns, `preview.limber`; then a file for
    each of the tasks that come after."""
    try:
        settings = Settings(**job.spec.settings)
    except TypeError as error:
        raise UserError(f"The settings of this job do not fit: {error}.") from error
    settings.check()
    path = job.folder / RESULT
    turns = turns_after(path, settings.then)
    kept = job.restored()
    if kept is None or "turn" not in kept.meta:
        _train(job, settings, turns)
    if turns:
        _go_on(job, MotionVae.load(path).figures, turns)


def _train(job: Job, settings: Settings, turns: Sequence[Turn]) -> None:
    """Learns the model; at its end a job goes on to policies from there, if there are any."""
    job.progress(0.0, "Reading clips")
    data = training_data.prepare(job.clips(), settings.frames, settings.mirror, settings.types)
    learner = Learner(data, settings, job.rng)
    for sentence in [*learner.left_out, *data.remarks]:
        job.log(sentence)
    content = job.restored()
    if content is not None:
        learner.restore(content)
    try:
        _learn(job, learner, _share(learner.figures(), turns))
    except (Cancelled, KeyboardInterrupt):
        if learner.step:
            _keep(job, learner)
        raise
    _keep(job, learner)
    if turns:
        job.checkpoint({"turn": 0})
    else:
        job.progress(1.0, "Trained", _figure(learner))


def _go_on(job: Job, figures: dict[str, Any], turns: Sequence[Turn]) -> None:
    def report(policies: Sequence[dict[str, Any]]) -> None:
        write_json(job.folder / "report.json", {**figures, "policies": list(policies)})

    learn_in_turn(job, turns, report, _share(figures, turns))


def _share(figures: dict[str, Any], turns: Sequence[Turn]) -> float:
    """How much of a job the model is: a predicted frame takes about as long as one acted."""
    acted = sum(turn.settings.samples for turn in turns)
    predicted = max(int(figures["predictions"]), 1)
    return predicted / (predicted + acted)


def _learn(job: Job, learner: Learner, share: float) -> None:
    every = max(1, learner.settings.epochs // PREVIEWS) * learner.steps_per_epoch
    while learner.step < learner.steps:
        fraction = 0.99 * share * learner.step / learner.steps
        job.progress(fraction, learner.mode, _figure(learner))
        collapses = len(learner.lowered)
        learner.advance()
        if len(learner.lowered) > collapses:
            job.log(_collapse_sentence(learner))
        if learner.step % every == 0:
            _keep(job, learner)
        if job.checkpoint_due():
            job.checkpoint(*learner.state())


def _keep(job: Job, learner: Learner) -> None:
    """Leaves the model, the report and a short random walk, all complete."""
    model = learner.model()
    model.save(job.folder / "result.limber")
    write_json(job.folder / "report.json", learner.figures())
    # Chance of its own, so that looking changes nothing of what is learned.
    rng = np.random.default_rng(learner.step)
    walk = random_walk(model, model.starts[:1], PREVIEW_FRAMES, rng)[0]
    clip = replace(model.poses.clip(walk), label=f"Random walk, epoch {learner.epoch}")
    clip_files.save_clips(job.folder / "preview.limber", [clip])


def expectation(seconds: float) -> str:
    """What clips of this length are good for, as a sentence."""
    if seconds < 10:
        return (
            f"{seconds:.0f} s of clips are very little: the character will repeat them and hardly "
            "answer to control."
        )
    if seconds < 120:
        return (
            f"{seconds:.0f} s of clips are little: expect the motions that are in them, with few "
            "ways from one to another; some minutes with turns and stops give more."
        )
    return f"{seconds / 60:.0f} minutes of clips are enough to steer by."


def _figure(learner: Learner) -> str:
    if not learner.step:
        return ""
    words = [f"{learner.running['error_cm']:.1f} cm off"]
    if learner.lowered:
        words.append(f"β lowered to {learner.beta:.3g} because the latents had gone silent")
    return ", ".join(words)


def _collapse_sentence(learner: Learner) -> str:
    return (
        f"In epoch {learner.epoch} the latent variables had stopped to matter (posterior "
        f"collapse), so β was lowered to {learner.beta:.3g}."
    )
