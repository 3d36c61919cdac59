"""Motion VAEs: Ling, Zinno, Cheng and van de Panne 2020.

Learning     `training.train(clips, Settings(…)) -> MotionVae`; as a job, kind "train_vae", whose
             spec's settings are fields of `training.Settings`: writes `result.limber` (the model),
             `report.json` (`error_cm`, `poses`, `left_out`, `expect`, …) and `preview.limber` (a
             random walk), all three from time to time before it ends and when it is cancelled.
             `then` has it go on to policies.
Model        `model.MotionVae.load(path)`, `.save(path)`; `.skeleton`, `.starts`, `.figures`.
Poses        `pose.Poses(skeleton)`: `.of(clip)`, `.clip(poses)`, `.width`.
Walking      `walk.random_walk`; `walk.Walkers` frame by frame; `controller.Controller` with a task.
"""
