"""The lab with a given ClickHouse as analytics, in databases and with users of the lab's own."""
