"""What the use cases need from the outside, each a Protocol beside its messages."""
