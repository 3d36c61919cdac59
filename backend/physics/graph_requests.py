"""The live session's requests about control graphs.

physics.transitions  values: skeleton (JSON), clips (label, fps, loop each), plan (JSON), threshold,
                     most, split; arrays: N.root_positions and N.rotations of clip N
                     → values: plan (JSON), crossings
"""

from __future__ import annotations

from dataclasses import asdict

from ..runtime.messages import Message
from ..runtime.session import Request, Session
from .body_requests import material_of
from .graph_plan import Plan, join
from .transitions import CLOSE, propose


def tell_transitions(session: Session, request: Request) -> Message:
    """A plan with transitions where its clips are alike."""
    values = request.values
    clips = material_of(values, request.arrays).clips
    plan = Plan.from_json(values["plan"])
    split = bool(values.get("split"))
    found = propose(
        plan,
        clips,
        float(values.get("threshold", CLOSE)),
        int(values.get("most", 1)),
        anywhere=split,
    )
    fps = clips[0].fps if clips else 30.0
    joined = join(plan, found, fps, split=split)
    return Message({"plan": joined.to_json(), "crossings": [asdict(each) for each in found]})
