"""Mutation testing: `python -m tests.mutation`."""
