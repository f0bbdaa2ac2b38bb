"""Media types of the files that are read."""

PDF = "application/pdf"
