"""Wires adapters to use cases; the roots (command line, Airflow, worker, lab) call it."""
