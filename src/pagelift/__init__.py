"""pagelift: documents in, JSON that conforms to a JSON Schema out, with the place where each value was read."""

__version__ = "0.1.0"
