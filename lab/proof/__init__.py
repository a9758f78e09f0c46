"""The proof command: promises, the tests that prove them, the figures required."""
