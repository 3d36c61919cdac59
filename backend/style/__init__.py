"""Style-based inverse kinematics: Grochow, Martin, Hertzmann and Popović 2004.

Learning     `training.train(clips, Settings(…)) -> StyleModel`; as a job, kind "train_style", whose
             spec's settings are fields of `training.Settings`: writes `result.limber` (the model)
             and `report.json` (`heldout_cm`, `frames`, `active`, `latents`, …).
Model        `model.StyleModel.load(path)`, `.save(path)`; `.heldout_cm`, `.labels`, `.skeleton`.
Posing       `solver.Solver(models, skeleton, limits, fps)`; `.start(pose)`, `.blend(parts)`,
             `.solve(handles, previous, fresh=, latents=) -> Solution` with `root_position`,
             `rotations`, `misses`, `unmet`, `sentence(handles)`, `latents`, `likelihoods`.
             A solve is made of `problem` (unknowns and sum), `descent` and `starts`.
Poses        `poses.Pose`, `Solution`, `to_clip`, `from_clip`.
Handles      `handles.Handle`, `Camera`, `Solid`, `Limits`; `to_json`, `from_json`.
Latent map   `latent_map.LatentMap(model)`: `.picture(size)`, `.lift(places)`, `.drop(x)`.
Sequences    `trajectories`: jobs "style_trajectories" and "style_markers".
Live         session requests style.open, style.start, style.solve, style.map, style.close; what
             each takes and gives is in `session`.
"""
