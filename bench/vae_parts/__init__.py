"""The parts of bench/vae.py."""
