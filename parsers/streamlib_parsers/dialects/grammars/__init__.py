"""The forms that calls take in text: one file a form, each a table of literals and the way to read it."""
