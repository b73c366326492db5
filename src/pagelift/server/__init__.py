"""The HTTP server: OpenAI-compatible, document-aware, for many requests at once. Needs the extra `server`."""
