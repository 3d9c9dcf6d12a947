"""The bus: who wants to hear what, and what is said about it in words.

Order: what is published first reaches each subscriber first; publishing is one step without a wait,
so two publishers never interleave inside one message.
Back-pressure: publishing never waits for a subscriber. One that does not read loses messages, and
only its own; the face that carries them counts the loss and tells it with a gap notice.
Permission: a subscription only asks. Whoever delivers looks at the live grant for every message, so
a subscription that was allowed yesterday shows nothing that is forbidden today.
Bounds: a subscriber has at most so many patterns and channels, and the cache of matches is bounded.
"""
