"""SQL Server 2019, 2022 and 2025: catalog, gate, readers and writers over pyodbc (statements) and mssql-python (Arrow).

Azure SQL is not modelled and refused. Drivers are imported when they are first needed: they are the extra ``mssql``.
"""
