"""Measuring parsers: workloads that say what they hold, the time and memory they take, and how both grow.

    streamlib bench                          on the command line
    from streamlib.bench.feed import measure from Python

Nothing here is loaded by `import streamlib`.
"""
