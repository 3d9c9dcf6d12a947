"""Pure functions on text: words, fences, what is hidden in it and how it is cleaned."""
