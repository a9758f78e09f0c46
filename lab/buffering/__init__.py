"""What `replace` buffers, beside what it must: `oracle` tries every continuation of a text.

`python -m lab.buffering` counts over many texts and splits.
"""
