"""A small Motion VAE of the sample human and policies of it, made once for all tests of a run."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import bpy
import numpy as np
from bl_ext.user_default.limber.addon import clips
from bl_ext.user_default.limber.addon.vae import models
from bl_ext.user_default.limber.backend.vae import training
from bl_ext.user_default.limber.backend.vae.model import MotionVae
from bl_ext.user_default.limber.backend.vae.policy_training import Learner
from bl_ext.user_default.limber.backend.vae.policy_training import Settings as PolicySettings
from bpy.types import Object
from styles import open_human

SIZES = {"epochs": 1, "latents": 4, "experts": 2, "hidden": 16, "batch": 8, "rate": 2e-3}

_folder = tempfile.TemporaryDirectory(prefix="limber-vaes-")


@functools.cache
def vae_file() -> Path:
    """The file of a Motion VAE of the human's walk; needs the human to be open."""
    clip = clips.read_clip(bpy.data.objects["Human"], bpy.data.actions["Walk"])
    path = Path(_folder.name) / "Walk.limber"
    training.train([clip], training.Settings(**SIZES, free=0)).save(path)
    return path


@functools.cache
def policy_file(task: str) -> Path:
    """A policy that has hardly learned anything; its file is all that is needed."""
    path = Path(_folder.name) / f"{task.capitalize()}.limber"
    low = str(policy_file("target")) if task == "maze" else ""
    settings = PolicySettings(str(vae_file()), task, low, samples=1, characters=4, frames=2)
    learner = Learner(MotionVae.load(vae_file()), settings, np.random.default_rng(0))
    learner.policy().save(path)
    return path


def walking_human(*tasks: str) -> Object:
    """The human with its Motion VAE in the list, and policies for these tasks."""
    obj = open_human()
    entry = models.add_file(obj, vae_file())
    for task in tasks:
        models.add_policy_file(entry, policy_file(task))
    return obj
