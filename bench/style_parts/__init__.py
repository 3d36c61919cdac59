"""The parts of bench/style.py, and the peers beside which they measure."""
