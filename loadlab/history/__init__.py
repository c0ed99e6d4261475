"""The runs in results/, and each cell over time."""
