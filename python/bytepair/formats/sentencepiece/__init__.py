"""SentencePiece: the file, its pieces, and vocabularies of characters with byte fallback."""
