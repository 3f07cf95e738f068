"""The provider's face to Airflow: loader, bundle, operators. Importing this package imports nothing else."""
