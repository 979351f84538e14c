"""Files on this machine: read as untrusted, written whole, kept from being replaced by mistake."""
