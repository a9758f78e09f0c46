"""Casts: animated pictures of a terminal, for README and the pages, drawn from recordings.

python -m lab.casts            writes docs/images/cast-*.svg again
python -m lab.casts --record   makes the recording again that they are drawn from

Nothing is timed: a command's output is shown at the times of the recording, so that the same
recording always gives the same files. `tests/docs/test_casts.py` says when a file is stale.
"""
