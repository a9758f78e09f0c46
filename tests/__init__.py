"""The tests; a regular package, so that no other `tests` folder can stand in for it."""
