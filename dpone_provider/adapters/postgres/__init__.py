"""PostgreSQL: catalog, gate, readers and writers over psycopg (statements) and ADBC (Arrow)."""
