"""Hugging Face: the folder with `tokenizer.json`, the files beside it, and objects in memory."""
