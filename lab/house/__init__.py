"""How the house is kept: style, names, sizes, imports, public names."""
