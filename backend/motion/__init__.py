"""Skeletons, clips and what can be measured on them: plain data and numpy alone."""
