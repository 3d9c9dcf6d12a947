"""What an agent should know, just in time: cards, chosen by the conversation, inside a budget."""
