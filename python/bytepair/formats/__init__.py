"""The file formats of other libraries, one module each."""
