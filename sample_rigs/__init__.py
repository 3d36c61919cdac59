"""The characters that ship with Limber, and the scripts that make them."""
