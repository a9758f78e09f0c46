"""Fuzzing guided by coverage: one harness for every target of `streamlib.testing.targets`, with stricter judges."""
