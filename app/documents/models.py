"""Names of models that more than one room must agree on."""

CPU_MODEL = "pagefleet-cpu"
"""What the embedded OCR server calls its model, and the `cpu` profile asks for."""
