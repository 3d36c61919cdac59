"""Limber's compute backend: everything that runs outside Blender. Nothing here imports bpy."""
