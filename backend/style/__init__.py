"""Style-based inverse kinematics: Grochow, Martin, Hertzmann and Popović 2004."""
