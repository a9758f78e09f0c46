"""Many logs under faults, each read from random places: `python -m lab.durable`."""
