"""A learned control graph: fragments with their feedback, and which may follow which.

The file is a `.limber` of kind "control_graph".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from ..errors import UserError
from ..runtime import limber_file
from ..runtime.limber_file import AnyArray
from .body import Body
from .features import COUNT
from .fragments import Chain, Fragments
from .policy import Policy
from .steering import Steering

KIND = "control_graph"


@dataclass(frozen=True, eq=False)
class ControlGraph:
    """What was learned for one body."""

    skill: Fragments
    policy: Policy
    steering: Mapping[int, Steering] = field(default_factory=dict)
    """How chains turn that can be turned."""
    figures: Mapping[int, dict[str, Any]] = field(default_factory=dict)
    """What learning measured of chains: cycles, pushes, minutes."""
    exhausted: float = np.inf
    """Size of an action beyond which a character has lost its balance (§6.2)."""

    @property
    def body(self) -> Body:
        """Whose motion it is."""
        return self.skill.body

    @property
    def controllers(self) -> list[Chain]:
        """The chains that a user knows, without the ways between them."""
        return [each for each in self.skill.chains if not each.way]

    def named(self, name: str) -> int:
        """The controller of that name; of none, the first that may be gone on with."""
        labels = [each.label for each in self.controllers]
        if name and name not in labels:
            known = ", ".join(repr(label) for label in labels)
            raise UserError(f"The control graph has no controller {name!r}; it has {known}.")
        if name:
            return labels.index(name)
        return next((n for n, each in enumerate(self.controllers) if not each.rising), 0)

    def save(self, path: Path) -> None:
        """Writes a `.limber` file."""
        skill, policy = self.skill, self.policy
        whole = [
            {
                **asdict(each),
                "after": list(self.skill.after[number]),
                "figures": self.figures.get(number, {}),
                "turn_rate": self.steering[number].rate if number in self.steering else None,
            }
            for number, each in enumerate(skill.chains)
        ]
        meta = {
            "body": self.body.to_json(),
            "links": list(skill.links),
            "controllers": [told for told in whole if not told["way"]],
            "ways": [told for told in whole if told["way"]],
            "exhausted": self.exhausted if np.isfinite(self.exhausted) else None,
        }
        arrays: dict[str, AnyArray] = {
            "targets": skill.targets,
            "lengths": skill.lengths.astype(np.float64),
            "starts": skill.starts,
            "gains": policy.gains,
            "offsets": policy.offsets,
            "spreads": policy.spreads,
        }
        for number, each in self.steering.items():
            arrays[f"{number}.left"], arrays[f"{number}.right"] = each.left, each.right
        limber_file.write(path, KIND, meta, arrays)

    @staticmethod
    def load(path: Path) -> ControlGraph:
        """Reads a `.limber` file; one that holds no control graph gives a `UserError`."""
        content = limber_file.read(path, KIND)
        try:
            return _from(content.meta, content.arrays)
        except (AttributeError, KeyError, TypeError, ValueError, IndexError) as error:
            raise UserError(
                f"The control graph in {path.name} is damaged; learn it again."
            ) from error


def _from(meta: dict[str, Any], arrays: dict[str, AnyArray]) -> ControlGraph:
    found = {name: np.asarray(array, dtype=np.float64) for name, array in arrays.items()}
    whole = [*meta["controllers"], *meta["ways"]]
    chains = tuple(
        Chain(
            str(told["label"]),
            int(told["first"]),
            int(told["count"]),
            **{
                name: bool(told[name]) for name in ("mirrored", "cyclic", "rising", "locked", "way")
            },
            lands=int(told.get("lands", -1)),
        )
        for told in whole
    )
    skill = Fragments(
        Body.from_json(meta["body"]),
        tuple(int(link) for link in meta["links"]),
        found["targets"],
        found["lengths"].astype(np.int64),
        found["starts"],
        chains,
        tuple(tuple(int(k) for k in told["after"]) for told in whole),
    )
    policy = Policy(found["gains"], found["offsets"], found["spreads"])
    _check(skill, policy)
    steering = {
        number: Steering(found[f"{number}.left"], found[f"{number}.right"], float(rate))
        for number, rate in enumerate(told["turn_rate"] for told in whole)
        if rate is not None
    }
    for number, each in steering.items():
        shape = (chains[number].count, skill.actions)
        if not (each.left.shape == each.right.shape == shape and np.isfinite(each.left).all()):
            raise ValueError("steering does not fit")
    figures = {number: dict(told["figures"]) for number, told in enumerate(whole)}
    exhausted = meta["exhausted"]
    return ControlGraph(
        skill, policy, steering, figures, np.inf if exhausted is None else float(exhausted)
    )


def _check(skill: Fragments, policy: Policy) -> None:
    """A `ValueError` where what was read does not fit together."""
    count, body = len(skill.targets), skill.body
    if not all(0 < link < len(body) for link in skill.links):
        raise ValueError("links do not fit the body")
    ends = np.cumsum([0, *(each.count for each in skill.chains)])
    if not skill.chains or min(each.count for each in skill.chains) < 1 or ends[-1] != count:
        raise ValueError("chains do not fit")
    if [each.first for each in skill.chains] != ends[:-1].tolist():
        raise ValueError("chains are not in order")
    if not all(-1 <= each.lands < len(body) for each in skill.chains):
        raise ValueError("a foot does not fit the body")
    followers = [k for each in skill.after for k in each]
    if not all(skill.after) or not all(0 <= k < count for k in followers):
        raise ValueError("a chain leads nowhere")
    steps, actions = skill.targets.shape[1], skill.actions
    for found, shape in (
        (skill.targets, (count, steps, body.target_size)),
        (skill.lengths, (count,)),
        (skill.starts, (count, body.state_size)),
        (policy.gains, (count, actions, COUNT)),
        (policy.offsets, (count, actions)),
        (policy.spreads, (count, actions)),
    ):
        if found.shape != shape or not np.isfinite(found).all():
            raise ValueError("arrays do not fit")
    if skill.lengths.min() < 1 or skill.lengths.max() > steps:
        raise ValueError("fragments last too long")
