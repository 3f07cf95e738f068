"""The ledger over SQL: PostgreSQL today; every statement compiles for SQL Server too.

``ledger.PostgresLedger`` implements the port. The laws are the database's (``sql/postgres/010_control_schema.sql``);
what stands here only speaks.
"""
