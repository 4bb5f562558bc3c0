"""The interactive page: landscapes of the copy head and solutions of positional-semantic, without a network."""
