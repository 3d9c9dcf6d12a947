"""Who holds what now: the revision in force, the tree of agents, their sessions and approvals."""
