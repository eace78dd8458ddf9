"""The published figures, reproduced."""
