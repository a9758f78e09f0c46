"""The parsers of the wire APIs: frames in, calls of the assembler out.

No wire imports another; `invoke` alone selects its inner wire, from a table.
"""
