"""Pictures for the pages on fuzzing and benchmarks, of what programs found and measured.

    python -m lab.pictures        # writes them into docs/images

The failing split is the one that the example of docs/fuzzing.md finds. The curve is drawn from
`benchmarks/measured/curve.json`, which was measured with the parser of docs/benchmarks.md:

    python -m benchmarks.shapes build/shapes
    streamlib bench build/shapes/messages-2000.sse --wire-api messages \\
        --parser six_lines:SixLines --curve --json benchmarks/measured/curve.json

A test says when one is out of date.
"""
