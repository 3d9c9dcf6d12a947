"""Small built-in tools: time, arithmetic, weather for tests, a list of tasks."""
