"""Secrets in streams that are split at random: `replace` has to find each, wherever it is repeated.

`streams` makes a response with a secret in every place that a text can be in, `places` says where a
secret can still be read behind a stage, `python -m lab.leaks` counts over a million splits.
"""
