"""Published vocabularies by name: encodings of tiktoken, and repositories of the hub."""
