"""Reads what a tokenizer of the core consists of: its tokens, rules, roles and notes.

The modules: `tokens` (by id, the pairs that merge into them, what happens to a text), `roles` (the
table of roles, flags and templates) and `metadata` (their values, and what a file without a place
for them loses). Readers and writers of files, chats and the class `Tokenizer` all ask here.
"""
