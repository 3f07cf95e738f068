"""The operating system's clock and source of randomness."""
