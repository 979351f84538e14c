"""Internal helpers of the subpackages: argument checks, lazy imports, progress, drawing."""
