"""How fast the Motion VAE learns and walks beside a plain one, and how well it does its tasks.

    .venv/bin/python bench/vae.py                    the table, and JSON as the last line
    .venv/bin/python bench/vae.py --only walks       a part of it: speed, walks, control, live
    .venv/bin/python bench/vae.py --train target     learn what that needs: make vae-models for all

The plain one builds a weight matrix for every sample, as the published code does. All run on one
thread. Walks and tasks need the CMU clips beside the project and models under build/vae; where
either is missing, that is said and the figures that depend on it are left out.
"""

# ruff: noqa: E402
from __future__ import annotations

import os

for _name in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[_name] = "1"

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import torch

PROJECT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(PROJECT))
sys.path.insert(0, str(PROJECT / "bench"))

from vae_parts import control, live, models, speed, walks

from backend.vae.model import MotionVae

PARTS = ("speed", "walks", "control", "live")


def main() -> None:
    torch.set_num_threads(1)
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--train", nargs="*", choices=models.TASKS, metavar="TASK")
    parser.add_argument("--only", nargs="+", choices=PARTS, default=PARTS)
    options = parser.parse_args()
    if options.train is not None:
        models.learn(options.train)
        return
    result: dict[str, Any] = {}
    if "speed" in options.only:
        result |= speed.measure_speed()
    if not (models.CLIPS.is_dir() and models.MODEL.exists()):
        print("No clips or no model: walks and tasks are left out (make vae-models learns them).")
        print(json.dumps(result))
        return
    model = MotionVae.load(models.MODEL)
    figures = model.figures
    print(
        f"Model: {figures['epochs']} of {figures['of_epochs']} epochs, {figures['clips']} clips "
        f"({len(figures['left_out'])} left out), {figures['error_cm']:.2f} cm off"
    )
    if "speed" in options.only:
        result |= speed.measure_training(model)
        result |= speed.measure_ppo(model)
    if "walks" in options.only:
        result |= walks.measure_walks(model)
    if "control" in options.only:
        own_skate = result.get("data_skate_cm")
        if own_skate is None:
            own_skate = walks.data_skate(model, walks.data_parts(model))
        result |= control.measure_control(model, own_skate)
    if "live" in options.only:
        result |= live.measure_live(model)
    print(json.dumps(result))


main()
