"""JSON Schema: read, check, normalise, validate, infer."""
