"""The suite: properties, reproduction of published figures, speed."""
