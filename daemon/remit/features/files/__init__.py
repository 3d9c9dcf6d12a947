"""Files of a session: never files of the machine, never those of another session."""
