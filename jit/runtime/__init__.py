"""What compiled programs find in the process they run in: `blas`, `process`."""
