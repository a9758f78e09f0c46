"""The proof command: the promises of this library, each with the tests that prove it and the figure they must reach."""
