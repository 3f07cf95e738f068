"""Arrow batches between engines: canonical types, exactness, the content digest, and the comparison of two tables."""
