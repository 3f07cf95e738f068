"""The ledger over SQL: SQLAlchemy Core for what it says, one ``Dialect`` for each server that it can be on.

``sql_ledger.SqlLedger`` implements the port. The laws are the database's
(``sql/postgres/010_control_schema.sql``); what stands here only speaks.
"""
