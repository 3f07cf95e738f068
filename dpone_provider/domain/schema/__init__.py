"""The schema-sync core: logical types, tables, their difference, the rules over it and the ordered plan.

Pure values and functions over the standard library. Engine adapters map their types to these, and actions to SQL.
"""
