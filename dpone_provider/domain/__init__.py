"""The pure core: values, state machines and rules. Standard library only; no I/O, no clock, no randomness."""
