"""Other libraries' formats, one file each."""
