"""The Motion VAEs of a character and their policies: `.limber` files, and jobs that learn some."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from bpy.types import Object

from ...backend.errors import UserError
from ...backend.motion.fitting import fits
from ...backend.motion.skeleton import Skeleton
from ...backend.runtime import limber_file
from .. import clip_list, settings
from ..model_list import Kind, named

if TYPE_CHECKING:  # props.py needs this file
    from .props import PolicyEntry, VaeEntry

KIND, POLICY_KIND = "vae", "policy"
"""What files of models and of policies say that they hold."""
TASKS = {'TARGET', 'JOYSTICK', 'PATH', 'MAZE'}


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


def begin_policy(model: VaeEntry, name: str, task: str, job: Path) -> PolicyEntry:
    """Lists a policy that a job has begun to learn for a model."""
    entry = model.policies.add()
    model.policy_index = len(model.policies) - 1
    entry.name, entry.task, entry.job = name, task, job.name
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
    models = obj.limber.vae.models
    waiting = [MODELS.take_in(models)]
    waiting += [POLICIES.take_in(model.policies) for model in models]
    return any(waiting)


def problem(entry: VaeEntry) -> str:
    """Why a model cannot be used, as a sentence, from what is quickly seen; else empty."""
    return MODELS.problem(entry)


def policy_problem(entry: PolicyEntry) -> str:
    """As `problem`, for a policy."""
    return POLICIES.problem(entry)


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
    chosen = active_policy(model)
    entry = next((each for each in suited if each == chosen), suited[-1])
    if why := policy_problem(entry):
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
    meta = limber_file.read(path, KIND).meta
    try:
        return Skeleton.from_json(meta["skeleton"])
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise UserError(f"The Motion VAE in {path.name} is damaged; train it again.") from error


def describe(path: Path) -> str:
    """What a model learned from and how well, one line each."""
    meta = limber_file.read(path, KIND).meta
    figures = meta.get("figures", {})
    lines = [named(list(dict.fromkeys(str(label) for label in meta.get("start_labels", ()))))]
    if "seconds" in figures:
        lines.append(f"{figures['seconds']:.0f} s of clips")
    if {"epochs", "of_epochs"} <= figures.keys():
        lines.append(f"{figures['epochs']} of {figures['of_epochs']} epochs")
    if "error_cm" in figures:
        lines.append(f"{figures['error_cm']:.1f} cm off")
    return "\n".join(filter(None, lines))


def describe_policy(path: Path) -> str:
    """What a policy was learned for and how long, one line each."""
    return _policy_lines(limber_file.read(path, POLICY_KIND).meta)


def _policy_lines(meta: dict[str, Any]) -> str:
    figures = meta.get("figures", {})
    lines = [str(meta.get("task", "")).capitalize()]
    if "samples" in figures:
        lines.append(f"{figures['samples'] / 1e6:.1f} million frames")
    if "reward" in figures:
        lines.append(f"reward {figures['reward']:.2f}")
    return "\n".join(filter(None, lines))


def _fill(entry: VaeEntry, path: Path) -> None:
    skeleton_of(path)
    entry.about = describe(path)
    meta = limber_file.read(path, KIND).meta
    entry.labels = "\n".join(dict.fromkeys(str(label) for label in meta.get("start_labels", ())))
    entry.types = "\n".join(str(kind) for kind in meta.get("types") or ())


def _fill_policy(entry: PolicyEntry, path: Path) -> None:
    meta = limber_file.read(path, POLICY_KIND).meta
    task = str(meta.get("task", "")).upper()
    if task not in TASKS:
        raise UserError(f"The policy in {path.name} is damaged; learn it again.")
    entry.task, entry.about = task, _policy_lines(meta)


MODELS = Kind("Motion VAE", lambda: settings.models_folder(), _fill, early=True)
POLICIES = Kind("policy", lambda: settings.models_folder(), _fill_policy, early=True)
