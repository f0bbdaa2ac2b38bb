"""pagefleet: a REST service that turns PDFs and scans into text with a fleet of OCR replicas."""

__version__ = "0.1.0"
