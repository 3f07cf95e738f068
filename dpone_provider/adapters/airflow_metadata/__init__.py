"""Airflow's own word on its task instances: from its metadata database, or inside a task from its supervisor."""
