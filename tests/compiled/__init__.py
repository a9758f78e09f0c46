"""The compiled build: what may be compiled, and that it emits what the pure one emits."""
