"""What documents say, by kind, before any of it is laid out."""
