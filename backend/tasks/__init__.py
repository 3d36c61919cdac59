"""What a character should do: parameters, what a policy is told of them, and rewards.

Tasks      `target.Target`, `joystick.Joystick`, `path.Path`, `maze.Maze`, all `task.Task`s over a
           batch of characters, in torch.
World      `world.World.from_json(…)`: targets, paths and walls as Blender's objects give them.
Geometry   `paths` (a curve becomes a place for each frame) and `walls` (meshes become segments on
           the ground) need numpy alone, so the add-on may call them.
"""
