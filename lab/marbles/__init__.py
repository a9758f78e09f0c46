"""Marble diagrams of the pipeline's operators: pictures of what really came out.

Each operator runs on a scripted stream under a simulated clock; what it let out, and when, is drawn
into docs/images, and said in words in the pictures' alternative texts on docs/pipeline.md.

    python -m lab.marbles        # runs them all, writes the pictures and their texts

A test says when a picture or a text is not what the operator does now.
"""
