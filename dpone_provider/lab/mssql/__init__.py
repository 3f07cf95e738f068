"""The lab with a given SQL Server as warehouse and control authority, in databases and for logins of the lab's own."""
