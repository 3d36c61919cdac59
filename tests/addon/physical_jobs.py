"""Jobs that stand for those of physics: as quick as tests need them, with results of that form."""

from __future__ import annotations

import os
import shutil
from dataclasses import replace

from backend.physics.graph_plan import Plan
from backend.runtime import clip_files
from backend.runtime.files import write_json
from backend.runtime.jobs import Job


def make_physical(job: Job) -> None:
    """Lowers each clip by a centimetre; a clip named Fall falls halfway, one named Wait waits."""
    made, told = [], []
    for number, clip in enumerate(job.clips()):
        job.progress(number / len(job.clips()), f"Following {clip.label}")
        while clip.label == "Wait":
            job.progress(0.5, "Waiting")
        fell = clip.label == "Fall"
        kept = clip.cut(0, clip.frames // 2) if fell else clip
        made.append(replace(kept, root_positions=kept.root_positions - [0.0, 0.0, 0.01]))
        note = "It fell after 0.4 s." if fell else ""
        row = {"label": clip.label, "deviation_cm": 1.0, "worst_cm": 1.5, "fell": fell}
        told.append({**row, "note": note})
    clip_files.save_clips(job.folder / "result.limber", made)
    write_json(job.folder / "report.json", {"clips": told})


def learn_skill(job: Job) -> None:
    """Gives back the control graph that the test has made."""
    assert job.clips()[0].loop
    shutil.copy(os.environ["LIMBER_TEST_GRAPH"], job.folder / "result.limber")


def learn_graph(job: Job) -> None:
    """The same for a plan whose controllers' clips are there, with the report of that job."""
    plan, clips = Plan.from_json(job.spec.settings["plan"]), {c.label: c for c in job.clips()}
    plan.check()
    assert all(each.end < clips[each.clip].frames for each in plan.controllers)
    shutil.copy(os.environ["LIMBER_TEST_GRAPH"], job.folder / "result.limber")
    rows = [{"label": each.name} for each in plan.controllers]
    write_json(job.folder / "report.json", {"controllers": rows, "walk_minutes": 12.5})
