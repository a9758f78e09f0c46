"""How often `coalesce` lets a screen draw, and how late: `python -m lab.drawings`."""
