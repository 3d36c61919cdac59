"""Gaussian processes over latent points: kernels, objectives and active sets."""
