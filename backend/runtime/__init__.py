"""Limber's processes and files: the live session, jobs, workers, messages and `.limber` files."""
