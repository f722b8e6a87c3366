"""Tables and texts that several floors print."""
