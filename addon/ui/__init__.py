"""Panels and lists, one file per panel."""
