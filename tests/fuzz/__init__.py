"""Fuzzing guided by coverage: one harness for every target of `streamlib.testing.fuzz_targets`, with stricter judges."""
