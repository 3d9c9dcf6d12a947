"""What agents should know, just in time: cards, and how text by others is cleaned and scanned.

Imports `model`, `policy`, `config` and `store`; never `discovery`, which is a sibling.
"""
