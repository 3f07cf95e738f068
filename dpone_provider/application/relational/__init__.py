"""What two SQL engines have in common: decisions over small values. The adapters keep texts, statements and drivers."""
