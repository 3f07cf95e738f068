"""What an administrator installs on SQL Server: its text taken apart, and what is installed compared with it."""
