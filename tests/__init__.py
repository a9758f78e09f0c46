"""The tests. A regular package, so that no other distribution's `tests` folder can stand in for it."""
