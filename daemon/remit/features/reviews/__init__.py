"""What waits for a yes of the operator: calls, capabilities, cards, tools."""
