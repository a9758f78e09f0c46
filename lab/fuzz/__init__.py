"""Coverage-guided fuzzing: a harness for every target of `fuzz_targets`, with stricter oracles."""
