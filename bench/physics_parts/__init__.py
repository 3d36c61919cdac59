"""The parts of bench/physics.py."""
