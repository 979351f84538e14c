"""What the rooms of the package share and nobody else calls: lazy imports, progress, drawing."""
