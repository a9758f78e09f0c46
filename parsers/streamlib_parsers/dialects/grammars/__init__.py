"""The syntaxes of calls in text: one file each, a table of literals and the way to read them."""
