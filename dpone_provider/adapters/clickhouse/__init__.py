"""ClickHouse (24.8 or later, one node) over HTTP: catalog, gate, reader, staging writer, publisher.

A ClickHouse "schema" is a database: ``Relation.schema`` names it. Names are compared exactly: case matters.
"""
