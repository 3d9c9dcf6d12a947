"""Questions about rights: who may do what, why, and what an edit would change."""
