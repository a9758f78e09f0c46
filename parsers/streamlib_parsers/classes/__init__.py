"""Python classes as types of JSON: their JSON Schema, and JSON text as their values.

The class's own library does the work. pydantic is found at run time where a class is made with
it; everything else is read by msgspec: its Structs, dataclasses, TypedDicts, NamedTuples, attrs
classes, enums, and lists, dicts and unions of all these.

It is below the items and `Response`, whose methods need it; requests import it from here.
"""
