"""Internal helpers of the subpackages: argument checks, hints, lazy imports, progress, drawing."""
