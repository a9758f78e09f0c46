"""Benchmarks of the parsers: workloads with known contents, their time and memory, and growth.

    streamlib bench                          on the command line
    from streamlib.testing.bench.feed import measure from Python

Nothing here is loaded by `import streamlib`.
"""
