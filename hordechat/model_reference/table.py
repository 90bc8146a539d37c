"""The table of known text models and its lookup."""
