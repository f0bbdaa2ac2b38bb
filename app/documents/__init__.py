"""The domain, without I/O: states, options, page ranges, fairness, progress, assembly."""
