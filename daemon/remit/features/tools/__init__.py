"""Lists of tools: for hosts, for help, in the formats of model vendors."""
