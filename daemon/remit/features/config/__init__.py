"""The definition files: what edits of them would change, and putting them in force."""
