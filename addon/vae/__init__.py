"""Motion VAEs inside Blender; the mathematics is in `backend/vae` and `backend/tasks`.

Models       `models`: a character's list of Motion VAEs, each with its policies, from `.limber`
             files and training jobs.
World        `world`: what Empties, Curves and meshes tell of a task.
Walking      `walking.making(obj, …)`: a walk by a job, baked as Actions.
Playing      `live.Player`: walks frame by frame in the viewport, steered meanwhile.
Figures      `figures.making(obj, …)`: a picture of what a model has learned.
"""
