"""Mutation testing: `python -m lab.mutation`."""
