"""Style-based inverse kinematics inside Blender; the mathematics is in `backend/style`.

Styles       `models`: a character's list of styles, from `.limber` files and training jobs.
Handles      `handles`: a list of what joints should satisfy, with the Empties that show it;
             `handles.collect(obj)` says it to the backend, `handles.collecting(obj, frames)` for
             each of several frames.
Limits       `limits`: how far the rig lets its joints turn.
Poses        `pose.Poser`: writes a pose onto bones or a rig's controls; `pose.read` takes one.
Solving      `solving`: what the backend is asked; `solving.pose_once(obj)` waits for one pose.
Live         `live`: poses a character whenever a handle moves.
"""
