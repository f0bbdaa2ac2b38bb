"""Taking uploads in: upload → checked file → blob → document."""

from app.intake.intake import Accepted, Intake, Receipt
from app.intake.upload import Upload

__all__ = ["Accepted", "Intake", "Receipt", "Upload"]
