"""Reads untrusted files, writes files whole, and replaces none by mistake."""
