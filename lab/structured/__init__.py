"""Figures of structured output: growth, splits, agreement with jiter, and other libraries.

    python -m lab.structured                     growth and splits in a small form, and jiter
    python -m lab.structured --splits 100000     so many random splits
    python -m lab.structured --growth 1000000    bytes of JSON, in deltas of ten characters
    python -m lab.structured.peers               pydantic-ai, instructor, BAML: the same bytes

The small form runs with the default tests (tests/lab/structured/test_figures.py).
"""
