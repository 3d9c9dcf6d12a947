"""Pictures of profiles, capabilities and what they require. Pure, as all of policy."""
