"""The Motion VAEs of a character and their policies: `.limber` files, and jobs that learn some."""

from __future__ import annotations

import math
from collections.abc import Generator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from bpy.types import Object

from ...backend.errors import UserError
from ...backend.motion.clip import Clip
from ...backend.motion.fitting import fits
from ...backend.motion.skeleton import Skeleton
from ...backend.runtime import limber_file
from ...backend.runtime.job_folder import Watch, folders
from ...backend.vae.marks import mark_of
from .. import clip_list, clips, settings
from ..clips import Source
from ..model_list import RESULT, Kind, file_of, named
from ..rig import read_rig
from ..work import part

if TYPE_CHECKING:  # props.py needs this file
    from .props import PolicyEntry, VaeEntry

KIND, POLICY_KIND = "vae", "policy"
"""What files of models and of policies say that they hold."""
TASKS = ('TARGET', 'JOYSTICK', 'PATH', 'MAZE')
FIRST = "target.limber"
"""What jobs call the Target policy that they learn before another one."""
_MOST_NAMED = 3
"""Clips that were left out, of which the list says why."""


def add_file(obj: Object, path: Path) -> VaeEntry:
    """Lists the model in a file, or gives the entry that it already has."""
    vae = obj.limber.vae
    entry, vae.model_index = MODELS.add_file(vae.models, path)
    return entry


def add_policy_file(model: VaeEntry, path: Path) -> PolicyEntry:
    """Lists the policy in a file under a model, or gives the entry that it already has."""
    entry, model.policy_index = POLICIES.add_file(model.policies, path)
    return entry


def begin(obj: Object, name: str, job: Path) -> VaeEntry:
    """Lists a model that a job has begun to learn."""
    vae = obj.limber.vae
    entry = vae.models.add()
    vae.model_index = len(vae.models) - 1
    entry.name, entry.job = name, job.name
    return entry


def begin_policy(
    model: VaeEntry, name: str, task: str, job: Path, result: str = RESULT
) -> PolicyEntry:
    """Lists a policy that a job has begun to learn for a model, in that file of its folder."""
    entry = model.policies.add()
    model.policy_index = len(model.policies) - 1
    entry.name, entry.task, entry.job, entry.result = name, task, job.name, result
    return entry


def remove(obj: Object, index: int) -> None:
    """Takes a model off the list with its policies; the files stay, as others may use them."""
    vae = obj.limber.vae
    vae.models.remove(index)
    vae.model_index = max(0, min(vae.model_index, len(vae.models) - 1))


def remove_policy(model: VaeEntry, index: int) -> None:
    """Takes a policy off the list; its file stays."""
    model.policies.remove(index)
    model.policy_index = max(0, min(model.policy_index, len(model.policies) - 1))


def active(obj: Object) -> VaeEntry | None:
    """The model that is selected in the list."""
    vae = obj.limber.vae
    return vae.models[vae.model_index] if vae.model_index < len(vae.models) else None


def active_policy(model: VaeEntry) -> PolicyEntry | None:
    """The policy that is selected in the model's list."""
    policies = model.policies
    return policies[model.policy_index] if model.policy_index < len(policies) else None


def pending(obj: Object) -> list[Any]:
    """Models and policies that are still to come from a job."""
    models = obj.limber.vae.models
    policies = (policy for model in models for policy in POLICIES.pending(model.policies))
    return [*MODELS.pending(models), *policies]


def take_in(obj: Object) -> bool:
    """Lists what jobs have learned; whether there are jobs to go on waiting for."""
    _set_apart(obj)
    models = obj.limber.vae.models
    waiting = [MODELS.take_in(models)]
    waiting += [POLICIES.take_in(model.policies) for model in models]
    return any(waiting)


def _set_apart(obj: Object) -> None:
    """Lists a model whose job was resumed as another one, where policies need it as it was."""
    models = obj.limber.vae.models
    for index in range(len(models)):
        old = models[index]
        if not (old.partial and old.filepath and _has_own_policies(old) and _went_on(old)):
            continue
        # Looked up again: a list may move in memory when it grows.
        new = models.add()
        old = models[index]
        new.name, new.job = f"{old.name} Resumed", old.job
        for row in reversed(range(len(old.policies))):
            policy = old.policies[row]
            if policy.job == old.job and not policy.filepath:
                begin_policy(new, policy.name, policy.task, Path(policy.job), policy.result)
                old.policies.remove(row)
        old.job, old.partial = "", False


def _has_own_policies(model: VaeEntry) -> bool:
    return any(each.filepath or each.job != model.job for each in model.policies)


def _went_on(model: VaeEntry) -> bool:
    """Whether the job of a model was resumed, and has left a better one since."""
    job = next((each for each in folders(settings.jobs_folder()) if each.name == model.job), None)
    if job is None or Watch(job).poll().active or not file_of(model).is_file():
        return False
    result = job / RESULT
    return result.is_file() and result.stat().st_mtime > file_of(model).stat().st_mtime


def problem(entry: VaeEntry) -> str:
    """Why a model cannot be used, as a sentence, from what is quickly seen; else empty."""
    return MODELS.problem(entry)


def policy_problem(model: VaeEntry, entry: PolicyEntry) -> str:
    """As `problem`, for a policy of a model."""
    if model.mark and entry.mark and model.mark != entry.mark:
        return (
            f"{entry.name} was learned on another Motion VAE than {model.name}; learn it again, "
            "or add it under its own."
        )
    return POLICIES.problem(entry)


def reading(obj: Object, asked: dict[str, Any]) -> Generator[float, None, list[Clip]]:
    """The ticked clips, for a job `train_vae` with these settings; what cannot be read is left out,
    and they say so."""
    return (yield from reading_sources(obj, clip_list.require_sources(obj), asked))


def reading_sources(
    obj: Object, sources: Sequence[Source], asked: dict[str, Any]
) -> Generator[float, None, list[Clip]]:
    """As `reading`, of Actions and strips that were chosen otherwise."""
    rig, read, left_out = read_rig(obj), [], []
    for number, source in enumerate(sources):
        span = number / len(sources), (number + 1) / len(sources)
        try:
            read.append((yield from part(clips.reading(obj, source, rig), *span)))
        except UserError as error:
            left_out.append(f"{source.label!r} was left out: {error}")
            asked.get("types", {}).pop(source.label, None)
        yield span[1]
    if not read:
        raise UserError(f"No clip can be learned from. {left_out[0]}")
    asked["left_out"] = left_out
    return read


def motion_types(obj: Object) -> dict[str, str]:
    """The motion types of the ticked clips, by their labels."""
    found: dict[str, str] = {}
    for entry in obj.limber.clips:
        source = clip_list.source(obj, entry) if entry.use else None
        if source is None:
            continue
        kind = entry.motion_type.strip()
        if found.setdefault(source.label, kind) != kind:
            raise UserError(f"{source.label} is listed with two motion types; keep one of them.")
    if found and len(set(found.values())) < 2:
        raise UserError(
            "All ticked clips have the same motion type; give some another one, or switch Motion "
            "Types off."
        )
    return found


def require_model(obj: Object) -> VaeEntry:
    """The active model; a `UserError` where there is none that can be used."""
    entry = active(obj)
    if entry is None:
        raise UserError(
            f"{obj.name} has no Motion VAE yet; train one from its clips, or add a file."
        )
    if why := problem(entry):
        raise UserError(why)
    if not entry.filepath:
        raise UserError(
            f"The Motion VAE {entry.name} is still being learned; wait, or cancel its job to use "
            "it as it is."
        )
    return entry


def require_policy(model: VaeEntry, task: str, name: str = "") -> PolicyEntry:
    """The model's policy for a task: of that name, else the active one, else the last."""
    suited = [entry for entry in model.policies if entry.task == task]
    label = task.capitalize()
    if name:
        suited = [entry for entry in suited if entry.name == name]
        if not suited:
            raise UserError(f"{model.name} has no {label} policy named {name}; choose another.")
    if not suited:
        raise UserError(
            f"{model.name} has no policy for {label}; learn one, or switch Sampling on."
            if task != 'MAZE'
            else f"{model.name} has no policy for Maze; learn one."
        )
    usable = [each for each in suited if each.filepath and not policy_problem(model, each)]
    chosen = active_policy(model)
    # One that is still being learned does not stand in the way of those that are there.
    entry = next((each for each in usable if each == chosen), (usable or suited)[-1])
    if why := policy_problem(model, entry):
        raise UserError(why)
    if not entry.filepath:
        raise UserError(
            f"The policy {entry.name} is still being learned; wait, or cancel its job to use it "
            "as it is."
        )
    return entry


def check(path: Path, skeleton: Skeleton) -> None:
    """A `UserError` for a file that is broken, no Motion VAE, or of another skeleton."""
    own = skeleton_of(path)
    if not fits(own, skeleton):
        lost = sorted(set(own.names) - set(skeleton.names))
        new = sorted(set(skeleton.names) - set(own.names))
        why = "its bones have other parents"
        if lost:
            why = f"it has no bone {lost[0]}"
        elif new:
            why = f"its bone {new[0]} is new"
        raise UserError(
            f"The Motion VAE in {path.name} was learned on another rig than this ({why}); "
            "choose that rig, or train on this one."
        )


def skeleton_of(path: Path) -> Skeleton:
    """The skeleton that the model in a file was learned on."""
    return _skeleton(limber_file.read(path, KIND).meta, path)


def _skeleton(meta: dict[str, Any], path: Path) -> Skeleton:
    try:
        return Skeleton.from_json(meta["skeleton"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"The Motion VAE in {path.name} is damaged; train it again.") from error


def describe(path: Path) -> str:
    """What a model learned from, how well, and what to expect of it, one line each."""
    return _lines(limber_file.read(path, KIND).meta)


def _lines(meta: dict[str, Any]) -> str:
    figures = _figures(meta)
    lines = [named(_labels(meta))]
    if (seconds := _number(figures, "seconds")) is not None:
        lines.append(f"{seconds:.0f} s of clips")
    epochs, of_epochs = (_number(figures, name) for name in ("epochs", "of_epochs"))
    if epochs is not None and of_epochs is not None:
        lines.append(f"{epochs:.0f} of {of_epochs:.0f} epochs")
    if (error := _number(figures, "error_cm")) is not None:
        lines.append(f"{error:.1f} cm off")
    left_out = _texts(figures, "left_out")
    lines += [*_texts(figures, "expect"), *_texts(figures, "remarks"), *left_out[:_MOST_NAMED]]
    if len(left_out) > _MOST_NAMED:
        lines.append(f"{len(left_out) - _MOST_NAMED} more clips were left out.")
    return "\n".join(filter(None, lines))


def describe_policy(path: Path) -> str:
    """What a policy was learned for and how long, one line each."""
    return _policy_lines(limber_file.read(path, POLICY_KIND).meta)


def _policy_lines(meta: dict[str, Any]) -> str:
    figures = _figures(meta)
    lines = [str(meta.get("task", "")).capitalize()]
    if (samples := _number(figures, "samples")) is not None:
        lines.append(f"{samples / 1e6:.1f} million frames")
    if (reward := _number(figures, "reward")) is not None:
        lines.append(f"reward {reward:.2f}")
    return "\n".join(filter(None, lines))


def _figures(meta: dict[str, Any]) -> dict[str, Any]:
    """What learning measured, as a file says it, which may be a stranger's."""
    figures = meta.get("figures")
    return figures if isinstance(figures, dict) else {}


def _number(figures: dict[str, Any], name: str) -> float | None:
    value = figures.get(name)
    plain = isinstance(value, int | float) and not isinstance(value, bool)
    return float(value) if plain and math.isfinite(value) else None


def _texts(figures: dict[str, Any], name: str) -> list[str]:
    found = figures.get(name)
    return [text for text in (found if isinstance(found, list) else [found]) if _is_line(text)]


def _is_line(value: Any) -> bool:
    return isinstance(value, str) and "\n" not in value


def _labels(meta: dict[str, Any]) -> list[str]:
    """The clips that walks can start in."""
    labels = meta.get("start_labels")
    return list(dict.fromkeys(filter(_is_line, labels if isinstance(labels, list) else ())))


def _fill(entry: VaeEntry, path: Path) -> None:
    content = limber_file.read(path, KIND)
    _skeleton(content.meta, path)
    types = content.meta.get("types")
    entry.about, entry.labels = _lines(content.meta), "\n".join(_labels(content.meta))
    entry.types = "\n".join(map(str, types)) if isinstance(types, list) else ""
    entry.mark = mark_of(content.arrays)


def _fill_policy(entry: PolicyEntry, path: Path) -> None:
    meta = limber_file.read(path, POLICY_KIND).meta
    task = str(meta.get("task", "")).upper()
    if task not in TASKS:
        raise UserError(f"The policy in {path.name} is damaged; learn it again.")
    entry.task, entry.about, entry.mark = task, _policy_lines(meta), str(meta.get("model", ""))


MODELS = Kind("Motion VAE", lambda: settings.models_folder(), _fill, early=True)
POLICIES = Kind(
    "policy",
    lambda: settings.models_folder(),
    _fill_policy,
    early=True,
    result=lambda entry: entry.result or RESULT,
)
