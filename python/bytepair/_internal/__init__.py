"""Internal helpers of the subpackages: lazy imports, progress bars, drawing, system calls."""
