"""GGUF: the file, its keys of metadata, its pieces, and the split rules of llama.cpp."""
