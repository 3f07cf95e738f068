"""Use cases: short scripts over ports, in the words of the protocol."""
