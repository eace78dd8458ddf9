"""The experiment: how distances grow with edits, and which threshold to trust."""
