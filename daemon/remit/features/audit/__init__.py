"""Events that ask the audit."""
