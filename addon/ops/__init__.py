"""Operators: each only calls functions that scripts and tests can call as well."""
