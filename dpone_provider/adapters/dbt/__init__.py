"""dbt, always in a process and an interpreter of its own: `child` runs there, everything else here."""
