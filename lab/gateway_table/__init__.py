"""The table of what survives between each pair of wires in docs/gateway/translation.md."""
